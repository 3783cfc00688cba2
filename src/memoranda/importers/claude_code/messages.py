"""The lines of a transcript: which of them are messages, which say something of the session, which are bookkeeping."""

import hashlib
from collections.abc import Iterator
from typing import Any

from memoranda.importers.claude_code.blocks import assistant_message, blocks_of, user_messages
from memoranda.importers.lines import Line
from memoranda.importers.reader_protocol import ImportedMessage, Skipped

Entry = dict[str, Any]
# Output that the program put where the user speaks.
_OUTPUTS = ("<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>", "<bash-stdout>")
# The best title is the one that a person gave.
_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "summary": ("summary", 1)}


def title_of(entry: Entry) -> tuple[str, int] | None:
    """A title for the session, and how good it is."""
    field, rank = _TITLES.get(str(entry.get("type")), ("", 0))
    title = entry.get(field)
    return (title, rank) if isinstance(title, str) and title.strip() else None


def given_by(line: Line, calls: dict[str, str]) -> Iterator[ImportedMessage | Skipped]:
    """The messages of a line, or what the line is instead. `calls` are the tools whose results are awaited."""
    entry = line.value
    kind, message = entry.get("type"), entry.get("message")
    made: list[dict[str, Any]] = []
    if isinstance(message, dict) and "content" in message:
        made = _said(entry, message, calls)
    elif kind == "system" and isinstance(entry.get("content"), str) and entry["content"].strip():
        made = [{"role": "system", "content": entry["content"]}]
    elif kind == "attachment" and (prompt := _queued(entry)):
        made = list(user_messages(blocks_of(prompt), calls))
    if not made:
        yield Skipped(_name(entry))
    name = _external_id(line)
    for number, each in enumerate(made):
        at = entry.get("timestamp")
        yield ImportedMessage(
            {**each, "external_id": f"{name}:{number}" if number else name, "timestamp": at}, line.number
        )


def _said(entry: Entry, message: Entry, calls: dict[str, str]) -> list[dict[str, Any]]:
    blocks = blocks_of(message["content"])
    if (message.get("role") or entry.get("type")) == "assistant":
        made = assistant_message(blocks)
        if made is None:
            return []
        for call in made.get("tool_calls", ()):
            calls[call["id"]] = call["function"]["name"]
        if isinstance(message.get("stop_reason"), str):
            made["finish_reason"] = message["stop_reason"]
        return [made]
    messages = list(user_messages(blocks, calls))
    for each in messages:
        if each["role"] == "user":
            _mark_injected(entry, each)
    return messages


def _mark_injected(entry: Entry, message: dict[str, Any]) -> None:
    """The program speaks in the user's place now and then; those are not the user's words."""
    if entry.get("isCompactSummary") is True:
        message["is_summary"] = True
    elif entry.get("isMeta") is True or str(message["content"]).lstrip().startswith(_OUTPUTS):
        message["role"] = "system"


def _queued(entry: Entry) -> Any:
    """What the user typed while the assistant was at work; it is recorded nowhere else."""
    attachment = entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return attachment.get("prompt")
    return None


def _name(entry: Entry) -> str:
    """What a line without messages is called in the report."""
    kind = str(entry.get("type") or "without type")[:40]
    attachment, subtype = entry.get("attachment"), entry.get("subtype")
    if isinstance(attachment, dict):
        subtype = attachment.get("type")
    return f"{kind} ({subtype[:40]})" if isinstance(subtype, str) and subtype else kind


def _external_id(line: Line) -> str:
    """The message's own id; a line that has none is known by what it says and where."""
    found = line.value.get("uuid")
    if isinstance(found, str) and found:
        return found
    return f"{line.number}-{hashlib.sha256(line.raw.rstrip()).hexdigest()[:16]}"
