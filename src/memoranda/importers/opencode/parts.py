"""The parts of a message as messages in chat form, each under the id of the part."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import answered, called, field, said, text_field, thought, words
from memoranda.importers.opencode.messages import StoredMessage
from memoranda.importers.reader_protocol import ReadEvent, Skipped

Part = dict[str, Any]
_ENDED = ("completed", "error", "result")
_AWAITED = "still being written"


def messages_of(message: StoredMessage, *, awaits_end: bool) -> Iterator[ReadEvent]:
    """Everything that a message says. With `awaits_end`, a part that is being written is left for the next time."""
    ended = message.ended or message.role == "user" or not awaits_end
    if not message.parts:
        yield Skipped("message without parts" if ended else _AWAITED)
    for part in message.parts:
        yield from _given(message, part, ended=ended)


def _given(message: StoredMessage, part: Part, *, ended: bool) -> Iterator[ReadEvent]:
    kind, name = part.get("type"), str(part.get("id"))
    at = field(part, "time", "start") or message.at
    is_done = ended or field(part, "time", "end") is not None
    if kind in ("text", "reasoning"):
        text = text_field(part, "text")
        if text is None or part.get("synthetic") is True or part.get("ignored") is True:
            yield Skipped("text added by the program" if text else "part without words")
        elif not is_done:
            yield Skipped(_AWAITED)
        elif kind == "reasoning":
            yield thought(text, name, at)
        else:
            yield said(message.role, text, name, at, **({"is_summary": True} if message.is_summary else {}))
    elif kind in ("tool", "tool-invocation"):
        yield from _tool(part, name, at, ended=ended)
    elif kind == "file":
        shown = text_field(part, "filename") or text_field(part, "source", "path") or "file"
        yield said(message.role, f"[{shown}: {words(part.get('mime'))}, not imported]", name, at)
    else:
        yield Skipped(f"part ({str(kind)[:40]})")


def _tool(part: Part, name: str, at: Any, *, ended: bool) -> Iterator[ReadEvent]:
    """A tool call, and its result when there is one."""
    old = part.get("toolInvocation")
    state: Any
    if isinstance(old, dict):
        call_id, tool, state = old.get("toolCallId"), old.get("toolName"), old
        status, arguments, output = old.get("state"), old.get("args"), old.get("result")
    else:
        call_id, tool, state = part.get("callID"), part.get("tool"), part.get("state")
        status, arguments = field(state, "status"), field(state, "input")
        output = field(state, "output") if status != "error" else field(state, "error")
    if not ended and status not in _ENDED:
        # Its arguments may not be complete either.
        yield Skipped(_AWAITED)
        return
    call = words(call_id) or name
    began = field(state, "time", "start") or at
    yield called((call, words(tool), arguments), name, began)
    if status in _ENDED:
        yield answered((call, words(tool)), words(output), f"{name}:result", field(state, "time", "end") or began)
