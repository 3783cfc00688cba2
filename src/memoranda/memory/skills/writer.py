"""The only writer of skills, and its journal: it replaces texts, and moves what is removed into the archive.

A line of the journal says which file changed, its fingerprints before and after, and the passage that differs.
`memoranda.storage.files.journaled_writer` describes the steps. Nothing is deleted: a file or a whole skill that is
removed moves into `.archive/<number>/` by one rename, after the journal has the line, so any change can be undone until
the history is purged.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from memoranda.errors import StorageError
from memoranda.memory.skills import refusals
from memoranda.memory.skills.skill_text import is_inside
from memoranda.memory.skills.write_result import SkillReceipt, SkillRefusal
from memoranda.storage.files.journal import Journal
from memoranda.storage.files.journal_file import LineFile
from memoranda.storage.files.journaled_writer import (
    JournaledWriter,
    WriteFailure,
    read_failure,
    run_exclusively,
    was_never_published,
    write_failure,
)
from memoranda.support.durable_files import make_private_directory, staged_path, sync_directory
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import MEMORANDA, Origin, utc_timestamp
from memoranda.support.text_file import MissingFile, TextFile, UndecodableFile, UnreadableFile, fingerprint, read_text

SkillAction = Literal[
    "create", "patch", "edit", "delete", "write_file", "remove_file", "undo",
    "outside",  # another program changed the file
    "allow",  # a person accepted what the scanner found
    "revoke",  # a person revoked that
    "void",  # the change named by `refers_to` was journalled but never carried out
]  # fmt: skip
# Whether a file or a whole skill moved into the archive (away) or out of it (back).
Moved = Literal["", "away", "back"]


@dataclass(frozen=True, slots=True)
class PassageEdit:
    """The passage that differs between two texts: its offset, the old text and the new text."""

    start: int
    before: str
    after: str

    @classmethod
    def between(cls, before: str, after: str) -> "PassageEdit":
        """The difference in whole lines, so that a person can read it."""
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
        shortest = min(len(old), len(new))
        head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
        tail = next((n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head)
        start = sum(map(len, old[:head]))
        return cls(start, "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail]))

    def reversed_in(self, text: str) -> str:
        """The text before this edit, given the text after it."""
        return text[: self.start] + self.before + text[self.start + len(self.after) :]


@dataclass(frozen=True, slots=True)
class SkillChange:
    """One line of the journal; `path` is relative to the skills' directory, and names a folder when a skill moves."""

    number: int
    skill: str
    path: str
    action: SkillAction
    actor: str
    session: str
    before: str = ""
    after: str = ""
    edit: PassageEdit | None = None
    moved: Moved = ""
    archive: str = ""
    at: str = field(default_factory=utc_timestamp)
    refers_to: int | None = None
    note: str = ""


class SkillJournal(Journal[SkillChange]):
    """The journal of one directory of skills. Appending and purging need its lock."""

    def __init__(self, path: Path) -> None:
        super().__init__(LineFile(path), _from_record, [item.name for item in fields(SkillChange)])

    def head(self, path: str) -> str | None:
        """The fingerprint of a file after the last change to it; None when none is known."""
        heads = [change.after for change in self.changes() if change.path == path and not change.moved]
        return heads[-1] if heads else None

    def creator(self, skill: str) -> str | None:
        """The actor that created a skill; None when the skill has another source."""
        creators = [change.actor for change in self.changes() if change.skill == skill and change.action == "create"]
        return creators[-1] if creators else None

    def void_of(self, change: SkillChange) -> SkillChange:
        """The line that cancels the newest change."""
        number, actor = change.number + 1, MEMORANDA.actor
        return SkillChange(number, change.skill, change.path, "void", actor, "", refers_to=change.number)


def _from_record(record: dict[str, Any]) -> SkillChange | None:
    if record.get("edit") is not None:
        record["edit"] = PassageEdit(**record["edit"])
    change = SkillChange(**record)
    return change if _is_valid(change) else None


def _is_valid(change: SkillChange) -> bool:
    """Whether a line, which a person may have edited, has the right types and no path outside the directory."""
    texts: list[object] = [change.skill, change.path, change.actor, change.session, change.before, change.after]
    texts += [change.at, change.note, change.archive]
    numbers: list[object] = [change.number, 0 if change.refers_to is None else change.refers_to]
    if change.edit is not None:
        texts += [change.edit.before, change.edit.after]
        numbers.append(change.edit.start)
    if not all(isinstance(text, str) for text in texts):
        return False
    if not all(isinstance(number, int) and number >= 0 for number in numbers):
        return False
    if change.action not in get_args(SkillAction) or change.moved not in get_args(Moved):
        return False
    return is_inside(change.path) and is_inside(change.archive or "none")


@dataclass(frozen=True, slots=True)
class SkillTextRequest:
    """A new text for one file: `plan` gets the current file (None without one) and returns the new text, or a refusal.

    `accept` is called when the change is in the journal but not yet carried out; it allows what a person accepted.
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
    """A file or a whole skill that moves into the archive, or back from it.

    `archive` is its path in the archive when it is restored, and empty when it is archived.
    """

    skill: str
    path: str
    action: SkillAction
    origin: Origin
    check: Callable[[], SkillRefusal | None]
    done: str
    archive: str = ""
    refers_to: int | None = None

    @property
    def moved(self) -> Moved:
        return "back" if self.archive else "away"


def read_skill_file(root: Path, skill: str, path: str) -> TextFile | MissingFile | SkillRefusal:
    """A file below a directory of skills, or a refusal when it can be neither shown nor replaced."""
    if refusal := _refuse_links(root, skill, path):
        return refusal
    state = read_text(root / path)
    if isinstance(state, UnreadableFile | UndecodableFile):
        return refusals.from_failure(skill, read_failure(state))
    return state


def _refuse_links(root: Path, skill: str, path: str) -> SkillRefusal | None:
    current = root
    for part in path.split("/"):
        current = current / part
        if current.is_symlink():
            return refusals.symlink(skill, current)
    return None


class SkillWriter(JournaledWriter[SkillChange]):
    """Changes the skills in one directory, and writes their journal."""

    def __init__(self, directory: Path, lock_timeout: float) -> None:
        self.journal = SkillJournal(directory / ".journal.jsonl")
        # All content is staged under one name, so no file of a user is ever mistaken for a leftover.
        staged_for = directory / "next"
        super().__init__(directory, self.journal, lock_timeout, staged_for)
        self.archive = directory / ".archive"
        self.leftover = Path(staged_path(staged_for))

    def commit(self, request: SkillTextRequest | SkillMoveRequest) -> SkillReceipt | SkillRefusal:
        """Carry out a change, or refuse it and leave everything as it was."""
        result = run_exclusively(self.exclusive, self.directory / request.path, partial(self._carry_out, request))
        return refusals.from_failure(request.skill, result) if isinstance(result, WriteFailure) else result

    def _carry_out(self, request: SkillTextRequest | SkillMoveRequest) -> SkillReceipt | SkillRefusal | WriteFailure:
        if request.action == "undo" and self.journal.was_undone(request.refers_to):
            # Another process has undone it since the request was made.
            return refusals.nothing_to_undo(request.refers_to)
        return self._write(request) if isinstance(request, SkillTextRequest) else self._move(request)

    def _write(self, request: SkillTextRequest) -> SkillReceipt | SkillRefusal | WriteFailure:
        skill, path = request.skill, self.directory / request.path
        state = read_skill_file(self.directory, skill, request.path)
        if isinstance(state, SkillRefusal):
            return state
        if failure := write_failure(state):
            return failure
        present = state if isinstance(state, TextFile) else None
        planned = request.plan(present)
        if isinstance(planned, SkillRefusal):
            return planned
        if present and planned == present.text:
            return SkillReceipt(skill, path, "The file already has this text: nothing was changed.")
        content = planned.encode()
        outside_changes = self._record_outside_change(request, state)
        number = self.journal.next_number() + len(outside_changes)
        change = SkillChange(
            number, skill, request.path, request.action, request.origin.actor, request.origin.session,
            state.fingerprint, fingerprint(content), PassageEdit.between(present.text if present else "", planned),
            refers_to=request.refers_to,
        )  # fmt: skip
        mode = stat.S_IMODE(path.stat().st_mode) if present else None

        def prepare() -> None:
            # The journal has the change by now, so settling it would also remove an empty folder that is left behind.
            make_private_directory(path.parent)
            if mode is not None:
                os.chmod(self.leftover, mode)
            request.accept(planned)

        failure = self.replace(state, content, [*outside_changes, change], prepare)
        return failure or SkillReceipt(skill, path, request.done, number)

    def _move(self, request: SkillMoveRequest) -> SkillReceipt | SkillRefusal:
        path = self.directory / request.path
        if refusal := _refuse_links(self.directory, request.skill, request.path) or request.check():
            return refusal
        number = self.journal.next_number()
        archive = request.archive or f"{number}/{path.name}"
        change = SkillChange(
            number, request.skill, request.path, request.action, request.origin.actor, request.origin.session,
            moved=request.moved, archive=archive, refers_to=request.refers_to,
        )  # fmt: skip
        source, destination = path, self.archive / archive
        if request.moved == "back":
            source, destination = destination, source
        if os.path.lexists(destination):
            raise StorageError(f"{destination} already exists. Nothing was changed; move it elsewhere.")
        make_private_directory(destination.parent)
        self.journal.append([change])
        try:
            os.rename(source, destination)
        except BaseException:
            self._settle()
            raise
        sync_directory(source.parent)
        sync_directory(destination.parent)
        self._remove_empty(source.parent)
        return SkillReceipt(request.skill, path, request.done, number)

    def _settle(self) -> None:
        last = self.journal.last()
        if last is not None and last.action != "void" and self._was_never_carried_out(last):
            self.journal.append([self.journal.void_of(last)])
            self._remove_empty((self.archive / last.archive if last.moved else self.directory / last.path).parent)
        if os.path.lexists(self.leftover):
            os.unlink(self.leftover)

    def _was_never_carried_out(self, change: SkillChange) -> bool:
        path = self.directory / change.path
        if change.moved:
            archived = os.path.lexists(self.archive / change.archive)
            return archived if change.moved == "back" else not archived and os.path.lexists(path)
        if change.edit is None or not os.path.lexists(self.leftover):
            return False
        return was_never_published(self.leftover, path, change.after)

    def _record_outside_change(self, request: SkillTextRequest, state: TextFile | MissingFile) -> list[SkillChange]:
        """The journal line for what another program did to the file since Memoranda last wrote it."""
        known = self.journal.head(request.path)
        if known is None or known == state.fingerprint or isinstance(state, MissingFile):
            return []
        number = self.journal.next_number()
        return [SkillChange(number, request.skill, request.path, "outside", "outside", "", known, state.fingerprint)]

    def _remove_empty(self, directory: Path) -> None:
        """Remove directories that are empty now, up to the root."""
        while directory not in (self.directory, self.archive) and directory.is_relative_to(self.directory):
            try:
                directory.rmdir()
            except OSError:
                # It is not empty, or not ours to remove.
                return
            directory = directory.parent
