"""Reads the conversations of LM Studio from `~/.lmstudio/conversations`.

A message has one version for each time it was written again, and says which one is shown. An answer consists of steps,
whose ids begin with the time at which they started; prompts have no time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    call_parts,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    part_events,
    short_digest,
    text_parts,
    to_json,
)
from memoranda.importers.reader_protocol import ImportedConversation, ImportItem, Problem, ReadError, ReadEvent, Skipped
from memoranda.importers.source_files import find_items, is_recently_changed, load_json, reread_time

_ENDING = ".conversation.json"


class LMStudio:
    name = "lm-studio"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        own = (Path.home() / ".lmstudio", Path.home() / ".cache" / "lm-studio")
        directories = [directory / "conversations" for directory in own]
        found = find_items(path, directories, lambda file: file.name.endswith(_ENDING), "conversation")
        return [replace(item, modified_at=reread_time(item.modified_at)) for item in found]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield one conversation with the versions that are shown."""
        value = load_json(item)
        messages = get_field(value, "messages")
        if not isinstance(messages, list):
            raise ReadError(Problem(item.file, None, "not a conversation of LM Studio: messages are expected"))
        session = item.file.name.removesuffix(_ENDING)
        model = get_text(value, "lastUsedModel", "identifier")
        started = parse_timestamp(value.get("createdAt"))
        yield ImportedConversation(session, get_text(value, "name"), model, started_at=started)
        for number, message in enumerate(dicts_in(messages)):
            versions, shown = dicts_in(message.get("versions")), message.get("currentlySelected")
            if len(versions) > 1:
                yield from (Skipped("version of a message that is not shown") for _ in versions[1:])
            version = versions[shown if isinstance(shown, int) and 0 <= shown < len(versions) else -1 :][:1]
            is_last = number == len(messages) - 1
            if version and is_last and version[0].get("role") != "user" and is_recently_changed(item.modified_at):
                # The record keeps the first version of a message; one that may still grow waits for the next import.
                yield Skipped("answer that may still be written")
            elif version:
                yield from _version_events(version[0], f"{session}:{number}")


def _version_events(version: dict[str, Any], name: str) -> Iterator[ReadEvent]:
    steps = dicts_in(version.get("steps"))
    times = [get_text(step, "stepIdentifier") for step in steps]
    # The id of a step is a number of milliseconds, a dash, and a random number.
    at = next((parse_timestamp(time.split("-")[0]) for time in times if time), None)
    parts = [part for step in steps for part in _step_parts(step)]
    parts += [found for part in dicts_in(version.get("content")) for found in _content_parts(part)]
    known_by = short_digest(to_json(parts))[:12]
    yield from part_events(get_text(version, "role") or "assistant", parts, f"{name}:{known_by}", at)


def _step_parts(step: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [found for part in dicts_in(step.get("content")) for found in _content_parts(part)]
    if get_text(step, "style", "type") == "thinking":
        return [{"type": "thinking", "thinking": text} for part in parts if (text := get_text(part, "text"))]
    return parts


def _content_parts(part: dict[str, Any]) -> list[dict[str, Any]]:
    kind = part.get("type")
    if kind == "text":
        return text_parts(get_text(part, "text") or "")
    call = part.get("toolCallRequest") if isinstance(part.get("toolCallRequest"), dict) else part
    call_id = str(
        get_field(call, "id") or part.get("toolCallRequestId") or part.get("toolCallId") or part.get("callId")
    )
    if kind == "toolCallRequest":
        arguments = get_field(call, "arguments") or part.get("parameters")
        return call_parts((call_id, get_text(call, "name") or "unknown", arguments), None)
    if kind == "toolCallResult":
        return [{"type": "tool_result", "tool_use_id": call_id, "content": part.get("content")}]
    return [part]
