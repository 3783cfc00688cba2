"""What all exports have in common: a list of conversations, each a tree of messages.

The line that its owner sees is the session; every other line becomes a branch of it that has only what is its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoranda.importers.exports.archives import opened
from memoranda.importers.exports.json_array import ArrayElement, read_elements
from memoranda.importers.exports.naming import branch_name
from memoranda.importers.exports.strands import split_branches
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
