"""The one write path of skills: the same lock, journal and atomic replacement as curated memory has.

In order: take the lock, settle what a killed writer left, read the file, plan, judge, then stage, journal, look once
more, publish. Nothing is deleted: what goes is moved into the archive by one rename, after the journal has the line.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.skills import refusals
from memoranda.skills.journal import Moved, PassageEdit, SkillAction, SkillChange, SkillJournal
from memoranda.skills.write_result import SkillReceipt, SkillRefusal
from memoranda.support.durable_files import make_private_directory, staged_path, sync_directory
from memoranda.support.file_lock import FileLock
from memoranda.support.journaled_replace import replace_with_journal
from memoranda.support.origin import Origin
from memoranda.support.text_file import (
    MissingFile,
    TextFile,
    UndecodableFile,
    UnreadableFile,
    fingerprint,
    has_content,
    read_text,
)

_MEMORANDA = Origin("memoranda")


@dataclass(frozen=True, slots=True)
class SkillTextRequest:
    """What to make of one file: `plan` gets its text (None when it is not there) and gives the next, or a refusal.

    `accept` is called when the change is journalled and about to be made, for what a person allows with it.
    """

    skill: str
    path: str
    action: SkillAction
    origin: Origin
    plan: Callable[[TextFile | None], str | SkillRefusal]
    done: str
    refers_to: int | None = None
    accept: Callable[[str], None] = lambda text: None


@dataclass(frozen=True, slots=True)
class SkillMoveRequest:
    """A file or a whole skill that goes into the archive, or comes back from it."""

    skill: str
    path: str
    action: SkillAction
    origin: Origin
    check: Callable[[], SkillRefusal | None]
    done: str
    # Where it lies in the archive when it comes back; empty when it goes there.
    archive: str = ""
    refers_to: int | None = None

    @property
    def moved(self) -> Moved:
        return "back" if self.archive else "away"


class SkillWriter:
    """Changes the skills in one directory, and keeps their journal."""

    def __init__(self, root: Path, lock_timeout: float) -> None:
        self.root = root
        self.journal = SkillJournal(root / ".journal.jsonl")
        self._lock_timeout = lock_timeout
        # All content waits under one name, so that nobody's file is ever mistaken for a leftover.
        self._staging = root / "next"

    @property
    def archive(self) -> Path:
        return self.root / ".archive"

    @property
    def leftover(self) -> Path:
        """What a writer leaves behind that is killed."""
        return Path(staged_path(self._staging))

    @contextmanager
    def exclusive(self, timeout: float | None = None) -> Iterator[None]:
        """Be the only one who writes here, with nothing left over from a writer that was killed."""
        make_private_directory(self.root)
        with FileLock(self.root / ".lock", self._lock_timeout if timeout is None else timeout):
            self._settle()
            yield

    def commit(self, request: SkillTextRequest | SkillMoveRequest) -> SkillReceipt | SkillRefusal:
        """Carry out a change, or say why not; everything is then as it was."""
        try:
            with self.exclusive():
                return self._write(request) if isinstance(request, SkillTextRequest) else self._move(request)
        except LockTimeoutError as error:
            return SkillRefusal(request.skill, "locked", str(error))
        except StorageError as error:
            return SkillRefusal(request.skill, "storage", str(error))
        except OSError as error:
            return refusals.disk(request.skill, self.root / request.path, error)

    def read(self, skill: str, path: str) -> TextFile | MissingFile | SkillRefusal:
        """A file as it may be read or written over, or why not."""
        if refusal := self.refuse_links(skill, path):
            return refusal
        state = read_text(self.root / path)
        if isinstance(state, UnreadableFile | UndecodableFile):
            return refusals.not_readable(skill, state)
        return state

    def refuse_links(self, skill: str, path: str) -> SkillRefusal | None:
        """Why a path is not used: a part of it is a link."""
        place = self.root
        for part in path.split("/"):
            place = place / part
            if place.is_symlink():
                return refusals.symlink(skill, place)
        return None

    def _write(self, request: SkillTextRequest) -> SkillReceipt | SkillRefusal:
        path = self.root / request.path
        state = self.read(request.skill, request.path)
        if isinstance(state, SkillRefusal):
            return state
        present = state if isinstance(state, TextFile) else None
        mode = stat.S_IMODE(path.stat().st_mode) if present else None
        # Who took the owner's write permission away means it, though a rename would not need it.
        if mode is not None and not mode & stat.S_IWUSR:
            return refusals.read_only(request.skill, path)
        planned = request.plan(present)
        if isinstance(planned, SkillRefusal):
            return planned
        if present and planned == present.text:
            return SkillReceipt(request.skill, path, "It says so already: nothing was changed.")
        content = planned.encode()
        noticed = self._notice_outside_change(request, state)
        number = self.journal.next_number() + len(noticed)
        change = SkillChange(
            number, request.skill, request.path, request.action, request.origin.actor, request.origin.session,
            state.fingerprint, fingerprint(content), PassageEdit.between(present.text if present else "", planned),
            refers_to=request.refers_to,
        )  # fmt: skip

        def still_wanted() -> bool:
            if not has_content(path, present.raw if present else None):
                return False
            # Only now, when the journal knows of it: an empty folder that is left behind has somebody to remove it.
            make_private_directory(path.parent)
            if mode is not None:
                os.chmod(staged_path(self._staging), mode)
            request.accept(planned)
            return True

        written = replace_with_journal(
            path, content, staged_for=self._staging, settle=self._settle, still_wanted=still_wanted,
            record=lambda: self.journal.append([*noticed, change]),
        )  # fmt: skip
        if not written:
            return refusals.changed_while_writing(request.skill, path)
        return SkillReceipt(request.skill, path, request.done, number)

    def _move(self, request: SkillMoveRequest) -> SkillReceipt | SkillRefusal:
        path = self.root / request.path
        if refusal := self.refuse_links(request.skill, request.path) or request.check():
            return refusal
        number = self.journal.next_number()
        archive = request.archive or f"{number}/{path.name}"
        change = SkillChange(
            number, request.skill, request.path, request.action, request.origin.actor, request.origin.session,
            moved=request.moved, archive=archive, refers_to=request.refers_to,
        )  # fmt: skip
        source, place = path, self.archive / archive
        if request.moved == "back":
            source, place = place, source
        if os.path.lexists(place):
            raise StorageError(f"{place} is in the way. Nothing was changed; move it elsewhere.")
        make_private_directory(place.parent)
        self.journal.append([change])
        try:
            os.rename(source, place)
        except BaseException:
            self._settle()
            raise
        sync_directory(source.parent)
        sync_directory(place.parent)
        self._drop_empty(source.parent)
        return SkillReceipt(request.skill, path, request.done, number)

    def _settle(self) -> None:
        """Take back the newest change if it was journalled and never made. Needs the lock."""
        last = self.journal.last()
        if last is not None and last.action != "void" and self._never_made(last):
            self.journal.append([self.journal.void_of(last, _MEMORANDA)])
            self._drop_empty((self.archive / last.archive if last.moved else self.root / last.path).parent)
        if os.path.lexists(self.leftover):
            os.unlink(self.leftover)

    def _never_made(self, change: SkillChange) -> bool:
        if change.moved:
            archived = os.path.lexists(self.archive / change.archive)
            return archived if change.moved == "back" else not archived and os.path.lexists(self.root / change.path)
        if change.edit is None or not os.path.lexists(self.leftover):
            return False
        # The staged file is this change's, and what it should have become is not there.
        staged = fingerprint(self.leftover.read_bytes()) == change.after
        state = read_text(self.root / change.path)
        return staged and not (isinstance(state, TextFile) and state.fingerprint == change.after)

    def _notice_outside_change(self, request: SkillTextRequest, state: TextFile | MissingFile) -> list[SkillChange]:
        """A journal line for what another program did to the file since we last wrote it."""
        known = self.journal.head(request.path)
        if known is None or known == state.fingerprint or isinstance(state, MissingFile):
            return []
        number = self.journal.next_number()
        return [SkillChange(number, request.skill, request.path, "outside", "outside", "", known, state.fingerprint)]

    def _drop_empty(self, directory: Path) -> None:
        """Remove directories that we emptied, up to the root."""
        while directory not in (self.root, self.archive) and directory.is_relative_to(self.root):
            try:
                directory.rmdir()
            except OSError:
                # It is not empty, or not ours to remove.
                return
            directory = directory.parent
