"""Converts a conversation of an export, which is a tree of messages, to a session and its branches.

Users can edit a message and regenerate an answer. The branch that the service shows is the session; every other branch
becomes a branch of the session and contains only its own messages.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import part_events
from memoranda.importers.exports.archives import ArrayElement, open_list, read_elements
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent
from memoranda.support.lazy_dataclass import dataclass


class ConversationTree(ABC):
    """One conversation of an export."""

    def __init__(self, element: ArrayElement, file: Path) -> None:
        self._value: Mapping[str, Any] = element.value if isinstance(element.value, Mapping) else {}
        self._number, self._line, self._file = element.number, element.line, file
        self._first: ImportedMessage | None = None

    @abstractmethod
    def events(self) -> Iterator[ReadEvent]:
        """Yield the session and its branches, with their messages."""

    @abstractmethod
    def _message_events(self, name: str) -> Iterator[ReadEvent]:
        """Yield the events of one message."""

    @abstractmethod
    def _conversation(self, host_id: str, parent: str | None, imported: list[ImportedMessage]) -> ImportedConversation:
        """Return the session, or a branch of `parent`, with these messages."""

    def _branch_events(self, host_id: str, parents: Mapping[str, str | None], current: Any) -> Iterator[ReadEvent]:
        """Yield every branch; `parents` maps each message to the one before it, `current` ends the visible branch."""
        names: list[str] = []
        for branch in split_branches(parents, current if isinstance(current, str) else None):
            parent = names[branch.forks_from] if branch.forks_from is not None else host_id if names else None
            # The visible branch keeps the id of the conversation; others add their first message to it.
            names.append(f"{host_id}{_BRANCH}{branch.nodes[0]}" if names else host_id)
            messages = [found for name in branch.nodes for found in self._message_events(name)]
            imported = [event for event in messages if isinstance(event, ImportedMessage)]
            if imported:
                yield self._conversation(names[-1], parent, imported)
                if self._first is None:
                    self._first = imported[0]
                elif parent is not None:
                    # All branches start with the same message, which makes them a family.
                    yield self._first
            yield from messages

    def _problem(self, text: str) -> Problem:
        return Problem(self._file, self._line, text)


@dataclass(frozen=True, slots=True)
class TreeMessage:
    """A message of a chat with parts as `part_events` reads them, and the message before it."""

    parent: str | None
    role: str
    parts: list[dict[str, Any]]
    at: Any


class ChatTree(ConversationTree):
    """A chat whose messages were read already; `current` ends the branch that the program shows."""

    def __init__(
        self, file: Path, chat: ImportedConversation, messages: Mapping[str, TreeMessage], current: str | None = None
    ) -> None:
        super().__init__(ArrayElement(None, 0, 0), file)
        self._chat, self._messages, self._current = chat, messages, current

    def events(self) -> Iterator[ReadEvent]:
        parents = {name: message.parent for name, message in self._messages.items()}
        return self._branch_events(self._chat.host_id, parents, self._current)

    def _message_events(self, name: str) -> Iterator[ReadEvent]:
        message = self._messages[name]
        return part_events(message.role, message.parts, message_name(self._chat.host_id, name), message.at)

    def _conversation(self, host_id: str, parent: str | None, imported: list[ImportedMessage]) -> ImportedConversation:
        if parent is None:
            return self._chat
        # A branch starts with its own first message, and the title is the session's.
        return replace(
            self._chat, host_id=host_id, title=None, started_at=None, parent_host_id=parent, relation="branch"
        )


def read_list(item: ImportItem, kind: type[ConversationTree]) -> Iterator[ReadEvent]:
    """Yield the conversations of a list, one after the other."""
    with open_list(item) as stream:
        for found in read_elements(stream, item.file):
            if isinstance(found, Problem):
                yield found
            else:
                yield from kind(found, item.file).events()


@dataclass(frozen=True, slots=True)
class Branch:
    """Messages in order, and the index of the branch that they fork from; the first branch is the visible one."""

    nodes: tuple[str, ...]
    forks_from: int | None


def split_branches(parents: Mapping[str, str | None], current: str | None) -> list[Branch]:
    """Split a tree so that each node is in one branch: first the one that ends in `current`, then the others."""
    inner = set(parents.values())
    ends = [node for node in parents if node not in inner]
    first = current if current in parents else ends[-1] if ends else next(iter(parents), None)
    found: list[Branch] = []
    placed: dict[str, int] = {}
    # Nodes in a cycle have no end, so they come last.
    for end in [*([first] if first is not None else []), *ends, *parents]:
        line: dict[str, None] = {}
        node: str | None = end
        while node is not None and node in parents and node not in placed and node not in line:
            line[node] = None
            node = parents[node]
        if line:
            forks_from = placed.get(node) if node is not None else None
            placed.update(dict.fromkeys(line, len(found)))
            found.append(Branch(tuple(reversed(line)), forks_from))
    return found


_BRANCH = "~"


def message_name(host_id: str, name: str) -> str:
    """Return the id of a message in its conversation, as text that every database can store."""
    return f"{host_id}/{name}".encode("utf-8", "backslashreplace").decode()


def conversation_of(host_id: str) -> str:
    """Return the id of the conversation that a session or branch belongs to."""
    return host_id.split(_BRANCH, maxsplit=1)[0]
