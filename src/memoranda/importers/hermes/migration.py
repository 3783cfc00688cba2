"""Everything that a Hermes home has beside its sessions: planned first, then taken over, then told."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.curated.store import MemoryStore
from memoranda.importers.hermes.memories import keep_entries, plan_entries, write_down
from memoranda.importers.hermes.outcomes import MigrationOutcome, Status
from memoranda.importers.hermes.skills import SkillMigration, make_skills, plan_skills
from memoranda.skills.store import SkillStore


@dataclass(frozen=True, slots=True)
class HermesMigration:
    """What becomes of entries and skills; `written_down` are the files that hold what was left."""

    entries: Sequence[MigrationOutcome] = ()
    skills: Sequence[SkillMigration] = ()
    written_files: Sequence[Path] = ()

    @property
    def outcomes(self) -> list[MigrationOutcome]:
        return [*self.entries, *(plan.outcome for plan in self.skills)]

    def with_status(self, *statuses: Status) -> list[MigrationOutcome]:
        """Everything that comes to one of these."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    def counts(self) -> dict[str, Counter[str]]:
        """How many entries and skills come to what."""
        found: dict[str, Counter[str]] = {"memory": Counter(), "user": Counter(), "skill": Counter()}
        for outcome in self.outcomes:
            found[outcome.kind][outcome.status] += 1
        return found

    def as_json(self) -> dict[str, Any]:
        """The same as JSON-like values, for a report or a program."""
        return {
            "counts": {kind: dict(counted) for kind, counted in self.counts().items()},
            "entries": [_as_json(outcome) for outcome in self.entries],
            "skills": [
                _as_json(plan.outcome) | ({"files_left": plan.omitted_files} if plan.omitted_files else {})
                for plan in self.skills
            ],
            "written_down": [str(file) for file in self.written_files],
        }


def home_of(where: Path) -> Path:
    """The home that a place is, or that a database lies in."""
    return where.parent if where.is_file() else where


def plan_migration(
    home: Path, memory: MemoryStore | None, skills: SkillStore | None, *, rescan: bool = False
) -> HermesMigration:
    """What would be taken over; what is None is not asked for."""
    return HermesMigration(
        plan_entries(home, memory, rescan=rescan) if memory else (), plan_skills(home, skills) if skills else ()
    )


def apply_migration(
    root: Path, planned: HermesMigration, memory: MemoryStore | None, skills: SkillStore | None
) -> HermesMigration:
    """Take over what was planned; what became of it, and where the rest was written down below `root`."""
    entries = keep_entries(planned.entries, memory) if memory else []
    return HermesMigration(entries, make_skills(planned.skills, skills) if skills else (), write_down(root, entries))


def _as_json(outcome: MigrationOutcome) -> dict[str, str]:
    reason = {"reason": outcome.reason} if outcome.reason else {}
    return {"kind": outcome.kind, "name": outcome.name, "status": outcome.status, **reason}
