"""The protocol of readers: what a reader of another program's conversations finds, and the events that it yields.

A reader only reads. `scan` lists the files, databases or archives to read; `read` reads one of them and yields, in
order, a conversation, its messages, possibly the next conversation, and a problem for each part that it could not
understand. So everything in a source is either imported or reported. Planning, writing and remembering what was
already read is the job of the importer, and is the same for every reader.

A reader may yield a conversation again, to continue it after another one or because it learned more about it (its
title, for example): the importer updates the fields that are set and removes nothing. A reader of files that only grow
yields checkpoints; the importer stores the last one and passes it back as `ImportItem.checkpoint`, so that the next
import reads only what is new.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from memoranda.memory.curated.settings import Target
from memoranda.memory.record.transfer.imports import MessageState
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.memory.checkpoints.store import StoredCheckpoint


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a source that could not be imported, by file and line.

    `unread` marks a source that could not be read at all, for reasons outside the file (no permission, a lock, a
    missing library): the next import reads the item again although it has not changed. An `unfinished` line is still
    being written: it is no fault of the file, and the next import reads it when it is complete.
    """

    file: Path
    line: int | None
    text: str
    unread: bool = False
    unfinished: bool = False


class ReadError(Exception):
    """Raised by a reader that cannot read an item further; the importer reports the problem, and continues."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A position in a file that only grows: everything before it was yielded. `state` belongs to the reader."""

    offset: int
    line: int
    state: str = ""


@dataclass(frozen=True, slots=True)
class ImportItem:
    """A transcript file, database or archive as the scan found it; `label` says which part of the file it is."""

    file: Path
    size: int
    modified_at: float
    label: str
    checkpoint: Checkpoint | None = None

    def reader_state(self) -> dict[str, Any]:
        """Return what the reader stored at the checkpoint as a JSON object; empty without one."""
        return json.loads(self.checkpoint.state) if self.checkpoint and self.checkpoint.state else {}


@dataclass(frozen=True, slots=True)
class ImportedConversation:
    """One session of the other program; the messages that follow belong to it."""

    host_id: str
    title: str | None = None
    model: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent_host_id: str | None = None
    relation: str | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    same_as: str = ""
    """The id of the same conversation in another format of the program, whose messages have other ids."""
    names: tuple[str, ...] = ()
    """The names of a framework's conversation, of which our adapter makes its id: it finds what was imported."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Values for columns of the sessions table, from a program whose record has the same ones; see `ImportedRows`."""


class ImportedMessage(NamedTuple):
    """One message in chat form: role, content, tool_calls, tool_call_id, timestamp ..., and a stable external_id."""

    message: dict[str, Any]
    line: int | None = None
    state: MessageState | None = None
    """For a program that records which messages were rewound or compressed; sessions in `original` by their host id."""
    given_away: bool = False
    """The reader does not use the message again, so it may be cleared."""


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """A value that a program keeps under a namespace and a key: it becomes an item under the same names.

    Times are seconds since 1970. The one that was written later stays, whether here or there.
    """

    namespace: tuple[str, ...]
    key: str
    value: Any
    created_at: float
    updated_at: float
    ttl: float | None = None
    expires_at: float | None = None


class ImportedState(NamedTuple):
    """The state of a graph after a step of the conversation before it, from which our checkpointer continues."""

    checkpoint: "StoredCheckpoint"


@dataclass(frozen=True, slots=True)
class ImportedProposal:
    """A text that the other program shows to its agent in every prompt: a proposal for curated memory.

    A person decides about it. A reader yields the text as a note, too, so that recall finds it whatever the decision.
    `origin` says where the text is from, for that person.
    """

    target: Target
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line without a message, such as bookkeeping of the other program; the summary counts them by label.

    Lines of a kind that the reader does not know (`is_unknown`) are also counted for the doctor.
    """

    label: str
    is_unknown: bool = False


ReadEvent = (
    ImportedConversation
    | ImportedMessage
    | ImportedItem
    | ImportedState
    | ImportedProposal
    | Problem
    | Skipped
    | Checkpoint
)


class ConversationReader(Protocol):
    """Finds and reads the conversations of one program."""

    @property
    def name(self) -> str:
        """The name of the source on the command line and in the record, such as `claude-code`."""
        ...

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """List the items under `path`, or in the program's own directories; unusual files never raise an error."""
        ...

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield a conversation, then its messages, then possibly the next; memory is bounded whatever the size.

        Raises ReadError or OSError for an item that cannot be read at all, or not further.
        """
        ...


@runtime_checkable
class ResumableReader(Protocol):
    """A reader whose program can resume a session; others open them in a window, or have none."""

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the exact command that resumes the session in its own program, or "" if this one has none."""
        ...
