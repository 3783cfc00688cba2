"""Curated memory in a directory: MEMORY.md, USER.md, their journal, backups, proposals and allowances.

`memoranda.storage.files.journaled_writer` describes the steps of a write.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from memoranda.memory.curated import forgotten_entries, memory_file
from memoranda.memory.curated.journal import MemoryChange, MemoryJournal
from memoranda.memory.curated.memory_file import MemoryFileState, ReadableMemoryFile, WritableState
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.storage.files.journal_file import LineFile
from memoranda.storage.files.journaled_writer import (
    MEMORANDA,
    JournaledWriter,
    WriteFailure,
    was_never_published,
    write_failure,
)
from memoranda.storage.files.named_texts import FileDocument, NamedFiles
from memoranda.support.durable_files import staged_path


class FileStorage(JournaledWriter[MemoryChange]):
    """The files of one memory directory, which is created by the first write."""

    def __init__(self, directory: Path, lock_timeout: float) -> None:
        self.journal = MemoryJournal(LineFile(directory / "journal.jsonl"))
        super().__init__(directory, self.journal, lock_timeout)
        self.proposals = NamedFiles(directory / "pending", "*.json", "rejected/*.json")
        self.backups = NamedFiles(directory, *(f"{name}.bak.*" for name in FILE_NAMES.values()))
        self.allowances = FileDocument(directory / "allowed.json")
        self.forgotten = FileDocument(directory / forgotten_entries.FILE_NAME)
        self._paths = {target: directory / FILE_NAMES[target] for target in TARGETS}
        self._staged = {target: Path(staged_path(path)) for target, path in self._paths.items()}

    def exists(self) -> bool:
        return self.directory.is_dir()

    def path(self, target: Target) -> Path:
        return self._paths[target]

    def read(self, target: Target, known: ReadableMemoryFile | None) -> MemoryFileState:
        return memory_file.read(self._paths[target], known)

    def size(self, target: Target) -> int:
        try:
            return self._paths[target].stat().st_size
        except OSError:
            # The write path reports whatever is wrong with the file.
            return 0

    def modified_at(self, target: Target) -> float:
        return self._paths[target].stat().st_mtime

    def find_write_failure(self, state: WritableState) -> WriteFailure | None:
        return write_failure(state)

    def replace(
        self, found: WritableState, content: bytes, lines: Sequence[MemoryChange], before_publish: Callable[[], None]
    ) -> WriteFailure | None:
        return self._replace(found, content, lines, before_publish=before_publish)

    def has_leftovers(self) -> bool:
        return any(map(os.path.lexists, self._staged.values()))

    def leftovers(self) -> list[Path]:
        return [*sorted(self.directory.glob(".*.tmp")), *sorted(self.proposals.directory.glob(".*.tmp"))]

    def remove_leftovers(self) -> None:
        for path in self.leftovers():
            path.unlink()

    def _settle(self) -> None:
        for target, staged in self._staged.items():
            if not os.path.lexists(staged):
                continue
            last = self.journal.last()
            head = last.heads.get(target) if last and last.target == target else None
            if last and head is not None and was_never_published(staged, self.path(target), head):
                self.journal.append([self.journal.void_of(last, MEMORANDA)])
            os.unlink(staged)
