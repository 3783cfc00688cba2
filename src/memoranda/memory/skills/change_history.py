"""The history of skills: the log, undo, and purging the history."""

import os
import shutil
from functools import partial

from memoranda.memory.skills import refusals
from memoranda.memory.skills.skill_text import SKILL_FILE
from memoranda.memory.skills.store import SkillStore, list_skill_files
from memoranda.memory.skills.write_result import SkillRefusal, SkillWriteResult
from memoranda.memory.skills.writer import SkillChange, SkillMoveRequest, SkillTextRequest, read_skill_file
from memoranda.storage.files.journal import find_undoable
from memoranda.support.lazy_dataclass import dataclass
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
    """Undo one change (by default the latest that was not undone), as a new change of its own.

    Restored text is not checked again; a withheld passage stays withheld.
    """
    change = find_undoable(log(store), number, lambda change: change.edit is not None or bool(change.moved))
    if change is None:
        return refusals.nothing_to_undo(number)
    return store.writer.commit(_reverse_request(store, change, origin))


def _reverse_request(store: SkillStore, change: SkillChange, origin: Origin) -> SkillTextRequest | SkillMoveRequest:
    skill, path, number = change.skill, change.path, change.number
    done = f"Undid change {number} ({change.action}) of {skill}."
    if change.moved == "away":
        check = partial(_check_restore, store, change)
        return SkillMoveRequest(skill, path, "undo", origin, check, done, change.archive, number)
    if change.moved == "back" or not change.before:
        # A skill that was created is removed as a whole.
        removed = path if change.moved else path.removesuffix(f"/{SKILL_FILE}")
        check = partial(_check_removal, store, change, removed)
        return SkillMoveRequest(skill, removed, "undo", origin, check, done, refers_to=number)
    return SkillTextRequest(skill, path, "undo", origin, partial(_reverse_text, change), done, number)


def purge(store: SkillStore) -> PurgedSkills:
    """Delete the history for good: every line of the journal, and everything in the archive."""
    with store.exclusive():
        # The archive first: a purge that is interrupted must not leave files there that no line mentions.
        archived = sorted(store.writer.archive.iterdir()) if store.writer.archive.is_dir() else []
        for directory in archived:
            shutil.rmtree(directory)
        last = store.journal.last()
        return PurgedSkills(store.journal.purge(last.number if last else 0, []), len(archived))


def _check_restore(store: SkillStore, change: SkillChange) -> SkillRefusal | None:
    if os.path.lexists(store.root / change.path):
        return refusals.file_exists(change.skill, store.root / change.path)
    is_archived = os.path.lexists(store.writer.archive / change.archive)
    return None if is_archived else refusals.changed_since(change.skill, change.number)


def _check_removal(store: SkillStore, change: SkillChange, path: str) -> SkillRefusal | None:
    """Refuse to remove what was created or restored when it has changed since."""
    if change.moved:
        exists = os.path.lexists(store.root / path)
        return None if exists else refusals.changed_since(change.skill, change.number)
    state = read_skill_file(store.root, change.skill, change.path)
    untouched = isinstance(state, TextFile) and state.fingerprint == change.after
    has_no_other_files = path == change.path or not list_skill_files(store.root / path)
    return None if untouched and has_no_other_files else refusals.changed_since(change.skill, change.number)


def _reverse_text(change: SkillChange, present: TextFile | None) -> str | SkillRefusal:
    if present is None or present.fingerprint != change.after or change.edit is None:
        return refusals.changed_since(change.skill, change.number)
    return change.edit.reversed_in(present.text)
