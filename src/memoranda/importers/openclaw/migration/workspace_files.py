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
    found: Installation, home: Path, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    """SOUL.md becomes the home's own."""
    return _copied("soul", found, IDENTITY, home / IDENTITY, options, redactor)


def plan_instructions(
    found: Installation, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    """AGENTS.md goes where a person wants it: it is about a directory to work in, and a home is none."""
    file = found.find(INSTRUCTIONS)
    if file is None:
        return None
    if options.workspace_target is None:
        reason = "It belongs to a directory that you work in. Name one with --workspace-target."
        return MigrationStep("workspace-agents", str(file), "", "skipped", reason)
    place = options.workspace_target.expanduser().absolute() / INSTRUCTIONS
    return _copied("workspace-agents", found, INSTRUCTIONS, place, options, redactor)


def plan_notes(found: Installation, history: MigrationHistory, redactor: MigrationRedactor) -> Iterator[MigrationStep]:
    """Everything else that the workspace keeps in Markdown is archived."""
    for name in _NOTES:
        if (file := found.find(name)) and file.is_file():
            yield _archived(file, f"workspace/{name}", history, redactor)
    notes = found.find("memory")
    for file in sorted(notes.glob("*/**/*.md")) if notes is not None and notes.is_dir() else ():
        if file.is_file() and not file.is_symlink():
            yield _archived(
                file, f"workspace/memory/{file.relative_to(notes or file.parent).as_posix()}", history, redactor
            )
    for file in sorted(found.workspaces[0].glob("users/*/USER.md")) if found.workspaces else ():
        if file.is_file() and not file.is_symlink():
            yield _archived(file, f"workspace/users/{file.parent.name}/USER.md", history, redactor)


def archived_text(
    kind: str, source: str, name: str, text: str, history: MigrationHistory, reason: str = _NO_PLACE
) -> MigrationStep:
    """A step that keeps a text in the archive, unless just this text is there."""
    if history.was_archived(name, text):
        return MigrationStep(kind, source, f"archive/{name}", "unchanged", "It was archived before.")
    return MigrationStep(kind, source, f"archive/{name}", "planned", reason, work=ArchiveText(name, text))


def _archived(file: Path, name: str, history: MigrationHistory, redactor: MigrationRedactor) -> MigrationStep:
    text = _text_of(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep("archive", str(file), "", "skipped", "It is OpenClaw's own text, as it came.")
    return archived_text("archive", str(file), name, redactor.text(text), history)


def _copied(
    kind: str, found: Installation, name: str, place: Path, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    file = found.find(name)
    if file is None:
        return None
    text = _text_of(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep(kind, str(file), str(place), "skipped", "It is OpenClaw's own text, as it came.")
    clean = redactor.text(text)
    status, reason = _judged(place, clean, options)
    present = read_text(place)
    work = WriteText(place, clean, present.fingerprint if isinstance(present, TextFile) else None)
    return MigrationStep(kind, str(file), str(place), status, reason, work=work if status == "planned" else None)


def _judged(place: Path, text: str, options: MigrationOptions) -> tuple[Status, str]:
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
    if not options.overwrite:
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
