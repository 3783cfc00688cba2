"""The steps of a migration from OpenClaw as values: what would be done, and afterwards what was done."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills.store import SkillStore

Status = Literal["planned", "migrated", "archived", "skipped", "unchanged", "conflict", "error"]
Preset = Literal["user-data", "full"]
SkillConflict = Literal["skip", "overwrite", "rename"]


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """The options of a migration."""

    preset: Preset = "full"
    overwrite: bool = False
    migrate_secrets: bool = False
    workspace_target: Path | None = None
    skill_conflict: SkillConflict = "skip"


@dataclass(frozen=True, slots=True)
class MigrationTarget:
    """The home that a migration writes to, part by part."""

    root: Path
    curated: MemoryStore
    skills: SkillStore
    secrets: Mapping[str, str] = field(repr=False)
    store_secret: Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class OmittedEntry:
    """An entry that is not migrated, and why."""

    text: str
    reason: str
    file: Path


@dataclass(frozen=True, slots=True)
class AddEntries:
    """Add entries to curated memory in one change; the omitted ones are written to a file."""

    target: Target
    entries: tuple[str, ...]
    omitted: tuple[OmittedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteText:
    """Write a file of the home or of a workspace, if its fingerprint is unchanged since the plan (None: no file)."""

    path: Path
    text: str
    planned_fingerprint: str | None


@dataclass(frozen=True, slots=True)
class WriteSkill:
    """Create a skill, or update its files; by path, SKILL.md first."""

    name: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ArchiveText:
    """Archive a text that has no equivalent here, for the user to review."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class StoreSecret:
    """Store a credential in `.env`."""

    name: str
    value: str = field(repr=False)


Work = AddEntries | WriteText | WriteSkill | ArchiveText | StoreSecret


@dataclass(frozen=True, slots=True)
class MigrationStep:
    """One thing that was found, its status, and the work that it needs."""

    kind: str
    source: str
    destination: str
    status: Status
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    work: Work | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the step for a report, without credentials."""
        status = self.status
        if status == "planned" and isinstance(self.work, ArchiveText):
            plan = "archive"
        else:
            plan = "migrate" if status == "planned" else ""
        return {
            "kind": self.kind,
            "source": self.source,
            "destination": self.destination,
            "status": status,
            **({"plan": plan} if plan else {}),
            "reason": self.reason,
            "details": dict(self.details),
        }
