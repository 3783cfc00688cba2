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
from memoranda.skills.journal import Action, Change, Journal, Moved, TextEdit
from memoranda.skills.outcome import Receipt, Refusal
from memoranda.support.files import make_private_directory, staged_path, sync_directory
from memoranda.support.lock import FileLock
from memoranda.support.origin import Origin
from memoranda.support.recorded import replace_recorded
from memoranda.support.text_file import Missing, Text, Undecodable, Unreadable, fingerprint, holds, read_text

_MEMORANDA = Origin("memoranda")


@dataclass(frozen=True, slots=True)
class TextDraft:
    """What to make of one file: `plan` gets its text (None when it is not there) and gives the next, or a refusal.

    `accept` is called when the change is journalled and about to be made, for what a person allows with it.
    """

    skill: str
    path: str
    action: Action
    origin: Origin
    plan: Callable[[Text | None], str | Refusal]
    done: str
    refers_to: int | None = None
    accept: Callable[[str], None] = lambda text: None


@dataclass(frozen=True, slots=True)
class MoveDraft:
    """A file or a whole skill that goes into the archive, or comes back from it."""

    skill: str
    path: str
    action: Action
    origin: Origin
    check: Callable[[], Refusal | None]
    done: str
    # Where it lies in the archive when it comes back; empty when it goes there.
    archive: str = ""
    refers_to: int | None = None

    @property
    def moved(self) -> Moved:
        return "back" if self.archive else "away"


class Writer:
    """Changes the skills in one directory, and keeps their journal."""

    def __init__(self, root: Path, lock_timeout: float) -> None:
        self.root = root
        self.journal = Journal(root / ".journal.jsonl")
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

    def commit(self, draft: TextDraft | MoveDraft) -> Receipt | Refusal:
        """Carry out a change, or say why not; everything is then as it was."""
        try:
            with self.exclusive():
                return self._write(draft) if isinstance(draft, TextDraft) else self._move(draft)
        except LockTimeoutError as error:
            return Refusal(draft.skill, "locked", str(error))
        except StorageError as error:
            return Refusal(draft.skill, "storage", str(error))
        except OSError as error:
            return refusals.disk(draft.skill, self.root / draft.path, error)

    def read(self, skill: str, path: str) -> Text | Missing | Refusal:
        """A file as it may be read or written over, or why not."""
        if refusal := self.refuse_links(skill, path):
            return refusal
        state = read_text(self.root / path)
        if isinstance(state, Unreadable | Undecodable):
            return refusals.not_readable(skill, state)
        return state

    def refuse_links(self, skill: str, path: str) -> Refusal | None:
        """Why a path is not used: a part of it is a link."""
        place = self.root
        for part in path.split("/"):
            place = place / part
            if place.is_symlink():
                return refusals.symlink(skill, place)
        return None

    def _write(self, draft: TextDraft) -> Receipt | Refusal:
        path = self.root / draft.path
        state = self.read(draft.skill, draft.path)
        if isinstance(state, Refusal):
            return state
        present = state if isinstance(state, Text) else None
        mode = stat.S_IMODE(path.stat().st_mode) if present else None
        # Who took the owner's write permission away means it, though a rename would not need it.
        if mode is not None and not mode & stat.S_IWUSR:
            return refusals.read_only(draft.skill, path)
        planned = draft.plan(present)
        if isinstance(planned, Refusal):
            return planned
        if present and planned == present.text:
            return Receipt(draft.skill, path, "It says so already: nothing was changed.")
        content = planned.encode()
        noticed = self._notice_outside_change(draft, state)
        number = self.journal.next_number() + len(noticed)
        change = Change(
            number, draft.skill, draft.path, draft.action, draft.origin.actor, draft.origin.session,
            state.fingerprint, fingerprint(content), TextEdit.between(present.text if present else "", planned),
            refers_to=draft.refers_to,
        )  # fmt: skip

        def still_wanted() -> bool:
            if not holds(path, present.raw if present else None):
                return False
            # Only now, when the journal knows of it: an empty folder that is left behind has somebody to remove it.
            make_private_directory(path.parent)
            if mode is not None:
                os.chmod(staged_path(self._staging), mode)
            draft.accept(planned)
            return True

        written = replace_recorded(
            path, content, staged_for=self._staging, settle=self._settle, still_wanted=still_wanted,
            record=lambda: self.journal.append([*noticed, change]),
        )  # fmt: skip
        if not written:
            return refusals.changed_while_writing(draft.skill, path)
        return Receipt(draft.skill, path, draft.done, number)

    def _move(self, draft: MoveDraft) -> Receipt | Refusal:
        path = self.root / draft.path
        if refusal := self.refuse_links(draft.skill, draft.path) or draft.check():
            return refusal
        number = self.journal.next_number()
        archive = draft.archive or f"{number}/{path.name}"
        change = Change(
            number, draft.skill, draft.path, draft.action, draft.origin.actor, draft.origin.session,
            moved=draft.moved, archive=archive, refers_to=draft.refers_to,
        )  # fmt: skip
        source, place = path, self.archive / archive
        if draft.moved == "back":
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
        return Receipt(draft.skill, path, draft.done, number)

    def _settle(self) -> None:
        """Take back the newest change if it was journalled and never made. Needs the lock."""
        last = self.journal.last()
        if last is not None and last.action != "void" and self._never_made(last):
            self.journal.append([self.journal.void_of(last, _MEMORANDA)])
            self._drop_empty((self.archive / last.archive if last.moved else self.root / last.path).parent)
        if os.path.lexists(self.leftover):
            os.unlink(self.leftover)

    def _never_made(self, change: Change) -> bool:
        if change.moved:
            archived = os.path.lexists(self.archive / change.archive)
            return archived if change.moved == "back" else not archived and os.path.lexists(self.root / change.path)
        if change.edit is None or not os.path.lexists(self.leftover):
            return False
        # The staged file is this change's, and what it should have become is not there.
        staged = fingerprint(self.leftover.read_bytes()) == change.after
        state = read_text(self.root / change.path)
        return staged and not (isinstance(state, Text) and state.fingerprint == change.after)

    def _notice_outside_change(self, draft: TextDraft, state: Text | Missing) -> list[Change]:
        """A journal line for what another program did to the file since we last wrote it."""
        known = self.journal.head(draft.path)
        if known is None or known == state.fingerprint or isinstance(state, Missing):
            return []
        number = self.journal.next_number()
        return [Change(number, draft.skill, draft.path, "outside", "outside", "", known, state.fingerprint)]

    def _drop_empty(self, directory: Path) -> None:
        """Remove directories that we emptied, up to the root."""
        while directory not in (self.root, self.archive) and directory.is_relative_to(self.root):
            try:
                directory.rmdir()
            except OSError:
                # It is not empty, or not ours to remove.
                return
            directory = directory.parent
