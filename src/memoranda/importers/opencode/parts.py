"""Converts the parts of a message to messages in chat form, each with the id of its part."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    get_field,
    get_text,
    reasoning_message,
    text_message,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.opencode.messages import StoredMessage
from memoranda.importers.reader_protocol import ReadEvent, Skipped

Part = dict[str, Any]
_ENDED = ("completed", "error", "result")
_UNFINISHED = "still being written"


def message_events(message: StoredMessage, *, skip_unfinished: bool) -> Iterator[ReadEvent]:
    """Yield the parts of a message; with `skip_unfinished`, a part that is still being written is skipped for now."""
    ended = message.ended or message.role == "user" or not skip_unfinished
    if not message.parts:
        yield Skipped("message without parts" if ended else _UNFINISHED)
    for part in message.parts:
        yield from _part_events(message, part, ended=ended)


def _part_events(message: StoredMessage, part: Part, *, ended: bool) -> Iterator[ReadEvent]:
    kind, name = part.get("type"), str(part.get("id"))
    at = get_field(part, "time", "start") or message.at
    is_done = ended or get_field(part, "time", "end") is not None
    if kind in ("text", "reasoning"):
        text = get_text(part, "text")
        if text is None or part.get("synthetic") is True or part.get("ignored") is True:
            yield Skipped("text added by the program" if text else "part without text")
        elif not is_done:
            yield Skipped(_UNFINISHED)
        elif kind == "reasoning":
            yield reasoning_message(text, name, at)
        else:
            yield text_message(message.role, text, name, at, **({"is_summary": True} if message.is_summary else {}))
    elif kind in ("tool", "tool-invocation"):
        yield from _tool_events(part, name, at, ended=ended)
    elif kind == "file":
        shown = get_text(part, "filename") or get_text(part, "source", "path") or "file"
        yield text_message(message.role, f"[{shown}: {as_text(part.get('mime'))}, not imported]", name, at)
    else:
        yield Skipped(f"part ({str(kind)[:40]})")


def _tool_events(part: Part, name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """Convert a tool call, with its result if there is one."""
    old = part.get("toolInvocation")
    state: Any
    if isinstance(old, dict):
        call_id, tool, state = old.get("toolCallId"), old.get("toolName"), old
        status, arguments, output = old.get("state"), old.get("args"), old.get("result")
    else:
        call_id, tool, state = part.get("callID"), part.get("tool"), part.get("state")
        status, arguments = get_field(state, "status"), get_field(state, "input")
        output = get_field(state, "output") if status != "error" else get_field(state, "error")
    if not ended and status not in _ENDED:
        # Its arguments may not be complete either.
        yield Skipped(_UNFINISHED)
        return
    call = as_text(call_id) or name
    started_at = get_field(state, "time", "start") or at
    yield tool_call_message((call, as_text(tool), arguments), name, started_at)
    if status in _ENDED:
        yield tool_result_message(
            (call, as_text(tool)), as_text(output), f"{name}:result", get_field(state, "time", "end") or started_at
        )
