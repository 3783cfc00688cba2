"""Reads saved pages of archival memory, which Letta's server answers with, as notes."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import dicts_in, get_text
from memoranda.importers.letta.core_memory import PROGRAM
from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import ImportItem, Problem, ReadEvent


def passages_of(value: Any) -> list[dict[str, Any]]:
    """Return the passages on a page of archival memory, in every form of the API."""
    listed = value.get("passages", value.get("results")) if isinstance(value, dict) else value
    return [entry.get("passage") or entry for entry in dicts_in(listed) if "text" in (entry.get("passage") or entry)]


def read_passages(item: ImportItem, passages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    current = None
    for passage in passages:
        owner = get_text(passage, "archive_id") or get_text(passage, "agent_id") or item.file.stem
        text, name = get_text(passage, "text"), get_text(passage, "id")
        if not text or not name:
            yield Problem(item.file, None, "a passage without id or text")
            continue
        if owner != current:
            current = owner
            yield notes_of(PROGRAM, f"archive/{owner}", f"Letta: archival memory of {owner}")
        at = passage.get("created_at") or passage.get("updated_at")
        yield note(
            f"archive/{owner}", name, text, at, {key: passage.get(key) for key in ("tags", "metadata", "source_id")}
        )
