"""What a turn saved in curated memory and in skills: found in their journals, and reverted on request."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from memoranda.agent.session_views import RevertedChange, SavedChange
from memoranda.memory.curated import change_history as memory_history
from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.operations import MemoryReceipt
from memoranda.memory.curated.settings import FILE_NAMES
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills import change_history as skill_history
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt
from memoranda.memory.skills.writer import SkillChange
from memoranda.storage.files.journal import undone_numbers
from memoranda.support.origin import PERSON

_AGENT = "agent"
_UNDOABLE_SKILL_ACTIONS = ("create", "patch", "edit", "delete", "write_file", "remove_file")


def find_saved_changes(
    memory: MemoryStore, skills: SkillStore, sessions: Collection[str], since: float
) -> tuple[SavedChange, ...]:
    """What the agent saved in these sessions since a time and nothing has reverted yet, the oldest first.

    `since` is when the last turn began, so these are the changes of that turn. What a background review or a person
    saved meanwhile is not among them.
    """
    changes = memory_history.log(memory)
    undone = undone_numbers(changes)
    found = [
        (change.at, SavedChange("memory", change.number, _describe_memory(memory, change)))
        for change in changes
        if change.edits and change.number not in undone and _is_of_turn(change, sessions, since)
    ]
    skill_changes = skill_history.log(skills)
    undone = undone_numbers(skill_changes)
    found += [
        (change.at, SavedChange("skills", change.number, f"skill {change.skill}: {change.action.replace('_', ' ')}"))
        for change in skill_changes
        if change.action in _UNDOABLE_SKILL_ACTIONS
        and change.number not in undone
        and _is_of_turn(change, sessions, since)
    ]
    return tuple(change for _, change in sorted(found, key=lambda item: item[0]))


def revert_changes(memory: MemoryStore, skills: SkillStore, changes: Sequence[SavedChange]) -> Iterator[RevertedChange]:
    """Undo changes, the latest first; one that no longer fits is refused and says why."""
    for change in reversed(changes):
        if change.part == "memory":
            outcome = memory_history.undo(memory, change.number, PERSON)
            yield RevertedChange(change, isinstance(outcome, MemoryReceipt), outcome.message)
        else:
            result = skill_history.undo(skills, change.number, PERSON)
            yield RevertedChange(change, isinstance(result, SkillReceipt), result.message)


def _is_of_turn(change: MemoryChange | SkillChange, sessions: Collection[str], since: float) -> bool:
    if change.actor != _AGENT or change.session not in sessions:
        return False
    return datetime.fromisoformat(change.at).timestamp() >= since


def _describe_memory(store: MemoryStore, change: MemoryChange) -> str:
    sides = [(sign, text) for edit in change.edits for sign, text in (("-", edit.before), ("+", edit.after))]
    lines = [f"{sign} {store.visible_text(change.target, text)}" for sign, text in sides if text is not None]
    return f"{FILE_NAMES[change.target]}: {' '.join(lines)}"
