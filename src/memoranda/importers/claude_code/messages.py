"""The lines of a transcript: which of them are messages, which say something of the session, which are bookkeeping."""

import hashlib
from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import as_text, to_json
from memoranda.importers.reader_protocol import ImportedMessage, Skipped
from memoranda.importers.source_files import Line
from memoranda.safety.fence import strip_recalled_blocks

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
        made = _messages_of_entry(entry, message, calls)
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


def _messages_of_entry(entry: Entry, message: Entry, calls: dict[str, str]) -> list[dict[str, Any]]:
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


Block = dict[str, Any]
_LONGEST_UNKNOWN = 20_000
# Opaque to everybody but the service that made it.
_OPAQUE = ("redacted_thinking",)


def blocks_of(content: Any) -> list[Block]:
    """Content as a list of blocks, whichever way it is written."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [] if content is None else [{"type": "text", "text": to_json(content)}]
    return [each if isinstance(each, dict) else {"type": "text", "text": as_text(each)} for each in content]


def shown(block: Block) -> str:
    """The words of a block; what has none is named, with its size."""
    kind = block.get("type")
    if kind in _OPAQUE:
        return ""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    if kind in ("image", "document"):
        source = block.get("source")
        source = source if isinstance(source, dict) else {}
        data = source.get("data")
        size = f", {len(data) * 3 // 4:,} bytes" if isinstance(data, str) else ""
        return f"[{kind}: {source.get('media_type') or 'unknown'}{size}, not imported]"
    text = to_json(block)
    return text if len(text) <= _LONGEST_UNKNOWN else f"[{kind}: {len(text):,} characters, not imported]"


def assistant_message(blocks: list[Block]) -> Block | None:
    """What the assistant said, thought and called; None when that is nothing."""
    text, reasoning, calls = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "thinking" and isinstance(block.get("thinking"), str):
            reasoning.append(block["thinking"])
        elif kind in ("tool_use", "server_tool_use"):
            calls.append(_call(block))
        else:
            text.append(shown(block))
    message: Block = {"role": "assistant", "content": _joined(text)}
    if thought := _joined(reasoning):
        message["reasoning"] = thought
    if calls:
        message["tool_calls"] = calls
    return message if message["content"] or len(message) > 2 else None


def user_messages(blocks: list[Block], names: dict[str, str]) -> Iterator[Block]:
    """What came from the user's side: results of tools, each a message of its own, and the words between them."""
    text: list[str] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            text.append(_without_recalled_text(shown(block)))
            continue
        if between := _joined(text):
            yield {"role": "user", "content": between}
        text = []
        yield _result(block, names)
    if between := _joined(text):
        yield {"role": "user", "content": between}


def _without_recalled_text(text: str) -> str:
    """Words without what a hook of ours recalled: older versions put that into the user's message."""
    kept = strip_recalled_blocks(text)
    return text if kept == text else kept.strip()


def _call(block: Block) -> Block:
    arguments = block.get("input")
    return {
        "id": as_text(block.get("id")),
        "type": "function",
        "function": {"name": as_text(block.get("name")), "arguments": to_json({} if arguments is None else arguments)},
    }


def _result(block: Block, names: dict[str, str]) -> Block:
    call = as_text(block.get("tool_use_id"))
    content = [shown(each) for each in blocks_of(block.get("content"))]
    message: Block = {"role": "tool", "content": _joined(content), "tool_call_id": call}
    if name := names.pop(call, ""):
        message["tool_name"] = name
    if block.get("is_error") is True:
        message["is_error"] = True
    return message


def _joined(texts: list[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())
