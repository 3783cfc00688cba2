"""The storage of curated memory: what `MemoryStore` needs below its rules, and its form in a directory of files.

`FileStorage` keeps a user's memory in files, for homes of one machine: MEMORY.md, USER.md, their journal, backups,
proposals and allowances (`memoranda.storage.files.journaled_writer` describes the steps of a write). `table_storage`
keeps it in tables of a database, for nodes that share no files. Planning, scanning, limits, outside changes, receipts,
undo and approval are above this seam, and the same for both.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from memoranda.memory.curated import memory_file
from memoranda.memory.curated.journal import MemoryChange, MemoryJournal
from memoranda.memory.curated.memory_file import MemoryFileState, ReadableMemoryFile, WritableState
from memoranda.memory.curated.settings import FILE_NAMES, PROJECTS, TARGETS, Target, file_name, target_of
from memoranda.storage.files.journal import JournalLines
from memoranda.storage.files.journal_file import LineFile
from memoranda.storage.files.journaled_writer import JournaledWriter, WriteFailure, was_never_published, write_failure
from memoranda.storage.files.named_texts import Document, NamedFiles, NamedTexts
from memoranda.support.durable_files import publish, staged_path
from memoranda.support.home import PENDING, projects_beside
from memoranda.support.text_file import ABSENT

ALLOWANCES = "allowed.json"
FORGOTTEN = "forgotten.json"


class MemoryStorage(ABC):
    """The memory of one user: its texts, their journal, and what belongs to them.

    Paths name texts in messages and receipts; `directory` is the name of the whole. Only files have them on the disk;
    the paths of rows are relative.
    """

    directory: Path
    lines: JournalLines
    journal: MemoryJournal
    texts: NamedTexts
    proposals: NamedTexts
    backups: NamedTexts
    allowances: Document
    forgotten: Document
    """The hashes of forgotten entries."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything was ever stored."""

    def path(self, target: Target) -> Path:
        return self.texts.path(file_name(target))

    def targets(self) -> tuple[Target, ...]:
        """The notes, the profile, and every project that has a text."""
        found = [target_of(name) for name in self.texts.names() if name not in FILE_NAMES.values()]
        return (*TARGETS, *filter(None, found))

    @abstractmethod
    def read(self, target: Target, known: ReadableMemoryFile | None) -> MemoryFileState:
        """The text of a target; returns `known` itself when it is the same."""

    @abstractmethod
    def exclusive(self, timeout: float | None = None) -> AbstractContextManager[None]:
        """Locks the memory of this user against all other writers, and cleans up after a killed one.

        Raises LockTimeoutError when another writer holds the lock for more than `timeout` seconds.
        """

    def find_write_failure(self, state: WritableState) -> WriteFailure | None:
        """Why a text that was read must not be replaced; a row is no link, and has no permissions of its own."""
        return None

    @abstractmethod
    def replace_all(
        self,
        writes: Sequence[tuple[WritableState, bytes]],
        lines: Sequence[MemoryChange],
        before_publish: Callable[[], None],
    ) -> WriteFailure | None:
        """Store the lines in the journal and each content in place of what was found: everything, or nothing.

        Needs the lock. `before_publish` is called when only the content is missing; what it stores may remain if the
        content cannot be stored.
        """

    def has_leftovers(self) -> bool:
        """Whether a killed writer left a write that the next use of the lock settles; a database rolls it back."""
        return False

    def leftovers(self) -> list[Path]:
        """What a killed writer may have left."""
        return []

    def remove_leftovers(self) -> None:
        """Remove all leftovers. Needs the lock."""
        for path in self.leftovers():
            path.unlink()


class FileStorage(JournaledWriter[MemoryChange], MemoryStorage):
    """The files of one memory directory, which is created by the first write."""

    def __init__(self, directory: Path, lock_timeout: float) -> None:
        self.lines = LineFile(directory / "journal.jsonl")
        self.journal = MemoryJournal(self.lines)
        super().__init__(directory, self.journal, lock_timeout)
        self._projects = projects_beside(directory)
        folders = {PROJECTS: self._projects}
        names = (*FILE_NAMES.values(), f"{PROJECTS}/*/{FILE_NAMES['memory']}")
        self.texts = NamedFiles(directory, *names, folders=folders)
        self.proposals = NamedFiles(directory / PENDING, "*.json", "rejected/*.json")
        self.backups = NamedFiles(directory, *(f"{name}.bak.*" for name in names), folders=folders)
        self.allowances = Document(NamedFiles(directory, ALLOWANCES), ALLOWANCES)
        self.forgotten = Document(NamedFiles(directory, FORGOTTEN), FORGOTTEN)

    def exists(self) -> bool:
        return self.directory.is_dir()

    def read(self, target: Target, known: ReadableMemoryFile | None) -> MemoryFileState:
        return memory_file.read(self.path(target), known)

    def find_write_failure(self, state: WritableState) -> WriteFailure | None:
        return write_failure(state)

    def has_leftovers(self) -> bool:
        return bool(self._staged())

    def leftovers(self) -> list[Path]:
        found = [path for directory in ("", PENDING) for path in sorted((self.directory / directory).glob(".*.tmp"))]
        return found + sorted(self._projects.glob("*/.*.tmp"))

    def _staged(self) -> dict[Target, Path]:
        """The staged files that exist, by target."""
        folders = os.listdir(self._projects) if self._projects.is_dir() else []
        targets = (
            *TARGETS,
            *filter(None, (target_of(f"{PROJECTS}/{name}/{FILE_NAMES['memory']}") for name in folders)),
        )
        staged = {target: Path(staged_path(self.path(target))) for target in targets}
        return {target: path for target, path in staged.items() if os.path.lexists(path)}

    def _settle(self) -> None:
        staged = self._staged()
        if not staged:
            return
        written = self.journal.newest()
        missing = [
            change
            for change in written
            if change.target in staged
            and was_never_published(staged[change.target], self.path(change.target), change.heads[change.target])
        ]
        if len(missing) < len(written):
            # Some files of the change were replaced, so it has happened.
            missing = [change for change in missing if not self._complete(change, written[0].number)]
        if missing:
            self.journal.append(self.journal.voids_of(missing))
        for path in self._staged().values():
            os.unlink(path)

    def _complete(self, change: MemoryChange, first: int) -> bool:
        """Publish what is staged; False if the file is no longer as it was before the change, and so is left alone."""
        state = self.read(change.target, None)
        is_as_before = getattr(state, "fingerprint", "") == self.journal.heads_before(first).get(change.target, ABSENT)
        if is_as_before:
            publish(self.path(change.target))
        return is_as_before
