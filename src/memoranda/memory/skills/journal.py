"""The journal of skills: every change, one per line.

A line says which file changed, its fingerprints before and after, and the passage that differs. Removed files move into
`.archive/<number>/` instead of being deleted, so any change can be undone until the history is purged.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from memoranda.memory.skills.names import is_inside
from memoranda.storage.files.journal_file import JournalFile
from memoranda.support.origin import Origin, utc_timestamp

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


# A later version may write more fields, with a checksum; they are ignored.
_FIELDS = tuple(item.name for item in fields(SkillChange))


class SkillJournal(JournalFile[SkillChange]):
    """The journal of one directory of skills. Appending and purging need its lock."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _from_record, _FIELDS)

    def next_number(self) -> int:
        last = self.last()
        return last.number + 1 if last else 1

    def head(self, path: str) -> str | None:
        """The fingerprint of a file after the last change to it; None when none is known."""
        heads = [change.after for change in self.changes() if change.path == path and not change.moved]
        return heads[-1] if heads else None

    def creator(self, skill: str) -> str | None:
        """The actor that created a skill; None when the skill has another source."""
        creators = [change.actor for change in self.changes() if change.skill == skill and change.action == "create"]
        return creators[-1] if creators else None

    def void_of(self, change: SkillChange, origin: Origin) -> SkillChange:
        """The line that cancels the newest change."""
        number = change.number + 1
        return SkillChange(number, change.skill, change.path, "void", origin.actor, "", refers_to=change.number)


def _from_record(record: Any) -> SkillChange | None:
    known = {name: record[name] for name in _FIELDS if name in record}
    if known.get("edit") is not None:
        known["edit"] = PassageEdit(**known["edit"])
    change = SkillChange(**known)
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
