"""The steps of a migration from OpenClaw as values: what would be done, and afterwards what was done.

The history records what earlier migrations added, so that the next one adds none of it again, even if it was removed
here.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills.store import SkillStore
from memoranda.support.canonical_text import digest
from memoranda.support.durable_files import make_private_directory, write_private
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_file import TextFile, read_text

Status = Literal["planned", "migrated", "archived", "skipped", "unchanged", "conflict", "error"]
Preset = Literal["user-data", "full"]
SkillConflict = Literal["skip", "overwrite", "rename"]
DIRECTORY = Path("migration") / "openclaw"
_FILE = "taken.json"


@dataclass(frozen=True, slots=True)
class MigrationOptions:
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


class MigrationHistory:
    """Digests of entries that were added or omitted, and of texts that were archived; it contains no text."""

    def __init__(self, root: Path) -> None:
        self.directory = root / DIRECTORY
        state = read_text(self.directory / _FILE)
        # Without it, entries that are here already are recognized by their text.
        stored = (parse_object(state.text) if isinstance(state, TextFile) else None) or {}
        self._known = {
            kind: {known for known in stored.get(kind, ()) if isinstance(known, str)}
            for kind in ("added", "left", "archived")
        }

    def was_added(self, target: str, text: str) -> bool:
        return _entry_digest(target, text) in self._known["added"]

    def was_omitted(self, target: str, text: str) -> bool:
        return _entry_digest(target, text) in self._known["left"]

    def was_archived(self, name: str, text: str) -> bool:
        return _entry_digest(name, text) in self._known["archived"]

    def record_entries(self, target: str, added: Iterable[str], omitted: Iterable[str]) -> None:
        """Record which entries were added and which were omitted; those may be added later."""
        self._known["added"] |= {_entry_digest(target, text) for text in added}
        self._known["left"] |= {_entry_digest(target, text) for text in omitted}
        self._known["left"] -= self._known["added"]
        self._write()

    def record_archived(self, name: str, text: str) -> None:
        self._known["archived"].add(_entry_digest(name, text))
        self._write()

    def _write(self) -> None:
        make_private_directory(self.directory)
        content = {kind: sorted(digests) for kind, digests in self._known.items()}
        write_private(self.directory / _FILE, json.dumps(content, indent=1).encode() + b"\n")


def _entry_digest(kind: str, text: str) -> str:
    return digest(f"{kind}\n{text}")[:32]
