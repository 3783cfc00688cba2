"""Reads the export of ChatGPT: `conversations.json` of any year, or its numbered parts, packed or unpacked.

A conversation is a tree, because users can edit a message and regenerate an answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.exports.archives import find_exports
from memoranda.importers.exports.chatgpt_content import chat_message, custom_instructions, is_call
from memoranda.importers.exports.conversation_tree import ConversationTree, conversation_of, message_name, read_list
from memoranda.importers.exports.json_array import ArrayElement
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, ReadEvent, Skipped

_FACTS = ("gizmo_id", "conversation_template_id", "conversation_origin", "is_archived", "is_starred", "update_time")


class ChatGPT:
    """The reader of ChatGPT's export."""

    name = "chatgpt"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the lists of conversations under `path`, or in the downloads."""
        return find_exports(path, "mapping", "chat_messages")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the conversations of a list, one after the other."""
        return read_list(item, _ChatGptChat)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the address of the conversation, where a browser continues it."""
        return f"https://chatgpt.com/c/{conversation_of(host_id)}"


class _ChatGptChat(ConversationTree):
    """One conversation of the export."""

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
