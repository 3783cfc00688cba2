"""Reads the export of Claude (claude.ai and its apps): `conversations.json` of any year, packed or unpacked.

Older exports are plain lists of messages. Newer ones say which message each one follows, so that edited and retried
ones make a tree; the line that ends in the latest message is the session, every other one a branch of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.exports.archives import exports, opened
from memoranda.importers.exports.claude_content import chat_messages
from memoranda.importers.exports.elements import Element, elements
from memoranda.importers.exports.naming import branch_name, conversation_of, message_name
from memoranda.importers.exports.strands import Strand, strands
from memoranda.importers.moments import moment
from memoranda.importers.shape import Aside, Conversation, Given, Imported, Item, Problem

_FACTS = ("summary", "updated_at", "project", "is_starred", "settings")


class ClaudeExport:
    """The reader of Claude's export."""

    name = "claude"

    def scan(self, where: Path | None) -> Sequence[Item]:
        """The lists of conversations under `where`, or among the downloads."""
        return exports(where, "chat_messages", "mapping")

    def read(self, item: Item) -> Iterator[Given]:
        """The conversations of a list, one after the other."""
        with opened(item) as stream:
            for found in elements(stream, item.file):
                if isinstance(found, Problem):
                    yield found
                else:
                    yield from _Chat(found, item.file).given()

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """The address of the conversation; in a browser it goes on from there."""
        return f"https://claude.ai/chat/{conversation_of(host_id)}"


class _Chat:
    """One conversation of the list."""

    def __init__(self, element: Element, file: Path) -> None:
        self._value = element.value if isinstance(element.value, Mapping) else {}
        self._number, self._line, self._file = element.number, element.line, file
        self._messages: dict[str, Mapping[str, Any]] = {}
        self._first: Imported | None = None

    def given(self) -> Iterator[Given]:
        host_id, listed = self._value.get("uuid"), self._value.get("chat_messages")
        if not isinstance(host_id, str) or not host_id or not isinstance(listed, list):
            text = f"element {self._number} of the list is no conversation: it has no uuid or no messages"
            yield Problem(self._file, self._line, text)
            return
        yield from self._gather(listed)
        names: list[str] = []
        for strand in strands(self._parents(), self._current()):
            parent = names[strand.leaves] if strand.leaves is not None else host_id if names else None
            names.append(branch_name(host_id, strand.nodes[0]) if names else host_id)
            yield from self._strand(names[-1], parent, strand)

    def _gather(self, listed: list[Any]) -> Iterator[Given]:
        """Take every message by its name; one that has none, or that another one has, is called by its place."""
        for number, message in enumerate(listed, start=1):
            sender = (message.get("sender") or message.get("role")) if isinstance(message, Mapping) else None
            if not isinstance(sender, str):
                text = f"message {number} of conversation {self._value['uuid']} does not say who wrote it"
                yield Problem(self._file, self._line, text)
                continue
            name = message.get("uuid")
            if not isinstance(name, str) or not name or name in self._messages:
                name = f"#{number}"
            self._messages[name] = message

    def _parents(self) -> dict[str, str | None]:
        """Which message each one follows; where nothing is said of it, the one before it in the list."""
        is_tree = any(message.get("parent_message_uuid") for message in self._messages.values())
        parents: dict[str, str | None] = {}
        before: str | None = None
        for name, message in self._messages.items():
            parent = message.get("parent_message_uuid")
            parents[name] = (parent if isinstance(parent, str) else None) if is_tree else before
            before = name
        return parents

    def _current(self) -> str | None:
        """The end of the line that its owner sees: said, or the message that was written last."""
        said = self._value.get("current_leaf_message_uuid")
        if isinstance(said, str):
            return said
        times = {name: moment(message.get("created_at")) or 0.0 for name, message in self._messages.items()}
        # Of equal moments the later in the list; the latest message has no answer yet, so it is an end.
        return max(reversed(list(times)), key=lambda name: times[name], default=None) if any(times.values()) else None

    def _strand(self, host_id: str, parent: str | None, strand: Strand) -> Iterator[Given]:
        said: list[Imported] = []
        for name in strand.nodes:
            found = chat_messages(self._messages[name], message_name(self._value["uuid"], name))
            said += [Imported(each, self._line) for each in found]
            if not found:
                yield Aside("empty message")
        if not said:
            return
        yield self._conversation(host_id, parent, said[0].message.get("timestamp"))
        if self._first is None:
            self._first = said[0]
        elif parent is not None:
            # By the message that all branches begin with they are known as one family.
            yield self._first
        yield from said

    def _conversation(self, host_id: str, parent: str | None, began: float | None) -> Conversation:
        value = self._value
        title, model = value.get("name"), value.get("model")
        return Conversation(
            host_id,
            title if isinstance(title, str) and title and parent is None else None,
            model if isinstance(model, str) else None,
            None,
            moment(value.get("created_at")) if parent is None else began,
            parent,
            "branch" if parent else None,
            extra={f"claude_{name}": value[name] for name in _FACTS if value.get(name)},
        )
