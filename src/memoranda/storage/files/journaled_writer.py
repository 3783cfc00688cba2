"""The write path that curated memory and skills share: every change is in the journal before it is in a file.

1. Take the lock of the directory (a timeout names the process that holds it).
2. Settle what a killed writer left behind: remove its staged file, and void its journal line.
3. Read the file and refuse one that must not be replaced (`read_failure`, `write_failure`).
4. Let the caller plan the change and check it, which may end in a refusal.
5. Stage the new content next to the file, and sync it.
6. Append the change to the journal, and sync it.
7. Check that the file is still the one that was read, then rename the staged file over it and sync the directory.

Before step 6 is durable nothing has happened; after the rename everything has. A writer that is killed in between
leaves its staged file behind, which shows the next writer that the newest journal line is void. A change of several
files stages all of them first; after the first rename, what is still staged is renamed by the next writer.
"""

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import starmap
from pathlib import Path
from typing import Generic, Literal, TypeVar

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.files.journal import Journal, Line
from memoranda.storage.forks import process_mark, require_same_process
from memoranda.support.durable_files import (
    make_private_directory,
    publish,
    read_file,
    stage,
    staged_path,
    sync_directory,
)
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import (
    MissingFile,
    TextFile,
    UndecodableFile,
    UnreadableFile,
    fingerprint,
    has_content,
    is_unchanged,
)

Result = TypeVar("Result")
FailureReason = Literal["locked", "storage", "unreadable", "undecodable", "symlink", "read_only", "changed"]


@dataclass(frozen=True, slots=True)
class WriteFailure:
    """Why a file was not written; it is as it was before."""

    reason: FailureReason
    message: str


class JournaledWriter(ABC, Generic[Line]):
    """Changes the files of one directory under its lock. A subclass knows which journal line belongs to which file."""

    def __init__(
        self, directory: Path, journal: Journal[Line], lock_timeout: float, staged_for: Path | None = None
    ) -> None:
        """`staged_for` is the file next to which all content is staged, if not next to the one that it replaces."""
        self.directory = directory
        self._journal = journal
        self._lock_timeout = lock_timeout
        self._staged_for = staged_for
        self._opened_in = process_mark()

    @abstractmethod
    def _settle(self) -> None:
        """Remove staged files, and void the newest journal line if its change never reached its file."""

    @contextmanager
    def exclusive(self, timeout: float | None = None) -> Iterator[None]:
        """Hold the lock of the directory, after settling what a killed writer left."""
        require_same_process(self._opened_in, self.directory)
        make_private_directory(self.directory)
        with FileLock(self.directory / ".lock", self._lock_timeout if timeout is None else timeout):
            self._settle()
            yield

    def repair(self) -> None:
        """Settle what a killed writer left, or raise what prevents it."""
        with self.exclusive(timeout=0):
            return

    def replace(
        self,
        found: TextFile | MissingFile,
        content: bytes,
        lines: Sequence[Line],
        before_publish: Callable[[], None] = lambda: None,
    ) -> WriteFailure | None:
        """Steps 5 to 7: replace the file that was `found`, unless another program has changed it since.

        `before_publish` is called when the journal has the lines and the rename is next.
        """
        return self.replace_all([(found, content)], lines, before_publish)

    def replace_all(
        self,
        writes: Sequence[tuple[TextFile | MissingFile, bytes]],
        lines: Sequence[Line],
        before_publish: Callable[[], None] = lambda: None,
    ) -> WriteFailure | None:
        """The same for several files: a writer that is killed leaves all of them as they were, or all replaced.

        As soon as one file is replaced, the change has happened; what is staged for the others follows when the next
        writer settles.
        """
        staged_for = [self._staged_for or found.path for found, _ in writes]
        try:
            for path, (_, content) in zip(staged_for, writes, strict=True):
                make_private_directory(path.parent)
                stage(path, content)
            if len(writes) > 1:
                # A power cut must not take the staged files of a change that has begun.
                for directory in {path.parent for path in staged_for}:
                    sync_directory(directory)
            self._journal.append(lines)
            changed = [found.path for found, _ in writes if not is_unchanged(found)]
            if changed:
                self._settle()
                return WriteFailure(
                    "changed",
                    f"{changed[0]} was changed by another program during this write. Nothing was written. "
                    "Send your change again.",
                )
            before_publish()
            for path, (found, _) in zip(staged_for, writes, strict=True):
                publish(path, found.path)
        except BaseException as error:
            _recover([(found.path, content) for found, content in writes], staged_for, self._settle, error)
            raise
        return None


def run_exclusively(
    exclusive: Callable[[], AbstractContextManager[None]], path: Path, write: Callable[[], Result]
) -> Result | WriteFailure:
    """Call `write` under a lock; what the lock or the storage raises becomes a failure that names `path`."""
    try:
        with exclusive():
            return write()
    except LockTimeoutError as error:
        return WriteFailure("locked", str(error))
    except StorageError as error:
        return WriteFailure("storage", str(error))
    except OSError as error:
        return WriteFailure(
            "storage",
            f"{error.filename or path}: {error.strerror or error}. Nothing was written; "
            "'memoranda doctor' names the cause.",
        )


def read_failure(state: UnreadableFile | UndecodableFile) -> WriteFailure:
    """Why a file can be neither shown nor replaced; a file that cannot be read is never treated as empty."""
    if isinstance(state, UndecodableFile):
        problem, advice = "is not UTF-8 text", "Convert it to UTF-8 or move it away, then try again."
    else:
        problem, advice = "cannot be read", "'memoranda doctor' says how to repair it."
    return WriteFailure(
        "undecodable" if isinstance(state, UndecodableFile) else "unreadable",
        f"{state.path} {problem} ({state.problem}). Nothing was written and the file was left as it is. {advice}",
    )


def write_failure(state: TextFile | MissingFile) -> WriteFailure | None:
    """Why a file that was read must not be replaced: it is a link, or its owner has set it to read-only."""
    if isinstance(state, MissingFile):
        return None
    path, mode = state.path, os.lstat(state.path).st_mode
    if stat.S_ISLNK(mode):
        return WriteFailure(
            "symlink",
            f"{path} is a link to {path.resolve()}. Replacing it would cut the link, so nothing was written. "
            "Put the file itself here.",
        )
    # A rename would not need the permission, but an owner who removed it does not want the file to change.
    if not mode & stat.S_IWUSR:
        return WriteFailure(
            "read_only",
            f"{path} is read-only (its owner may not write it). Nothing was written. "
            "Restore the permission with chmod 600 if the file may change.",
        )
    return None


def was_never_published(staged: Path, path: Path, wanted: str) -> bool:
    """Whether a staged file has the content with the fingerprint `wanted`, and the file itself does not."""
    if fingerprint(read_file(staged)) != wanted:
        return False
    try:
        return fingerprint(read_file(path)) != wanted
    except OSError:
        # Missing or unreadable, so the rename has not happened.
        return True


def _recover(
    writes: Sequence[tuple[Path, bytes]], staged_for: Sequence[Path], settle: Callable[[], None], error: BaseException
) -> None:
    """After a failure: undo everything, unless the files are in place and only their confirmation is missing."""
    if any(os.path.lexists(staged_path(path)) for path in staged_for) or not all(starmap(_is_in_place, writes)):
        settle()
    if isinstance(error, OSError) and all(starmap(_is_in_place, writes)):
        raise StorageError(
            f"{writes[-1][0]} was written, but the disk did not confirm it ({error}). "
            "It may be lost if the power fails now; check the disk."
        ) from error


def _is_in_place(path: Path, content: bytes) -> bool:
    try:
        return has_content(path, content)
    except OSError:
        # Unreadable, so not what was written.
        return False
