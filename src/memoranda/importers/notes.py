"""What another memory stored as a memory, a fact or a note, as messages that search finds.

The notes of one collection (a user's memories, a namespace, a vault) are the messages of one session, whose source is
the program's name with `:notes`. So search, export, deletion and undo work on them as on every conversation. A note is
never an instruction: it has the role of an assistant, whose earlier words a model reads as quotations.

A Markdown file, of a vault or of a memory that an agent keeps in files, is a note, too. The lines between `---` at its
start name its title, dates and more. They are read as plain lines and not as YAML, whose aliases could fill the memory.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp, short_digest
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadError,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_files import find_files, read_bytes

_NOTES = ":notes"
# Values that say nothing, and the text itself.
_MAX_NOTE_FIELDS = 50
_FIELD = re.compile(r"([A-Za-z_][\w-]{0,60}):[ \t]*(.*)")
_MAX_FRONT_MATTER_FIELDS = 100
_DATES = ("modified", "updated", "updated_at", "date", "created", "created_at")
_LIST_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")


def notes_of(program: str, collection: str, title: str, **more: Any) -> ImportedConversation:
    """Build the session of a collection of notes."""
    return ImportedConversation(collection, title, source=f"{program}{_NOTES}", **more)


def note(collection: str, note_id: str, text: str, at: Any, origin: Mapping[str, Any] | None = None) -> ImportedMessage:
    """Build one note; a changed text is a new note, because the record keeps what it has.

    `at` is when the text was written. `origin` has what else the program knows about it.
    """
    kept = {name: value for name, value in (origin or {}).items() if value not in (None, "", [], {})}
    return ImportedMessage(
        {
            "role": "assistant",
            "content": text,
            # With the collection: sessions that start with the same id count as copies of each other.
            "external_id": f"{collection}/{note_id}@{short_digest(text)[:12]}",
            "timestamp": at,
            "note": {"id": note_id, **dict(list(kept.items())[:_MAX_NOTE_FIELDS])},
        },
    )


def dated_text(text: str, valid_from: Any, valid_until: Any) -> str:
    """Return a fact with the dates between which it was true, which a model could not read from a field."""
    since, until = _date(valid_from), _date(valid_until)
    if since and until:
        return f"{text} (true from {since} until {until})"
    return f"{text} (true from {since})" if since else f"{text} (true until {until})" if until else text


def _date(value: Any) -> str:
    return str(value)[:10] if isinstance(value, str) and parse_timestamp(value) is not None else ""


def find_markdown(directory: Path) -> list[ImportItem]:
    """Return the Markdown files of a directory, without hidden ones and without links that lead out of it."""
    found = find_files(directory, lambda file: file.suffix == ".md" and file.name[0] != ".", str(directory))
    return [item for item in found if _is_inside(item.file, directory)]


def markdown_events(item: ImportItem, program: str, collection: str, title: str) -> Iterator[ReadEvent]:
    """Yield one file as a note of a collection; its id is its path in the directory that the item's label names."""
    raw = read_bytes(item)
    if isinstance(raw, Problem):
        raise ReadError(raw)
    fields, text = split_front_matter(raw.decode("utf-8-sig", "replace"))
    if not text.strip():
        yield Skipped("file without text")
        return
    name = os.path.relpath(item.file, item.label)
    heading = fields.get("title", "")
    if heading and heading not in text[:500]:
        # Without it, a search for the title of a note would not find the note.
        text = f"# {heading}\n\n{text}"
    at = next((fields[date] for date in _DATES if fields.get(date)), item.modified_at)
    yield notes_of(program, collection, title)
    yield note(collection, name, text.strip(), at, fields)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields at the start of a file, and the text after them."""
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        return {}, text
    fields: dict[str, str] = {}
    for line in lines[1:end]:
        found, entry = _FIELD.fullmatch(line.rstrip()), _LIST_ITEM.fullmatch(line.rstrip())
        if found and len(fields) < _MAX_FRONT_MATTER_FIELDS:
            fields[found[1]] = found[2].strip().strip("'\"")
        elif entry and fields:
            last = next(reversed(fields))
            fields[last] = f"{fields[last]}, {entry[1]}".removeprefix(", ")
    return fields, "\n".join(lines[end + 1 :])


def _is_inside(file: Path, directory: Path) -> bool:
    parts: Sequence[str] = file.relative_to(directory).parts
    if any(part.startswith(".") or part == "node_modules" for part in parts[:-1]):
        return False
    try:
        return file.resolve().is_relative_to(directory.resolve())
    except (OSError, RuntimeError):
        return False
