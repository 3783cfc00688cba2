"""The text in the content of messages as model APIs define it: a text, or a list of typed parts."""

from typing import Any

from memoranda.importers.chat_messages import get_text

_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})
# Parts that become messages of their own.
SEPARATE_PARTS = frozenset({"tool_use", "tool_call", "tool_result", "thinking", "redacted_thinking", "reasoning"})


def content_text(content: Any) -> str:
    """Return the text of a content; a line stands for each part that is not text, such as an image."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return "\n".join(text for part in parts if (text := _part_text(part)))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    kind = part.get("type", "text")
    if kind in _TEXT_PARTS:
        return get_text(part, "text") or get_text(part, "refusal") or ""
    return "" if kind in SEPARATE_PARTS else f"[{kind}: not imported]"
