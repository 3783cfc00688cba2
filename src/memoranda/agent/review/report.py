"""What a review works on, a snapshot of a session at the end of a turn, and what it reports afterwards."""

from collections.abc import Mapping
from typing import Any, Literal

from memoranda.agent.session_views import ReviewableSession
from memoranda.memory.curated.settings import Target
from memoranda.models.model import Message
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject, Tool

MEMORY_TOOL = "memory"
SKILL_TOOL = "skill_manage"


@dataclass(frozen=True, slots=True)
class ReviewSnapshot:
    """A session as it was when its review became due; its tools write to the current state."""

    id: str
    user: str | None
    prompt: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    user_texts: tuple[str, ...]
    review_tools: tuple[Tool, ...]
    session: ReviewableSession

    def entries(self, target: Target) -> tuple[str, ...]:
        return tuple(self.session.entries(target))


def take_snapshot(session: ReviewableSession) -> ReviewSnapshot:
    """A snapshot of the session's current state."""
    return ReviewSnapshot(
        session.id,
        session.user,
        session.prompt,
        tuple(session.tools),
        tuple(session.conversation()),
        tuple(session.user_texts()),
        tuple(tool for tool in session.review_tools() if tool.facts.for_reviews),
        session,
    )


WriteOutcome = Literal["added", "replaced", "removed", "staged", "duplicate", "refused"]
CHANGES: tuple[WriteOutcome, ...] = ("added", "replaced", "removed")
OUTCOMES: tuple[WriteOutcome, ...] = (*CHANGES, "staged", "duplicate", "refused")
_PREVIEW_CHARS = 120
_OUTCOME_OF_ACTION: dict[str, WriteOutcome] = {"add": "added", "replace": "replaced", "remove": "removed"}


@dataclass(frozen=True, slots=True)
class ReviewWrite:
    """One write of a review and its outcome. `where` is a memory file or a skill."""

    outcome: WriteOutcome
    where: str
    text: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """The result of one review. `failed` says why it did not finish; earlier writes stay saved.

    `postponed` means that the review itself did not fail: the budget was spent, or the program ended.
    """

    session_id: str
    user: str | None = None
    writes: tuple[ReviewWrite, ...] = ()
    steps: int = 0
    failed: str = ""
    postponed: bool = False

    @property
    def changed(self) -> bool:
        return any(write.outcome in CHANGES for write in self.writes)

    def counts(self) -> dict[str, int]:
        """The number of writes by outcome, without zeros."""
        counts = {outcome: sum(write.outcome == outcome for write in self.writes) for outcome in OUTCOMES}
        return {outcome: count for outcome, count in counts.items() if count}

    def summary(self) -> str:
        """The report in numbers, without text of the conversation; empty if nothing was tried."""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts().items())
        return "; ".join(filter(None, (counts, self.failed and f"failed: {self.failed}")))

    def line(self) -> str:
        """One line for the user; empty if nothing changed, was proposed or failed."""
        parts = [
            f"{write.outcome} in {write.where}: “{shorten_end(' '.join(write.text.split()), _PREVIEW_CHARS)}”"
            if write.text
            else f"{write.outcome} {write.where}"
            for write in self.writes
            if write.outcome in CHANGES
        ]
        staged = self.counts().get("staged", 0)
        parts += [f"{staged} waiting for your approval"] if staged else []
        if self.failed and not self.postponed:
            parts.append(f"it failed: {self.failed}")
        return "Review: " + " · ".join(dict.fromkeys(parts)) if parts else ""


def writes_of(name: str, arguments: Mapping[str, Any], result: JsonObject) -> list[ReviewWrite]:
    """The writes of a tool call, according to the tool's result; a read has none."""
    if name not in (MEMORY_TOOL, SKILL_TOOL):
        return []
    where = _where(name, arguments, result)
    if result.get("staged"):
        return [ReviewWrite("staged", where)]
    if result.get("success") is not True:
        return [ReviewWrite("refused", where, why=str(result.get("error", ""))[:_PREVIEW_CHARS])]
    if name == SKILL_TOOL:
        return [_skill_write(where, arguments, result)]
    changed = result.get("changed") or []
    if not changed:
        return [ReviewWrite("duplicate", where)]
    return [
        ReviewWrite(
            _OUTCOME_OF_ACTION.get(str(change.get("action")), "replaced"),
            where,
            str(change.get("after") or change.get("before")),
        )
        for change in changed
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
