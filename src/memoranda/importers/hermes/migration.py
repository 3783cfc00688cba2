"""Migrates what a Hermes home has besides its sessions: memories and skills."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.importers.hermes.memories import add_entries, plan_entries, write_omitted_entries
from memoranda.importers.hermes.outcomes import MigrationOutcome, Status
from memoranda.importers.hermes.skills import SkillMigration, create_skills, plan_skills
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills.store import SkillStore


@dataclass(frozen=True, slots=True)
class HermesMigration:
    """The outcomes of entries and skills; `written_files` contain the omitted entries."""

    entries: Sequence[MigrationOutcome] = ()
    skills: Sequence[SkillMigration] = ()
    written_files: Sequence[Path] = ()

    @property
    def outcomes(self) -> list[MigrationOutcome]:
        return [*self.entries, *(plan.outcome for plan in self.skills)]

    def with_status(self, *statuses: Status) -> list[MigrationOutcome]:
        """Return the outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    def counts(self) -> dict[str, Counter[str]]:
        """Return the number of entries and skills by status."""
        found: dict[str, Counter[str]] = {"memory": Counter(), "user": Counter(), "skill": Counter()}
        for outcome in self.outcomes:
            found[outcome.kind][outcome.status] += 1
        return found

    def as_json(self) -> dict[str, Any]:
        """Return the outcomes as JSON-like values, for a report or a program."""
        return {
            "counts": {kind: dict(counted) for kind, counted in self.counts().items()},
            "entries": [_as_json(outcome) for outcome in self.entries],
            "skills": [
                _as_json(plan.outcome) | ({"files_left": plan.omitted_files} if plan.omitted_files else {})
                for plan in self.skills
            ],
            "written_down": [str(file) for file in self.written_files],
        }


def home_of(path: Path) -> Path:
    """Return the home: the path itself, or the directory of a database."""
    return path.parent if path.is_file() else path


def plan_migration(
    home: Path, memory: MemoryStore | None, skills: SkillStore | None, *, rescan: bool = False
) -> HermesMigration:
    """Return what would be migrated; memories or skills are omitted when their store is None."""
    return HermesMigration(
        plan_entries(home, memory, rescan=rescan) if memory else (), plan_skills(home, skills) if skills else ()
    )


def apply_migration(
    root: Path, planned: HermesMigration, memory: MemoryStore | None, skills: SkillStore | None
) -> HermesMigration:
    """Migrate what was planned, and write omitted entries to files below `root`."""
    entries = add_entries(planned.entries, memory) if memory else []
    return HermesMigration(
        entries, create_skills(planned.skills, skills) if skills else (), write_omitted_entries(root, entries)
    )


def _as_json(outcome: MigrationOutcome) -> dict[str, str]:
    reason = {"reason": outcome.reason} if outcome.reason else {}
    return {"kind": outcome.kind, "name": outcome.name, "status": outcome.status, **reason}
