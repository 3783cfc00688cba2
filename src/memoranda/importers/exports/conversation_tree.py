"""What all exports have in common: a list of conversations, each a tree of messages.

The line that its owner sees is the session; every other line becomes a branch of it that has only what is its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.importers.exports.archives import opened
from memoranda.importers.exports.json_array import ArrayElement, read_elements
from memoranda.importers.reader_protocol import ImportedConversation, ImportedMessage, ImportItem, Problem, ReadEvent


class ConversationTree(ABC):
    """One conversation of the list."""

    def __init__(self, element: ArrayElement, file: Path) -> None:
        self._value: Mapping[str, Any] = element.value if isinstance(element.value, Mapping) else {}
        self._number, self._line, self._file = element.number, element.line, file
        self._first: ImportedMessage | None = None

    @abstractmethod
    def given(self) -> Iterator[ReadEvent]:
        """The session and its branches, with their messages."""

    @abstractmethod
    def _node(self, name: str) -> Iterator[ReadEvent]:
        """What one message gives."""

    @abstractmethod
    def _conversation(self, host_id: str, parent: str | None, said: list[ImportedMessage]) -> ImportedConversation:
        """What is known of the session, or of a branch of `parent`, in which that was said."""

    def _lines(self, host_id: str, parents: Mapping[str, str | None], current: Any) -> Iterator[ReadEvent]:
        """Every line of the tree: `parents` are the messages that others follow, `current` is the end people see."""
        names: list[str] = []
        for strand in split_branches(parents, current if isinstance(current, str) else None):
            parent = names[strand.leaves] if strand.leaves is not None else host_id if names else None
            # What people see keeps the name of the conversation; a branch is called after where it begins.
            names.append(branch_name(host_id, strand.nodes[0]) if names else host_id)
            messages = [found for name in strand.nodes for found in self._node(name)]
            said = [each for each in messages if isinstance(each, ImportedMessage)]
            if said:
                yield self._conversation(names[-1], parent, said)
                if self._first is None:
                    self._first = said[0]
                elif parent is not None:
                    # By the message that all branches begin with they are known as one family.
                    yield self._first
            yield from messages

    def _problem(self, text: str) -> Problem:
        return Problem(self._file, self._line, text)


def read_list(item: ImportItem, kind: type[ConversationTree]) -> Iterator[ReadEvent]:
    """The conversations of a list, one after the other."""
    with opened(item) as stream:
        for found in read_elements(stream, item.file):
            if isinstance(found, Problem):
                yield found
            else:
                yield from kind(found, item.file).given()


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of messages, and the number of the strand that it leaves; the first is the one that people see."""

    nodes: tuple[str, ...]
    leaves: int | None


def split_branches(parents: Mapping[str, str | None], current: str | None) -> list[Branch]:
    """Every node of a tree once: the line that ends in `current`, then for each other end what it has of its own."""
    inner = set(parents.values())
    ends = [node for node in parents if node not in inner]
    first = current if current in parents else ends[-1] if ends else next(iter(parents), None)
    found: list[Branch] = []
    placed: dict[str, int] = {}
    # Whatever hangs in a circle has no end; it comes last.
    for end in [*([first] if first is not None else []), *ends, *parents]:
        line: dict[str, None] = {}
        node: str | None = end
        while node is not None and node in parents and node not in placed and node not in line:
            line[node] = None
            node = parents[node]
        if line:
            leaves = placed.get(node) if node is not None else None
            placed.update(dict.fromkeys(line, len(found)))
            found.append(Branch(tuple(reversed(line)), leaves))
    return found


_BRANCH = "~"


def message_name(host_id: str, name: str) -> str:
    """The name of a message in its conversation, without half characters, which no database takes."""
    return f"{host_id}/{name}".encode("utf-8", "backslashreplace").decode()


def branch_name(host_id: str, first: str) -> str:
    """The name of a branch: the conversation, and the message with which it goes its own way."""
    return f"{host_id}{_BRANCH}{first}"


def conversation_of(host_id: str) -> str:
    """The conversation that a session is, or is a branch of."""
    return host_id.split(_BRANCH, maxsplit=1)[0]
