"""Looking back and going back: the log, undo, and purging for good."""

import os
import shutil
from dataclasses import dataclass
from functools import partial

from memoranda.skills import refusals
from memoranda.skills.journal import SkillChange
from memoranda.skills.names import SKILL_FILE
from memoranda.skills.store import SkillStore, list_skill_files
from memoranda.skills.write_result import SkillRefusal, SkillWriteResult
from memoranda.skills.writer import SkillMoveRequest, SkillTextRequest
from memoranda.support.journal_file import find_undoable, undone_numbers
from memoranda.support.origin import Origin
from memoranda.support.text_file import TextFile


@dataclass(frozen=True, slots=True)
class PurgedSkills:
    changes: int
    archived: int


def log(store: SkillStore, skill: str | None = None) -> list[SkillChange]:
    """The changes to skills, oldest first."""
    return [change for change in store.journal.changes() if skill in (None, change.skill)]


def undo(store: SkillStore, number: int | None, origin: Origin) -> SkillWriteResult:
    """Take one change back (by default the latest that was not taken back), as a new change of its own.

    What an undo brings back is not judged again; a passage that is withheld stays so.
    """
    change = find_undoable(log(store), number, lambda change: change.edit is not None or bool(change.moved))
    if change is None:
        return refusals.nothing_to_undo(number)
    return store.writer.commit(_backwards(store, change, origin))


def _backwards(store: SkillStore, change: SkillChange, origin: Origin) -> SkillTextRequest | SkillMoveRequest:
    """The request of what takes a change back."""
    skill, path, number = change.skill, change.path, change.number
    done = f"Took change {number} ({change.action}) of {skill} back."
    if change.moved == "away":
        check = partial(_may_come_back, store, change)
        return SkillMoveRequest(skill, path, "undo", origin, check, done, change.archive, number)
    if change.moved == "back" or not change.before:
        # A skill that was made goes as a whole.
        going = path if change.moved else path.removesuffix(f"/{SKILL_FILE}")
        check = partial(_may_go, store, change, going)
        return SkillMoveRequest(skill, going, "undo", origin, check, done, refers_to=number)
    return SkillTextRequest(skill, path, "undo", origin, partial(_reverse, store, change), done, number)


def purge(store: SkillStore) -> PurgedSkills:
    """Forget for good: every line of the journal, and everything in the archive."""
    with store.exclusive():
        # The archive first: a purge that is cut short must not leave things there that no line tells of.
        archived = sorted(store.writer.archive.iterdir()) if store.writer.archive.is_dir() else []
        for each in archived:
            shutil.rmtree(each)
        last = store.journal.last()
        return PurgedSkills(store.journal.purge(last.number if last else 0, []), len(archived))


def _stands(store: SkillStore, change: SkillChange) -> SkillRefusal | None:
    # Asked again under the lock: somebody else may have undone it a moment ago.
    return refusals.nothing_to_undo(change.number) if change.number in undone_numbers(log(store)) else None


def _may_come_back(store: SkillStore, change: SkillChange) -> SkillRefusal | None:
    if refusal := _stands(store, change):
        return refusal
    if os.path.lexists(store.root / change.path):
        return refusals.file_exists(change.skill, store.root / change.path)
    there = os.path.lexists(store.writer.archive / change.archive)
    return None if there else refusals.no_longer_fits(change.skill, change.number)


def _may_go(store: SkillStore, change: SkillChange, path: str) -> SkillRefusal | None:
    """What was made or brought back goes again, unless somebody has worked on it since."""
    if refusal := _stands(store, change):
        return refusal
    if change.moved:
        there = os.path.lexists(store.root / path)
        return None if there else refusals.no_longer_fits(change.skill, change.number)
    state = store.writer.read(change.skill, change.path)
    untouched = isinstance(state, TextFile) and state.fingerprint == change.after
    alone = path == change.path or not list_skill_files(store.root / path)
    return None if untouched and alone else refusals.no_longer_fits(change.skill, change.number)


def _reverse(store: SkillStore, change: SkillChange, present: TextFile | None) -> str | SkillRefusal:
    if refusal := _stands(store, change):
        return refusal
    if present is None or present.fingerprint != change.after or change.edit is None:
        return refusals.no_longer_fits(change.skill, change.number)
    return change.edit.reversed_in(present.text)
