"""The move as a whole: look, plan, and carry out what was planned; everything else is said by the steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from memoranda.curated.entries import serialise
from memoranda.curated.outcome import Refusal as MemoryRefusal
from memoranda.errors import MemorandaError
from memoranda.importers.openclaw.credentials import find_credentials
from memoranda.importers.openclaw.documents import is_as_seen, plan_identity, plan_instructions, plan_notes
from memoranda.importers.openclaw.gate import Gate
from memoranda.importers.openclaw.ledger import Ledger
from memoranda.importers.openclaw.memories import gather, keep_entries, plan_entries
from memoranda.importers.openclaw.places import Installation
from memoranda.importers.openclaw.settings import plan_secrets, plan_settings, plan_what_stays
from memoranda.importers.openclaw.skills import make_skill, plan_skills
from memoranda.importers.openclaw.steps import (
    Archive,
    Household,
    KeepEntries,
    KeepSecret,
    MakeSkill,
    Status,
    Step,
    Wishes,
    WriteText,
)
from memoranda.skills.outcome import Refusal as SkillRefusal
from memoranda.support.files import make_private_directory, write_private
from memoranda.support.lock import FileLock

_PATIENCE = 10.0
_WHILE_IT_CHANGED = "It was changed meanwhile. Nothing was written; import again."


@dataclass(frozen=True, slots=True)
class Migration:
    """What would be done, or was done, with everything that was found."""

    source: Path
    agent: str
    steps: tuple[Step, ...]
    redacted: int = 0
    problems: tuple[str, ...] = field(default=())

    @property
    def has_work(self) -> bool:
        return any(step.work is not None for step in self.steps)

    @property
    def failed(self) -> bool:
        return any(step.status == "error" for step in self.steps)

    def count(self) -> dict[str, int]:
        """How many steps there are of each kind of ending."""
        statuses: tuple[Status, ...] = (
            "planned", "migrated", "archived", "skipped", "unchanged", "conflict", "error",
        )  # fmt: skip
        return {status: sum(step.status == status for step in self.steps) for status in statuses}

    def as_json(self) -> dict[str, Any]:
        return {
            "source": str(self.source),
            "agent": self.agent,
            "summary": self.count(),
            "credentials_taken_out": self.redacted,
            "problems": list(self.problems),
            "items": [step.as_json() for step in self.steps],
        }


def plan_migration(found: Installation, home: Household, wishes: Wishes) -> Migration:
    """What would be done; nothing is written."""
    credentials = find_credentials(found)
    gate = Gate(credential.value for credential in credentials)
    ledger = Ledger(home.root)
    memories = plan_entries(gather(found, "memory", gate), "memory", home.curated, ledger)
    user = plan_entries(gather(found, "user", gate), "user", home.curated, ledger)
    steps = [memories, user, plan_identity(found, home.root, wishes, gate), plan_instructions(found, wishes, gate)]
    more: list[Step] = [*plan_skills(found, home.skills, ledger, wishes.skill_conflict, gate)]
    more += plan_notes(found, ledger, gate)
    if wishes.preset == "full":
        more += plan_settings(found, ledger, gate)
    more += plan_secrets(credentials, home, wishes)
    more += plan_what_stays(found)
    steps_found = (*(step for step in steps if step is not None), *more)
    return Migration(found.root, found.agent, steps_found, gate.taken_out, found.problems)


def carry_out(
    planned: Migration, home: Household, directory: Path, done: Callable[[Step], None] = lambda step: None
) -> Migration:
    """Do what was planned, step by step; one that fails does not keep the others from being done.

    The caller sees to it that nobody else does the same at the time (`one_at_a_time`).
    """
    ledger = Ledger(home.root)
    steps = []
    for step in planned.steps:
        steps.append(_do(step, home, ledger, directory) if step.work is not None else step)
        done(steps[-1])
    return replace(planned, steps=tuple(steps))


@contextmanager
def one_at_a_time(root: Path) -> Iterator[None]:
    """Be the only one who moves into a home, with nothing left over from one that was killed."""
    directory = Ledger(root).directory
    make_private_directory(directory)
    with FileLock(directory / ".lock", _PATIENCE):
        for leftover in directory.rglob(".*.tmp"):
            leftover.unlink()
        yield


def new_directory(root: Path) -> Path:
    """A place for the report, the archive and what did not fit, named by the moment."""
    base = Ledger(root).directory
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names: Iterator[str] = (stamp if not number else f"{stamp}-{number}" for number in range(1000))
    return next(base / name for name in names if not (base / name).exists())


def _do(step: Step, home: Household, ledger: Ledger, directory: Path) -> Step:
    try:
        return _done(step, home, ledger, directory)
    except MemorandaError as error:
        return replace(step, status="error", reason=str(error), work=None)
    except OSError as error:
        reason = f"{error.filename or step.destination}: {error.strerror or error}. Nothing was written."
        return replace(step, status="error", reason=reason, work=None)


def _done(step: Step, home: Household, ledger: Ledger, directory: Path) -> Step:
    match step.work:
        case None:
            return step
        case KeepEntries() as work:
            return _keep_entries(step, work, home, ledger, directory)
        case WriteText() as work:
            if not is_as_seen(work):
                return replace(step, status="error", reason=_WHILE_IT_CHANGED, work=None)
            make_private_directory(work.path.parent)
            write_private(work.path, work.text.encode())
        case MakeSkill() as work:
            outcome = make_skill(work, home.skills)
            if isinstance(outcome, SkillRefusal):
                return replace(step, status="error", reason=outcome.message, work=None)
        case Archive() as work:
            _write(directory / "archive" / work.name, work.text)
            ledger.note_archived(work.name, work.text)
            return replace(step, status="archived", destination=str(directory / "archive" / work.name), work=None)
        case KeepSecret() as work:
            home.keep_secret(work.name, work.value)
        case _:
            assert_never(step.work)
    return replace(step, status="migrated", work=None)


def _keep_entries(step: Step, work: KeepEntries, home: Household, ledger: Ledger, directory: Path) -> Step:
    details = dict(step.details)
    if work.left:
        # Before anything else: what finds no room must not be lost if the rest is interrupted.
        place = directory / "overflow" / home.curated.path(work.target).name
        _write(place, serialise([left.text for left in work.left]))
        details["overflow_file"] = str(place)
        details["left"] = [
            {"text": left.text, "reason": left.reason, "file": str(left.file)} for left in work.left
        ]  # fmt: skip
    outcome = keep_entries(work, home.curated)
    if isinstance(outcome, MemoryRefusal):
        return replace(step, status="error", reason=outcome.message, details=details, work=None)
    ledger.note_entries(work.target, work.entries, [left.text for left in work.left])
    if outcome is not None and outcome.change is not None:
        details["change"] = outcome.change
    return replace(step, status="migrated" if work.entries else "archived", details=details, work=None)


def _write(path: Path, text: str) -> None:
    make_private_directory(path.parent)
    write_private(path, text.encode("utf-8", "surrogatepass"))


def next_steps(done: Sequence[Step], model: str) -> list[str]:
    """What a person may want to do after a move."""
    steps = ["Memories are part of the prompt of new sessions; those that are open keep theirs."]
    if any(step.details.get("without_room") for step in done):
        steps.append(
            "Some entries found no room. Raise memory.memory_char_limit or memory.user_char_limit, import again."
        )
    if model:
        steps.append(f"OpenClaw's agent spoke with {model}; 'memoranda config set model.name' chooses one here.")
    steps.append("When all is well, 'memoranda import openclaw cleanup' puts OpenClaw's directory aside.")
    return steps
