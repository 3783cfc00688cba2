"""Converts one message of a ChatGPT export to chat form, whatever kind of content it has."""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp

_TO_USER = (None, "", "all")
_INSTRUCTIONS = "user_editable_context"
_REASONING = ("thoughts", "reasoning_recap")

Message = dict[str, Any]


def custom_instructions(message: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the custom instructions, if a message contains them; they are not part of the conversation."""
    content = message.get("content")
    if not isinstance(content, Mapping) or content.get("content_type") != _INSTRUCTIONS:
        return None
    return {name: str(content[name]) for name in ("user_profile", "user_instructions") if content.get(name)}


def chat_message(message: Mapping[str, Any], role: str, name: str, call_id: str | None) -> Message | None:
    """Return a message in chat form; None when it is empty. `call_id` is the call that a tool result belongs to."""
    raw = message.get("content")
    kind = raw.get("content_type") if isinstance(raw, Mapping) else None
    content = _content(raw, kind)
    found: Message = {"role": role, "content": content or None}
    if kind in _REASONING:
        found |= {"content": None, "reasoning": content if isinstance(content, str) else json.dumps(content)}
    elif is_call(message):
        found |= {"content": None, "tool_calls": [_tool_call(message, content, name)]}
    if role == "tool":
        found |= {"tool_name": _text(_part(message, "author").get("name")), "tool_call_id": call_id}
    metadata = _part(message, "metadata")
    if not content and not metadata.get("attachments"):
        return None
    found |= _other_fields(message, metadata)
    found |= {"external_id": name, "timestamp": parse_timestamp(message.get("create_time"))}
    return {key: value for key, value in found.items() if value is not None or key == "content"}


def is_call(message: Mapping[str, Any]) -> bool:
    """Whether a message is a tool call: the assistant sends it to a recipient other than the user."""
    return _part(message, "author").get("role") == "assistant" and message.get("recipient") not in _TO_USER


def _tool_call(message: Mapping[str, Any], content: Any, name: str) -> Message:
    arguments = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {"id": name, "type": "function", "function": {"name": str(message["recipient"]), "arguments": arguments}}


def _content(raw: Any, kind: Any) -> Any:
    """Return plain text as text, other content as a list of parts."""
    if not isinstance(raw, Mapping):
        return raw if isinstance(raw, str) else [raw] if raw else ""
    if isinstance(raw.get("parts"), list):
        return _parts(raw["parts"])
    if kind == "thoughts":
        return _thoughts_text(raw.get("thoughts"))
    if kind == "tether_quote":
        return _lines(raw.get("title"), raw.get("url"), raw.get("text"))
    if kind == "tether_browsing_display":
        return _lines(raw.get("summary"), raw.get("result"))
    if kind == "system_error":
        return _lines(raw.get("name"), raw.get("text"))
    plain = next((raw[name] for name in ("text", "content", "result") if isinstance(raw.get(name), str)), None)
    if plain is not None:
        return plain
    kept = {key: value for key, value in raw.items() if value and key != "content_type"}
    # Content of an unknown kind is kept unchanged.
    return [{"type": str(kind), **kept}] if kept else ""


def _parts(parts: list[Any]) -> Any:
    if all(isinstance(part, str) for part in parts):
        return "\n".join(part for part in parts if part)
    return [_structured(part) for part in parts if part]


def _structured(part: Any) -> Message:
    if isinstance(part, Mapping):
        kind = part.get("content_type", "part")
        return {"type": str(kind), **{key: value for key, value in part.items() if key != "content_type"}}
    return {"type": "text", "text": part if isinstance(part, str) else json.dumps(part)}


def _thoughts_text(thoughts: Any) -> str:
    if not isinstance(thoughts, list):
        return _text(thoughts) or ""
    found = [
        _lines(thought.get("summary"), thought.get("content")) for thought in thoughts if isinstance(thought, Mapping)
    ]
    return "\n\n".join(filter(None, found))


def _other_fields(message: Mapping[str, Any], metadata: Mapping[str, Any]) -> Message:
    """Return the fields of a message besides its text."""
    finish = metadata.get("finish_details")
    model = _text(metadata.get("model_slug"))
    return {
        "finish_reason": _text(finish.get("type")) if isinstance(finish, Mapping) else None,
        "model": model,
        "language": _text(_part(message, "content").get("language")),
        "attachments": metadata.get("attachments") or None,
        "hidden": True if metadata.get("is_visually_hidden_from_conversation") else None,
    }


def _part(message: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = message.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _lines(*values: Any) -> str:
    return "\n".join(value for value in values if isinstance(value, str) and value)
