"""What came of a review, said as it is: what was saved, what only waits or was refused, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memoranda.review.reviewable_session import MEMORY_TOOL, SKILL_TOOL
from memoranda.support.shorten import shorten_end
from memoranda.tools import JsonObject

WriteOutcome = Literal["added", "replaced", "removed", "staged", "duplicate", "refused"]
CHANGES: tuple[WriteOutcome, ...] = ("added", "replaced", "removed")
ALL: tuple[WriteOutcome, ...] = (*CHANGES, "staged", "duplicate", "refused")
_PREVIEW = 120
_OF_ACTION: dict[str, WriteOutcome] = {"add": "added", "replace": "replaced", "remove": "removed"}


@dataclass(frozen=True, slots=True)
class ReviewWrite:
    """One thing that a review wanted to write, and what became of it. `where` is a target or a skill."""

    what: WriteOutcome
    where: str
    text: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """The result of one review. `failed` says why it did not come to its end; what was saved before that stands.

    `postponed` says that it was not the review that failed: the budget was spent, or the program ended.
    """

    session_id: str
    user: str | None = None
    writes: tuple[ReviewWrite, ...] = ()
    steps: int = 0
    failed: str = ""
    postponed: bool = False

    @property
    def changed(self) -> bool:
        return any(write.what in CHANGES for write in self.writes)

    def counts(self) -> dict[str, int]:
        """How many writes ended how; what did not occur is left out."""
        found = {what: sum(write.what == what for write in self.writes) for what in ALL}
        return {what: count for what, count in found.items() if count}

    def summary(self) -> str:
        """In numbers, without anybody's words; empty when nothing was even tried."""
        counts = ", ".join(f"{count} {what}" for what, count in self.counts().items())
        return "; ".join(filter(None, (counts, self.failed and f"failed: {self.failed}")))

    def line(self) -> str:
        """One line for a person; empty when nothing changed, nothing waits and nothing failed."""
        parts = [
            f"{write.what} in {write.where}: “{shorten_end(' '.join(write.text.split()), _PREVIEW)}”"
            if write.text
            else f"{write.what} {write.where}"
            for write in self.writes
            if write.what in CHANGES
        ]
        waiting = self.counts().get("staged", 0)
        parts += [f"{waiting} waiting for your approval"] if waiting else []
        if self.failed and not self.postponed:
            parts.append(f"it failed: {self.failed}")
        return "Review: " + " · ".join(dict.fromkeys(parts)) if parts else ""


def writes_of(name: str, arguments: Mapping[str, Any], result: JsonObject) -> list[ReviewWrite]:
    """What a call of a tool changed, by the tool's own account; reading changes nothing."""
    if name not in (MEMORY_TOOL, SKILL_TOOL):
        return []
    where = _where(name, arguments, result)
    if result.get("success") is not True:
        return [ReviewWrite("refused", where, why=str(result.get("error", ""))[:_PREVIEW])]
    if result.get("staged"):
        return [ReviewWrite("staged", where)]
    if name == SKILL_TOOL:
        return [_skill_write(where, arguments, result)]
    changed = result.get("changed") or []
    if not changed:
        return [ReviewWrite("duplicate", where)]
    return [
        ReviewWrite(
            _OF_ACTION.get(str(each.get("action")), "replaced"), where, str(each.get("after") or each.get("before"))
        )
        for each in changed
    ]


def _skill_write(where: str, arguments: Mapping[str, Any], result: JsonObject) -> ReviewWrite:
    if result.get("change") is None:
        return ReviewWrite("duplicate", where)
    return ReviewWrite("added" if arguments.get("action") == "create" else "replaced", where)


def _where(name: str, arguments: Mapping[str, Any], result: JsonObject) -> str:
    if name == SKILL_TOOL:
        return f"skill {str(arguments.get('name', '?'))[:60]}"
    target = str(result.get("target") or arguments.get("target") or "memory")
    return {"memory": "MEMORY.md", "user": "USER.md"}.get(target, "memory")
