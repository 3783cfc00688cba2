"""Reads the export of Claude (claude.ai and its apps): `conversations.json` of any year, packed or unpacked.

Older exports are plain lists of messages. In newer ones each message names the one it follows, so edited and retried
messages make a tree; the branch that ends in the latest message is the session.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import parse_timestamp
from memoranda.importers.exports.archives import find_exports
from memoranda.importers.exports.claude_content import chat_messages
from memoranda.importers.exports.conversation_tree import ConversationTree, conversation_of, message_name, read_list
from memoranda.importers.exports.json_array import ArrayElement
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, ReadEvent, Skipped

_FACTS = ("summary", "updated_at", "project", "is_starred", "settings")


class ClaudeExport:
    """The reader of Claude's export."""

    name = "claude"

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return the lists of conversations under `path`, or in the downloads."""
        return find_exports(path, "chat_messages", "mapping")

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the conversations of a list, one after the other."""
        return read_list(item, _ClaudeChat)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the address of the conversation, where a browser continues it."""
        return f"https://claude.ai/chat/{conversation_of(host_id)}"


class _ClaudeChat(ConversationTree):
    """One conversation of the export."""

    def __init__(self, element: ArrayElement, file: Path) -> None:
        super().__init__(element, file)
        self._messages: dict[str, Mapping[str, Any]] = {}

    def events(self) -> Iterator[ReadEvent]:
        host_id, listed = self._value.get("uuid"), self._value.get("chat_messages")
        if not isinstance(host_id, str) or not host_id or not isinstance(listed, list):
            yield self._problem(f"element {self._number} of the list is not a conversation: it has no uuid or messages")
            return
        yield from self._gather(listed)
        yield from self._branch_events(host_id, self._parents(), self._current())

    def _gather(self, listed: list[Any]) -> Iterator[ReadEvent]:
        """Collect the messages by id; one without an id, or with a repeated one, gets its number."""
        for number, message in enumerate(listed, start=1):
            sender = (message.get("sender") or message.get("role")) if isinstance(message, Mapping) else None
            if not isinstance(sender, str):
                yield self._problem(f"message {number} of conversation {self._value['uuid']} does not say who wrote it")
                continue
            name = message.get("uuid")
            if not isinstance(name, str) or not name or name in self._messages:
                name = f"#{number}"
            self._messages[name] = message

    def _parents(self) -> dict[str, str | None]:
        """Return the message that each one follows; without that information, the one before it in the list."""
        is_tree = any(message.get("parent_message_uuid") for message in self._messages.values())
        parents: dict[str, str | None] = {}
        before: str | None = None
        for name, message in self._messages.items():
            parent = message.get("parent_message_uuid")
            parents[name] = (parent if isinstance(parent, str) else None) if is_tree else before
            before = name
        return parents

    def _current(self) -> str | None:
        """Return the last message of the visible branch: the one that the export names, else the latest one."""
        leaf = self._value.get("current_leaf_message_uuid")
        if isinstance(leaf, str):
            return leaf
        times = {name: parse_timestamp(message.get("created_at")) or 0.0 for name, message in self._messages.items()}
        # If times are equal, the later one in the list. The latest message has no answer, so it ends a branch.
        return max(reversed(list(times)), key=lambda name: times[name], default=None) if any(times.values()) else None

    def _message_events(self, name: str) -> Iterator[ReadEvent]:
        found = chat_messages(self._messages[name], message_name(self._value["uuid"], name))
        if not found:
            yield Skipped("empty message")
        for message in found:
            yield ImportedMessage(message, self._line)

    def _conversation(self, host_id: str, parent: str | None, imported: list[ImportedMessage]) -> ImportedConversation:
        value = self._value
        title, model = value.get("name"), value.get("model")
        return ImportedConversation(
            host_id,
            title if isinstance(title, str) and title and parent is None else None,
            model if isinstance(model, str) else None,
            None,
            parse_timestamp(value.get("created_at")) if parent is None else imported[0].message.get("timestamp"),
            parent,
            "branch" if parent else None,
            extra={f"claude_{name}": value[name] for name in _FACTS if value.get(name)},
        )
