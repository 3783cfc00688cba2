"""The storage of curated memory: what `MemoryStore` needs below its rules.

`file_storage` keeps a user's memory in a directory of files, for homes of one machine; `table_storage` keeps it in
tables of a database, for nodes that share no files. Planning, scanning, limits, outside changes, receipts, undo and
approval are above this seam, and the same for both.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from memoranda.memory.curated.journal import MemoryChange, MemoryJournal
from memoranda.memory.curated.memory_file import MemoryFileState, ReadableMemoryFile, WritableState
from memoranda.memory.curated.settings import Target
from memoranda.storage.files.journaled_writer import WriteFailure
from memoranda.storage.files.named_texts import Document, NamedTexts


class MemoryStorage(Protocol):
    """The memory of one user: two texts, their journal, and what belongs to them.

    Paths name texts in messages and receipts. Only files have them on the disk; the paths of rows are relative.
    """

    @property
    def directory(self) -> Path:
        """The name of the whole."""

    @property
    def journal(self) -> MemoryJournal: ...
    @property
    def proposals(self) -> NamedTexts: ...
    @property
    def backups(self) -> NamedTexts: ...
    @property
    def allowances(self) -> Document: ...
    @property
    def forgotten(self) -> Document:
        """The hashes of forgotten entries."""

    def exists(self) -> bool:
        """Whether anything was ever stored."""

    def path(self, target: Target) -> Path: ...

    def read(self, target: Target, known: ReadableMemoryFile | None) -> MemoryFileState:
        """The text of a target; returns `known` itself when it is the same."""

    def size(self, target: Target) -> int:
        """The size of the text in bytes; 0 if it is unknown."""

    def modified_at(self, target: Target) -> float:
        """When the text was last written, in seconds since 1970."""

    def exclusive(self, timeout: float | None = None) -> AbstractContextManager[None]:
        """Locks the memory of this user against all other writers, and cleans up after a killed one.

        Raises LockTimeoutError when another writer holds the lock for more than `timeout` seconds.
        """

    def find_write_failure(self, state: WritableState) -> WriteFailure | None:
        """Why a text that was read must not be replaced."""

    def replace(
        self,
        found: WritableState,
        content: bytes,
        lines: Sequence[MemoryChange],
        before_publish: Callable[[], None],
    ) -> WriteFailure | None:
        """Store the lines in the journal and the content in place of what was `found`: both, or neither.

        Needs the lock. `before_publish` is called when only the content is missing; what it stores may remain if the
        content cannot be stored.
        """

    def has_leftovers(self) -> bool:
        """Whether a killed writer left a write that the next use of the lock settles."""

    def leftovers(self) -> list[Path]:
        """What a killed writer may have left."""

    def remove_leftovers(self) -> None:
        """Remove all leftovers. Needs the lock."""
