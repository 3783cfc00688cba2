"""Reports a migration as JSON and as text."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.openclaw.migration.runner import MigrationPlan
from memoranda.importers.openclaw.migration.steps import ArchiveText, MigrationStep
from memoranda.support.durable_files import make_private_directory, write_private

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
