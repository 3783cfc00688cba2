"""What one message of a ChatGPT export says, in chat form, whatever kind of content it has."""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp

_EVERYBODY = (None, "", "all")
_INSTRUCTIONS = "user_editable_context"
_REASONING = ("thoughts", "reasoning_recap")

Message = dict[str, Any]


def custom_instructions(message: Mapping[str, Any]) -> dict[str, str] | None:
    """What the user has told ChatGPT to know in every conversation, if a message is that; it is said by nobody."""
    content = message.get("content")
    if not isinstance(content, Mapping) or content.get("content_type") != _INSTRUCTIONS:
        return None
    return {name: str(content[name]) for name in ("user_profile", "user_instructions") if content.get(name)}


def chat_message(message: Mapping[str, Any], role: str, name: str, answers: str | None) -> Message | None:
    """A message in chat form, or None when it says nothing; `answers` is the call that a tool's output belongs to."""
    raw = message.get("content")
    kind = raw.get("content_type") if isinstance(raw, Mapping) else None
    said = _said(raw, kind)
    found: Message = {"role": role, "content": said or None}
    if kind in _REASONING:
        found |= {"content": None, "reasoning": said if isinstance(said, str) else json.dumps(said)}
    elif is_call(message):
        found |= {"content": None, "tool_calls": [_call(message, said, name)]}
    if role == "tool":
        found |= {"tool_name": _text(_part(message, "author").get("name")), "tool_call_id": answers}
    metadata = _part(message, "metadata")
    if not said and not metadata.get("attachments"):
        return None
    found |= _beside(message, metadata)
    found |= {"external_id": name, "timestamp": parse_timestamp(message.get("create_time"))}
    return {key: value for key, value in found.items() if value is not None or key == "content"}


def is_call(message: Mapping[str, Any]) -> bool:
    """Whether a message is a call of a tool: the assistant says it to somebody else than the user."""
    return _part(message, "author").get("role") == "assistant" and message.get("recipient") not in _EVERYBODY


def _call(message: Mapping[str, Any], said: Any, name: str) -> Message:
    arguments = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return {"id": name, "type": "function", "function": {"name": str(message["recipient"]), "arguments": arguments}}


def _said(raw: Any, kind: Any) -> Any:
    """Text where it is nothing but text, else a list of parts."""
    if not isinstance(raw, Mapping):
        return raw if isinstance(raw, str) else [raw] if raw else ""
    if isinstance(raw.get("parts"), list):
        return _parts(raw["parts"])
    if kind == "thoughts":
        return _thoughts(raw.get("thoughts"))
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
    # A kind that nobody has told us of is kept as it is.
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


def _thoughts(thoughts: Any) -> str:
    if not isinstance(thoughts, list):
        return _text(thoughts) or ""
    found = [_lines(each.get("summary"), each.get("content")) for each in thoughts if isinstance(each, Mapping)]
    return "\n\n".join(filter(None, found))


def _beside(message: Mapping[str, Any], metadata: Mapping[str, Any]) -> Message:
    """What is known of a message beside its words."""
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
