"""Reads the export of ChatGPT: `conversations.json` of any year, or its numbered parts, packed or unpacked.

A conversation is a tree, because users can edit a message and regenerate an answer.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp, tool_call
from memoranda.importers.exports.archives import ArrayElement, find_exports
from memoranda.importers.exports.conversation_tree import ConversationTree, conversation_of, message_name, read_list
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, ReadEvent, Skipped

_TO_USER = (None, "", "all")
_INSTRUCTIONS = "user_editable_context"
_REASONING = ("thoughts", "reasoning_recap")
Message = dict[str, Any]
_FACTS = ("gizmo_id", "conversation_template_id", "conversation_origin", "is_archived", "is_starred", "update_time")


class ChatGPT:
    name = "chatgpt"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        return find_exports(path, "mapping", "chat_messages")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        return read_list(item, _ChatGptChat)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the address of the conversation, where a browser continues it."""
        return f"https://chatgpt.com/c/{conversation_of(host_id)}"


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
        found |= {"content": None, "tool_calls": [tool_call(name, str(message["recipient"]), content)]}
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


class _ChatGptChat(ConversationTree):
    def __init__(self, element: ArrayElement, file: Path) -> None:
        super().__init__(element, file)
        host_id, mapping = self._value.get("conversation_id") or self._value.get("id"), self._value.get("mapping")
        self._host_id = host_id if isinstance(host_id, str) else ""
        self._nodes: Mapping[str, Any] = mapping if isinstance(mapping, Mapping) else {}
        self._instructions = [found for node in self._nodes.values() if (found := custom_instructions(_message(node)))]
        self._calls: dict[str, str] = {}

    def events(self) -> Iterator[ReadEvent]:
        if not self._host_id or not isinstance(self._value.get("mapping"), Mapping):
            yield self._problem(
                f"element {self._number} of the list is not a conversation: it has no id or no messages"
            )
            return
        yield from self._branch_events(self._host_id, self._parents(), self._value.get("current_node"))

    def _parents(self) -> dict[str, str | None]:
        parents: dict[str, str | None] = {}
        for name, node in self._nodes.items():
            parent = node.get("parent") if isinstance(node, Mapping) else None
            parents[name] = parent if isinstance(parent, str) else None
        return parents

    def _conversation(self, host_id: str, parent: str | None, imported: list[ImportedMessage]) -> ImportedConversation:
        value = self._value
        models = [item.message["model"] for item in imported if item.message.get("model")]
        model = models[-1] if models else value.get("default_model_slug")
        title = value.get("title")
        started = parse_timestamp(value.get("create_time")) if parent is None else imported[0].message.get("timestamp")
        facts = {f"chatgpt_{name}": value[name] for name in _FACTS if value.get(name)}
        if self._instructions:
            facts["chatgpt_custom_instructions"] = self._instructions[-1]
        return ImportedConversation(
            host_id,
            title if isinstance(title, str) and parent is None else None,
            model if isinstance(model, str) else None,
            None,
            started,
            parent,
            "branch" if parent else None,
            extra=facts,
        )

    def _message_events(self, name: str) -> Iterator[ReadEvent]:
        node = self._nodes[name]
        message = _message(node)
        if not message:
            if isinstance(node, Mapping) and node.get("message") in (None, {}):
                yield Skipped("node without a message")
            else:
                yield self._problem(f"message {name} cannot be understood")
            return
        author = message.get("author")
        role = author.get("role") if isinstance(author, Mapping) else None
        if not isinstance(role, str) or not role:
            yield self._problem(f"message {name} does not say who wrote it")
            return
        if custom_instructions(message) is not None:
            yield Skipped("custom instructions, kept with the session")
            return
        parent = node.get("parent")
        call_id = self._calls.get(parent) if isinstance(parent, str) else None
        # The node's id equals its message's id, but is always unique in the conversation.
        external_id = message_name(self._host_id, name)
        found = chat_message(message, role, external_id, call_id)
        if is_call(message):
            self._calls[name] = external_id
        elif role == "tool" and call_id:
            # Several outputs of one call follow each other.
            self._calls[name] = call_id
        yield Skipped("empty message") if found is None else ImportedMessage(found, self._line)


def _message(node: Any) -> Mapping[str, Any]:
    message = node.get("message") if isinstance(node, Mapping) else None
    return message if isinstance(message, Mapping) else {}
