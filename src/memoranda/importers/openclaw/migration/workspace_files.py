"""The other texts of a workspace: who the agent is, how it works, and notes that have no place here."""

from collections.abc import Iterator
from pathlib import Path

from memoranda.importers.openclaw.installation import Installation
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.steps import ArchiveText, MigrationOptions, MigrationStep, Status, WriteText
from memoranda.importers.openclaw.migration.templates import is_template
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.support.text_file import MissingFile, TextFile, fingerprint, read_text

IDENTITY = "SOUL.md"
INSTRUCTIONS = "AGENTS.md"
_NOTES = ("IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md")
_LARGEST = 1_000_000
_NO_PLACE = "There is no place for it here; it is kept for you to look at."


def plan_identity(
    found: Installation, home: Path, wishes: MigrationOptions, gate: MigrationRedactor
) -> MigrationStep | None:
    """SOUL.md becomes the home's own."""
    return _copied("soul", found, IDENTITY, home / IDENTITY, wishes, gate)


def plan_instructions(found: Installation, wishes: MigrationOptions, gate: MigrationRedactor) -> MigrationStep | None:
    """AGENTS.md goes where a person wants it: it is about a directory to work in, and a home is none."""
    file = found.find(INSTRUCTIONS)
    if file is None:
        return None
    if wishes.workspace_target is None:
        reason = "It belongs to a directory that you work in. Name one with --workspace-target."
        return MigrationStep("workspace-agents", str(file), "", "skipped", reason)
    place = wishes.workspace_target.expanduser().absolute() / INSTRUCTIONS
    return _copied("workspace-agents", found, INSTRUCTIONS, place, wishes, gate)


def plan_notes(found: Installation, ledger: MigrationHistory, gate: MigrationRedactor) -> Iterator[MigrationStep]:
    """Everything else that the workspace keeps in Markdown is archived."""
    for name in _NOTES:
        if (file := found.find(name)) and file.is_file():
            yield _archived(file, f"workspace/{name}", ledger, gate)
    notes = found.find("memory")
    for file in sorted(notes.glob("*/**/*.md")) if notes is not None and notes.is_dir() else ():
        if file.is_file() and not file.is_symlink():
            yield _archived(file, f"workspace/memory/{file.relative_to(notes or file.parent).as_posix()}", ledger, gate)
    for file in sorted(found.workspaces[0].glob("users/*/USER.md")) if found.workspaces else ():
        if file.is_file() and not file.is_symlink():
            yield _archived(file, f"workspace/users/{file.parent.name}/USER.md", ledger, gate)


def archived_text(
    kind: str, source: str, name: str, text: str, ledger: MigrationHistory, reason: str = _NO_PLACE
) -> MigrationStep:
    """A step that keeps a text in the archive, unless just this text is there."""
    if ledger.was_archived(name, text):
        return MigrationStep(kind, source, f"archive/{name}", "unchanged", "It was archived before.")
    return MigrationStep(kind, source, f"archive/{name}", "planned", reason, work=ArchiveText(name, text))


def _archived(file: Path, name: str, ledger: MigrationHistory, gate: MigrationRedactor) -> MigrationStep:
    text = _text_of(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep("archive", str(file), "", "skipped", "It is OpenClaw's own text, as it came.")
    return archived_text("archive", str(file), name, gate.text(text), ledger)


def _copied(
    kind: str, found: Installation, name: str, place: Path, wishes: MigrationOptions, gate: MigrationRedactor
) -> MigrationStep | None:
    file = found.find(name)
    if file is None:
        return None
    text = _text_of(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep(kind, str(file), str(place), "skipped", "It is OpenClaw's own text, as it came.")
    clean = gate.text(text)
    status, reason = _judged(place, clean, wishes)
    present = read_text(place)
    work = WriteText(place, clean, present.fingerprint if isinstance(present, TextFile) else None)
    return MigrationStep(kind, str(file), str(place), status, reason, work=work if status == "planned" else None)


def _judged(place: Path, text: str, wishes: MigrationOptions) -> tuple[Status, str]:
    """What becomes of a text that belongs to a place, and why."""
    present = read_text(place)
    if isinstance(present, MissingFile):
        return "planned", ""
    if not isinstance(present, TextFile):
        return "error", f"{place} cannot be read: {present.problem}."
    if present.text == text:
        return "unchanged", "It is there already."
    if place.is_symlink():
        return "conflict", f"{place} is a link; change the file that it leads to."
    if not wishes.overwrite:
        return "conflict", "Another one is there; --overwrite replaces it."
    return "planned", "Replaces the one that is there."


def is_as_seen(work: WriteText) -> bool:
    """Whether the file that would be written is still as it was when that was planned."""
    state = read_text(work.path)
    if work.seen is None:
        return isinstance(state, MissingFile) or (
            isinstance(state, TextFile) and state.fingerprint == fingerprint(work.text.encode())
        )
    return isinstance(state, TextFile) and state.fingerprint == work.seen


def _text_of(file: Path) -> str | MigrationStep:
    if file.stat().st_size > _LARGEST:
        return MigrationStep(
            "archive", str(file), "", "skipped", f"It is too large ({file.stat().st_size:,} bytes); left there."
        )
    state = read_text(file)
    if isinstance(state, TextFile):
        return state.text
    return MigrationStep("archive", str(file), "", "error", getattr(state, "problem", "it is gone"))
