"""The shape that every importer has: what a reader of another program's transcripts finds, and what it gives.

A reader only reads. `scan` names the files, databases or archives that are there; `read` goes through one of them and
gives, in order, a conversation, its messages, perhaps the next conversation, and a problem wherever something could not
be understood. Everything a source holds is therefore either given or named; planning, writing and remembering what has
been read already belong to the engine, and are the same for every reader.

A conversation may be given again, to go on with it after another one or because more is known about it by now (its
title, say): what is filled in is taken over, nothing is taken away. A reader of files that only grow gives marks as it
goes; the engine keeps the last one and hands it back as `Item.begin`, so that next time only what is new is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that was skipped, said by file and line.

    `unread` is what could not be read at all, for reasons that lie outside of it (no permission, a lock, a missing
    library): it is looked at again although it has not changed.
    """

    file: Path
    line: int | None
    text: str
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A place in a file that only grows: everything before it has been given. `state` is the reader's own memory."""

    offset: int
    line: int
    state: str = ""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One transcript file, database or archive that was found, as it was when it was found."""

    file: Path
    size: int
    changed: float
    what: str
    begin: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """One session of the other program; the messages that follow it belong to it."""

    host_id: str
    title: str | None = None
    model: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent_host_id: str | None = None
    relation: str | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message in chat form: role, content, tool_calls, tool_call_id, timestamp ..., and a stable external_id."""

    message: dict[str, Any]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that carries no message, such as bookkeeping of the other program; it is counted by what it is."""

    what: str


ReadEvent = ImportedConversation | ImportedMessage | Problem | Skipped | Checkpoint


class ConversationReader(Protocol):
    """What an importer of one program is: it finds, reads, and knows how that program takes a session up again."""

    @property
    def name(self) -> str:
        """The source by which people and the record know it, such as `claude-code`."""
        ...

    def scan(self, where: Path | None) -> Sequence[ImportItem]:
        """Name what there is to read under `where`, or in the program's own places; odd files never raise."""
        ...

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Give a conversation, then its messages, then perhaps the next; memory is bounded whatever the size."""
        ...

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Say the exact command that takes the session up again in its own program, or nothing."""
        ...
