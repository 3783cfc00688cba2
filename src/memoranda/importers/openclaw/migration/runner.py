"""The move as a whole: look, plan, and carry out what was planned; everything else is said by the steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from memoranda.curated.entry_format import serialise
from memoranda.curated.write_result import MemoryRefusal
from memoranda.errors import MemorandaError
from memoranda.importers.openclaw.credentials import find_credentials
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.memories import gather, keep_entries, plan_entries
from memoranda.importers.openclaw.migration.settings import plan_omitted_files, plan_secrets, plan_settings
from memoranda.importers.openclaw.migration.skills import make_skill, plan_skills
from memoranda.importers.openclaw.migration.steps import (
    AddEntries,
    ArchiveText,
    MigrationOptions,
    MigrationStep,
    MigrationTarget,
    Status,
    StoreSecret,
    WriteSkill,
    WriteText,
)
from memoranda.importers.openclaw.migration.workspace_files import (
    is_as_seen,
    plan_identity,
    plan_instructions,
    plan_notes,
)
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.skills.write_result import SkillRefusal
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.file_lock import FileLock

_PATIENCE = 10.0
_WHILE_IT_CHANGED = "It was changed meanwhile. Nothing was written; import again."


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What would be done, or was done, with everything that was found."""

    source: Path
    agent: str
    steps: tuple[MigrationStep, ...]
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


def plan_migration(found: Installation, home: MigrationTarget, options: MigrationOptions) -> MigrationPlan:
    """What would be done; nothing is written."""
    credentials = find_credentials(found)
    redactor = MigrationRedactor(credential.value for credential in credentials)
    history = MigrationHistory(home.root)
    memories = plan_entries(gather(found, "memory", redactor), "memory", home.curated, history)
    user = plan_entries(gather(found, "user", redactor), "user", home.curated, history)
    steps = [
        memories,
        user,
        plan_identity(found, home.root, options, redactor),
        plan_instructions(found, options, redactor),
    ]
    more: list[MigrationStep] = [*plan_skills(found, home.skills, history, options.skill_conflict, redactor)]
    more += plan_notes(found, history, redactor)
    if options.preset == "full":
        more += plan_settings(found, history, redactor)
    more += plan_secrets(credentials, home, options)
    more += plan_omitted_files(found)
    steps_found = (*(step for step in steps if step is not None), *more)
    return MigrationPlan(found.root, found.agent, steps_found, redactor.redacted_count, found.problems)


def run_migration(
    planned: MigrationPlan,
    home: MigrationTarget,
    directory: Path,
    done: Callable[[MigrationStep], None] = lambda step: None,
) -> MigrationPlan:
    """Do what was planned, step by step; one that fails does not keep the others from being done.

    The caller sees to it that nobody else does the same at the time (`one_at_a_time`).
    """
    history = MigrationHistory(home.root)
    steps = []
    for step in planned.steps:
        steps.append(_do(step, home, history, directory) if step.work is not None else step)
        done(steps[-1])
    return replace(planned, steps=tuple(steps))


@contextmanager
def migration_lock(root: Path) -> Iterator[None]:
    """Be the only one who moves into a home, with nothing left over from one that was killed."""
    directory = MigrationHistory(root).directory
    make_private_directory(directory)
    with FileLock(directory / ".lock", _PATIENCE):
        for leftover in directory.rglob(".*.tmp"):
            leftover.unlink()
        yield


def new_directory(root: Path) -> Path:
    """A place for the report, the archive and what did not fit, named by the moment."""
    base = MigrationHistory(root).directory
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names: Iterator[str] = (stamp if not number else f"{stamp}-{number}" for number in range(1000))
    return next(base / name for name in names if not (base / name).exists())


def _do(step: MigrationStep, home: MigrationTarget, history: MigrationHistory, directory: Path) -> MigrationStep:
    try:
        return _done(step, home, history, directory)
    except MemorandaError as error:
        return replace(step, status="error", reason=str(error), work=None)
    except OSError as error:
        reason = f"{error.filename or step.destination}: {error.strerror or error}. Nothing was written."
        return replace(step, status="error", reason=reason, work=None)


def _done(step: MigrationStep, home: MigrationTarget, history: MigrationHistory, directory: Path) -> MigrationStep:
    match step.work:
        case None:
            return step
        case AddEntries() as work:
            return _keep_entries(step, work, home, history, directory)
        case WriteText() as work:
            if not is_as_seen(work):
                return replace(step, status="error", reason=_WHILE_IT_CHANGED, work=None)
            make_private_directory(work.path.parent)
            write_private(work.path, work.text.encode())
        case WriteSkill() as work:
            outcome = make_skill(work, home.skills)
            if isinstance(outcome, SkillRefusal):
                return replace(step, status="error", reason=outcome.message, work=None)
        case ArchiveText() as work:
            _write(directory / "archive" / work.name, work.text)
            history.record_archived(work.name, work.text)
            return replace(step, status="archived", destination=str(directory / "archive" / work.name), work=None)
        case StoreSecret() as work:
            home.store_secret(work.name, work.value)
        case _:
            assert_never(step.work)
    return replace(step, status="migrated", work=None)


def _keep_entries(
    step: MigrationStep, work: AddEntries, home: MigrationTarget, history: MigrationHistory, directory: Path
) -> MigrationStep:
    details = dict(step.details)
    if work.omitted:
        # Before anything else: what finds no room must not be lost if the rest is interrupted.
        place = directory / "overflow" / home.curated.path(work.target).name
        _write(place, serialise([left.text for left in work.omitted]))
        details["overflow_file"] = str(place)
        details["left"] = [
            {"text": left.text, "reason": left.reason, "file": str(left.file)} for left in work.omitted
        ]  # fmt: skip
    outcome = keep_entries(work, home.curated)
    if isinstance(outcome, MemoryRefusal):
        return replace(step, status="error", reason=outcome.message, details=details, work=None)
    history.record_entries(work.target, work.entries, [left.text for left in work.omitted])
    if outcome is not None and outcome.change is not None:
        details["change"] = outcome.change
    return replace(step, status="migrated" if work.entries else "archived", details=details, work=None)


def _write(path: Path, text: str) -> None:
    make_private_directory(path.parent)
    write_private(path, text.encode("utf-8", "surrogatepass"))


def next_steps(done: Sequence[MigrationStep], model: str) -> list[str]:
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
