"""The report of a move: what was done with everything, as JSON and in words, beside the archive."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.openclaw.migration.runner import MigrationPlan
from memoranda.importers.openclaw.migration.steps import ArchiveText, MigrationStep
from memoranda.support.durable_files import make_private_directory, write_private

FILE_NAME = "report.json"
_WORDS = {
    "migrated": "Taken over",
    "planned": "Would be taken over",
    "archive": "Would be archived",
    "archived": "Archived, for you to look at",
    "conflict": "Not taken over: something else is here",
    "error": "Failed",
    "unchanged": "Here already",
    "skipped": "Left there",
}
_SHOWN = 40


def write_report(directory: Path, migration: MigrationPlan, *, finished: bool, **more: Any) -> Path:
    """Write the report; the first one, before the work, says that it is not finished."""
    make_private_directory(directory)
    content = {"finished": finished, **migration.as_json(), **more}
    write_private(directory / FILE_NAME, json.dumps(content, ensure_ascii=True, indent=2).encode() + b"\n")
    if finished:
        text = "\n".join(["# Imported from OpenClaw", "", *step_lines(migration, every=True)]) + "\n"
        write_private(directory / "summary.md", text.encode("utf-8", "replace"))
    return directory / FILE_NAME


def step_lines(migration: MigrationPlan, *, every: bool = False) -> list[str]:
    """What would happen or has happened, in words, what matters most first."""
    lines: list[str] = []
    groups: dict[str, list[MigrationStep]] = {name: [] for name in _WORDS}
    for step in migration.steps:
        planned_archive = step.status == "planned" and isinstance(step.work, ArchiveText)
        groups["archive" if planned_archive else step.status].append(step)
    for name, title in _WORDS.items():
        if groups[name]:
            lines.append(f"{title}:")
            lines += _group(groups[name], every)
    lines += [f"! {problem}" for problem in migration.problems]
    if migration.redacted:
        lines.append(f"{migration.redacted} credentials were taken out of the texts; they stay in OpenClaw's files.")
    return lines


def _group(steps: Sequence[MigrationStep], every: bool) -> list[str]:
    shown = list(steps) if every else list(steps)[:_SHOWN]
    lines = [line for step in shown for line in _step(step)]
    return [*lines, f"  and {len(steps) - len(shown)} more"] if len(steps) > len(shown) else lines


def _step(step: MigrationStep) -> list[str]:
    arrow = f" -> {step.destination}" if step.destination and step.status not in ("skipped", "unchanged") else ""
    lines = [f"  {step.kind}: {step.source}{arrow}"]
    details = step.details
    if "added_entries" in details:
        lines.append(
            f"    entries: {details['added_entries']} new, {details['duplicate_entries']} here already, "
            f"{details['left_entries']} left ({details['final_char_count']:,} of {details['char_limit']:,} characters)"
        )
        lines += [f"    left: {text}" for text in details["left_preview"]]
        aside = [f"{number} {label}" for label, number in details["set_aside"].items()]
        lines += [f"    no entries of: {', '.join(aside)}"] if aside else []
    if step.reason:
        lines.append(f"    {step.reason}")
    lines += [f"    file left: {file} ({why})" for file, why in details.get("left_files", {}).items()]
    return lines
