"""A move from OpenClaw in steps: what would be done with what, and after it what was done. Values, not closures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memoranda.curated.settings import Target
from memoranda.curated.store import MemoryStore
from memoranda.skills.store import SkillStore

Status = Literal["planned", "migrated", "archived", "skipped", "unchanged", "conflict", "error"]
Preset = Literal["user-data", "full"]
SkillConflict = Literal["skip", "overwrite", "rename"]


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """What a person asked for."""

    preset: Preset = "full"
    overwrite: bool = False
    migrate_secrets: bool = False
    workspace_target: Path | None = None
    skill_conflict: SkillConflict = "skip"


@dataclass(frozen=True, slots=True)
class MigrationTarget:
    """The home that everything moves into, part by part."""

    root: Path
    curated: MemoryStore
    skills: SkillStore
    secrets: Mapping[str, str] = field(repr=False)
    keep_secret: Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class OmittedEntry:
    """An entry that is not taken over, and why."""

    text: str
    reason: str
    file: Path


@dataclass(frozen=True, slots=True)
class AddEntries:
    """Add entries to curated memory in one change; what does not go there is written down beside it."""

    target: Target
    entries: tuple[str, ...]
    left: tuple[OmittedEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class WriteText:
    """Write a file of the home or of a workspace, if it still has the content that was seen (None: is not there)."""

    path: Path
    text: str
    seen: str | None


@dataclass(frozen=True, slots=True)
class WriteSkill:
    """Make a skill, or bring the files of one up to what they are there; by their paths, SKILL.md first."""

    name: str
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ArchiveText:
    """Keep a text that has no place here, for a person to look at."""

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
    """One thing that was found, what becomes of it, and the work that this takes."""

    kind: str
    source: str
    destination: str
    status: Status
    reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    work: Work | None = None

    def as_json(self) -> dict[str, Any]:
        """The step for a report; never with a credential in it."""
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
