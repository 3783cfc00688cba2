"""Content blocks as messages in chat form: text, reasoning, tool calls and the results of tools."""

from collections.abc import Iterator
from typing import Any

from memoranda.importers.chat_messages import as_json, words
from memoranda.safety.fence import strip_recalled_blocks

Block = dict[str, Any]
_LONGEST_UNKNOWN = 20_000
# Opaque to everybody but the service that made it.
_OPAQUE = ("redacted_thinking",)


def blocks_of(content: Any) -> list[Block]:
    """Content as a list of blocks, whichever way it is written."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [] if content is None else [{"type": "text", "text": as_json(content)}]
    return [each if isinstance(each, dict) else {"type": "text", "text": words(each)} for each in content]


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
    text = as_json(block)
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
            text.append(_said(shown(block)))
            continue
        if between := _joined(text):
            yield {"role": "user", "content": between}
        text = []
        yield _result(block, names)
    if between := _joined(text):
        yield {"role": "user", "content": between}


def _said(text: str) -> str:
    """Words without what a hook of ours recalled: older versions put that into the user's message."""
    kept = strip_recalled_blocks(text)
    return text if kept == text else kept.strip()


def _call(block: Block) -> Block:
    arguments = block.get("input")
    return {
        "id": words(block.get("id")),
        "type": "function",
        "function": {"name": words(block.get("name")), "arguments": as_json({} if arguments is None else arguments)},
    }


def _result(block: Block, names: dict[str, str]) -> Block:
    call = words(block.get("tool_use_id"))
    content = [shown(each) for each in blocks_of(block.get("content"))]
    message: Block = {"role": "tool", "content": _joined(content), "tool_call_id": call}
    if name := names.pop(call, ""):
        message["tool_name"] = name
    if block.get("is_error") is True:
        message["is_error"] = True
    return message


def _joined(texts: list[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())
