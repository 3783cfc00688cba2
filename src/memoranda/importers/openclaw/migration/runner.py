"""Plans a migration from OpenClaw, runs the plan step by step, and reports it as JSON and as text."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

from memoranda.errors import MemorandaError
from memoranda.importers.migration import add_entries
from memoranda.importers.openclaw.credentials import MigrationRedactor, find_credentials
from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.memories import gather, plan_entries
from memoranda.importers.openclaw.migration.skills import plan_skills, write_skill
from memoranda.importers.openclaw.migration.steps import (
    AddEntries,
    ArchiveText,
    MigrationHistory,
    MigrationOptions,
    MigrationStep,
    MigrationTarget,
    Status,
    StoreSecret,
    WriteSkill,
    WriteText,
)
from memoranda.importers.openclaw.migration.workspace import (
    is_unchanged,
    plan_identity,
    plan_instructions,
    plan_notes,
    plan_omitted_files,
    plan_secrets,
    plan_settings,
)
from memoranda.memory.curated.memory_file import serialise
from memoranda.memory.curated.operations import MemoryRefusal
from memoranda.memory.skills.write_result import SkillRefusal
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.lazy_dataclass import dataclass

_LOCK_TIMEOUT = 10.0
_CHANGED_SINCE_PLAN = "The file changed after the plan was made. Nothing was written; import again."
FILE_NAME = "report.json"
_TITLES = {
    "migrated": "Migrated",
    "planned": "Would be migrated",
    "archive": "Would be archived",
    "archived": "Archived for your review",
    "conflict": "Not migrated because something else is here",
    "error": "Failed",
    "unchanged": "Already here",
    "skipped": "Skipped",
}
_MAX_STEPS = 40


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps of a migration, planned or done."""

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
        """Return the number of steps by status."""
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


def plan_migration(installation: Installation, home: MigrationTarget, options: MigrationOptions) -> MigrationPlan:
    """Return what a migration would do; writes nothing."""
    credentials = find_credentials(installation)
    redactor = MigrationRedactor(credential.value for credential in credentials)
    history = MigrationHistory(home.root)
    memories = plan_entries(gather(installation, "memory", redactor), "memory", home.curated, history)
    user = plan_entries(gather(installation, "user", redactor), "user", home.curated, history)
    steps = [
        memories,
        user,
        plan_identity(installation, home.root, options, redactor),
        plan_instructions(installation, options, redactor),
    ]
    more: list[MigrationStep] = [*plan_skills(installation, home.skills, history, options.skill_conflict, redactor)]
    more += plan_notes(installation, history, redactor)
    if options.preset == "full":
        more += plan_settings(installation, history, redactor)
    more += plan_secrets(credentials, home, options)
    more += plan_omitted_files(installation)
    all_steps = (*(step for step in steps if step is not None), *more)
    return MigrationPlan(
        installation.root, installation.agent, all_steps, redactor.redacted_count, installation.problems
    )


def run_migration(planned: MigrationPlan, home: MigrationTarget, directory: Path) -> MigrationPlan:
    """Run the planned steps and return them with their results; a step that fails does not stop the others.

    The caller holds the `migration_lock`.
    """
    history = MigrationHistory(home.root)
    steps = (step if step.work is None else _run_step(step, home, history, directory) for step in planned.steps)
    return replace(planned, steps=tuple(steps))


@contextmanager
def migration_lock(root: Path) -> Iterator[None]:
    """Allow one migration at a time in a home, and remove the temporary files of a killed one."""
    directory = MigrationHistory(root).directory
    make_private_directory(directory)
    with FileLock(directory / ".lock", _LOCK_TIMEOUT):
        for leftover in directory.rglob(".*.tmp"):
            leftover.unlink()
        yield


def new_directory(root: Path) -> Path:
    """Return a new directory for the report, the archive and the omitted entries, named after the current time."""
    base = MigrationHistory(root).directory
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    names: Iterator[str] = (stamp if not number else f"{stamp}-{number}" for number in range(1000))
    return next(base / name for name in names if not (base / name).exists())


def _run_step(step: MigrationStep, home: MigrationTarget, history: MigrationHistory, directory: Path) -> MigrationStep:
    try:
        return _do_work(step, home, history, directory)
    except MemorandaError as error:
        return replace(step, status="error", reason=str(error), work=None)
    except OSError as error:
        reason = f"{error.filename or step.destination}: {error.strerror or error}. Nothing was written."
        return replace(step, status="error", reason=reason, work=None)


def _do_work(step: MigrationStep, home: MigrationTarget, history: MigrationHistory, directory: Path) -> MigrationStep:
    match step.work:
        case None:
            return step
        case AddEntries() as work:
            return _add_entries(step, work, home, history, directory)
        case WriteText() as work:
            if not is_unchanged(work):
                return replace(step, status="error", reason=_CHANGED_SINCE_PLAN, work=None)
            make_private_directory(work.path.parent)
            write_private(work.path, work.text.encode())
        case WriteSkill() as work:
            outcome = write_skill(work, home.skills)
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


def _add_entries(
    step: MigrationStep, work: AddEntries, home: MigrationTarget, history: MigrationHistory, directory: Path
) -> MigrationStep:
    details = dict(step.details)
    if work.omitted:
        # First, so that omitted entries are not lost if the rest is interrupted.
        file = directory / "overflow" / home.curated.path(work.target).name
        _write(file, serialise([entry.text for entry in work.omitted]))
        details["overflow_file"] = str(file)
        details["left"] = [
            {"text": entry.text, "reason": entry.reason, "file": str(entry.file)} for entry in work.omitted
        ]  # fmt: skip
    outcome = add_entries(work.target, work.entries, home.curated) if work.entries else None
    if isinstance(outcome, MemoryRefusal):
        return replace(step, status="error", reason=outcome.message, details=details, work=None)
    history.record_entries(work.target, work.entries, [entry.text for entry in work.omitted])
    if outcome is not None and outcome.change is not None:
        details["change"] = outcome.change
    return replace(step, status="migrated" if work.entries else "archived", details=details, work=None)


def _write(path: Path, text: str) -> None:
    make_private_directory(path.parent)
    write_private(path, text.encode("utf-8", "surrogatepass"))


def next_steps(done: Sequence[MigrationStep], model: str) -> list[str]:
    """Return what the user may want to do after a migration."""
    steps = ["New sessions have the memories in their prompt; open sessions keep their prompt."]
    if any(step.details.get("without_room") for step in done):
        steps.append(
            "Some entries did not fit. Raise memory.memory_char_limit or memory.user_char_limit, and import again."
        )
    if model:
        steps.append(f"OpenClaw's agent used the model {model}; 'memoranda config set model.name' chooses one here.")
    steps.append("When everything is fine, rename OpenClaw's directory with 'memoranda import openclaw cleanup'.")
    return steps


def write_report(directory: Path, migration: MigrationPlan, *, finished: bool, **more: Any) -> Path:
    """Write the report; the first one, before the work, is marked as not finished."""
    make_private_directory(directory)
    content = {"finished": finished, **migration.as_json(), **more}
    write_private(directory / FILE_NAME, json.dumps(content, ensure_ascii=True, indent=2).encode() + b"\n")
    if finished:
        text = "\n".join(["# Imported from OpenClaw", "", *step_lines(migration, every=True)]) + "\n"
        write_private(directory / "summary.md", text.encode("utf-8", "replace"))
    return directory / FILE_NAME


def step_lines(migration: MigrationPlan, *, every: bool = False) -> list[str]:
    """Describe what would happen or has happened, the most important first."""
    lines: list[str] = []
    groups: dict[str, list[MigrationStep]] = {name: [] for name in _TITLES}
    for step in migration.steps:
        planned_archive = step.status == "planned" and isinstance(step.work, ArchiveText)
        groups["archive" if planned_archive else step.status].append(step)
    for name, title in _TITLES.items():
        if groups[name]:
            lines.append(f"{title}:")
            lines += _group_lines(groups[name], every)
    lines += [f"! {problem}" for problem in migration.problems]
    if migration.redacted:
        lines.append(f"{migration.redacted} credentials were redacted in the texts; they stay in OpenClaw's files.")
    return lines


def _group_lines(steps: Sequence[MigrationStep], every: bool) -> list[str]:
    shown = list(steps) if every else list(steps)[:_MAX_STEPS]
    lines = [line for step in shown for line in _step_lines(step)]
    return [*lines, f"  and {len(steps) - len(shown)} more"] if len(steps) > len(shown) else lines


def _step_lines(step: MigrationStep) -> list[str]:
    arrow = f" -> {step.destination}" if step.destination and step.status not in ("skipped", "unchanged") else ""
    lines = [f"  {step.kind}: {step.source}{arrow}"]
    details = step.details
    if "added_entries" in details:
        lines.append(
            f"    entries: {details['added_entries']} new, {details['duplicate_entries']} already here, "
            f"{details['left_entries']} omitted "
            f"({details['final_char_count']:,} of {details['char_limit']:,} characters)"
        )
        lines += [f"    omitted: {text}" for text in details["left_preview"]]
        skipped = [f"{number} {label}" for label, number in details["set_aside"].items()]
        lines += [f"    skipped: {', '.join(skipped)}"] if skipped else []
    if step.reason:
        lines.append(f"    {step.reason}")
    lines += [f"    file omitted: {file} ({why})" for file, why in details.get("left_files", {}).items()]
    return lines
