"""Plans the other files of a workspace: SOUL.md, AGENTS.md, and notes that have no equivalent here."""

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
_MAX_FILE_BYTES = 1_000_000
_NO_EQUIVALENT = "It has no equivalent here; it is archived for your review."


def plan_identity(
    installation: Installation, home: Path, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    """Plan to copy SOUL.md into the home."""
    return _plan_copy("soul", installation, IDENTITY, home / IDENTITY, options, redactor)


def plan_instructions(
    installation: Installation, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    """Plan to copy AGENTS.md to the directory that the user names, because it does not belong to the home."""
    file = installation.find(INSTRUCTIONS)
    if file is None:
        return None
    if options.workspace_target is None:
        reason = "It belongs to a directory that you work in. Name one with --workspace-target."
        return MigrationStep("workspace-agents", str(file), "", "skipped", reason)
    path = options.workspace_target.expanduser().absolute() / INSTRUCTIONS
    return _plan_copy("workspace-agents", installation, INSTRUCTIONS, path, options, redactor)


def plan_notes(
    installation: Installation, history: MigrationHistory, redactor: MigrationRedactor
) -> Iterator[MigrationStep]:
    """Plan to archive the other Markdown files of the workspace."""
    for name in _NOTES:
        if (file := installation.find(name)) and file.is_file():
            yield _plan_note(file, f"workspace/{name}", history, redactor)
    notes = installation.find("memory")
    for file in sorted(notes.glob("*/**/*.md")) if notes is not None and notes.is_dir() else ():
        if file.is_file() and not file.is_symlink():
            yield _plan_note(
                file, f"workspace/memory/{file.relative_to(notes or file.parent).as_posix()}", history, redactor
            )
    for file in sorted(installation.workspaces[0].glob("users/*/USER.md")) if installation.workspaces else ():
        if file.is_file() and not file.is_symlink():
            yield _plan_note(file, f"workspace/users/{file.parent.name}/USER.md", history, redactor)


def plan_archive(
    kind: str, source: str, name: str, text: str, history: MigrationHistory, reason: str = _NO_EQUIVALENT
) -> MigrationStep:
    """Return a step that archives a text, unless this text was archived before."""
    if history.was_archived(name, text):
        return MigrationStep(kind, source, f"archive/{name}", "unchanged", "It was archived before.")
    return MigrationStep(kind, source, f"archive/{name}", "planned", reason, work=ArchiveText(name, text))


def _plan_note(file: Path, name: str, history: MigrationHistory, redactor: MigrationRedactor) -> MigrationStep:
    text = _read_note(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep("archive", str(file), "", "skipped", "It is OpenClaw's own template, unchanged.")
    return plan_archive("archive", str(file), name, redactor.text(text), history)


def _plan_copy(
    kind: str, installation: Installation, name: str, path: Path, options: MigrationOptions, redactor: MigrationRedactor
) -> MigrationStep | None:
    file = installation.find(name)
    if file is None:
        return None
    text = _read_note(file)
    if isinstance(text, MigrationStep):
        return text
    if is_template(text):
        return MigrationStep(kind, str(file), str(path), "skipped", "It is OpenClaw's own template, unchanged.")
    clean = redactor.text(text)
    status, reason = _copy_status(path, clean, options)
    present = read_text(path)
    work = WriteText(path, clean, present.fingerprint if isinstance(present, TextFile) else None)
    return MigrationStep(kind, str(file), str(path), status, reason, work=work if status == "planned" else None)


def _copy_status(path: Path, text: str, options: MigrationOptions) -> tuple[Status, str]:
    """Return the status of a copy to a path, and the reason."""
    present = read_text(path)
    if isinstance(present, MissingFile):
        return "planned", ""
    if not isinstance(present, TextFile):
        return "error", f"{path} cannot be read: {present.problem}."
    if present.text == text:
        return "unchanged", "It is already here."
    if path.is_symlink():
        return "conflict", f"{path} is a link; change the file that it points to."
    if not options.overwrite:
        return "conflict", "Another file is here; --overwrite replaces it."
    return "planned", "Replaces the file that is here."


def is_unchanged(work: WriteText) -> bool:
    """Whether the file to write has not changed since the step was planned."""
    state = read_text(work.path)
    if work.planned_fingerprint is None:
        return isinstance(state, MissingFile) or (
            isinstance(state, TextFile) and state.fingerprint == fingerprint(work.text.encode())
        )
    return isinstance(state, TextFile) and state.fingerprint == work.planned_fingerprint


def _read_note(file: Path) -> str | MigrationStep:
    if file.stat().st_size > _MAX_FILE_BYTES:
        return MigrationStep(
            "archive", str(file), "", "skipped", f"It is too large ({file.stat().st_size:,} bytes); skipped."
        )
    state = read_text(file)
    if isinstance(state, TextFile):
        return state.text
    return MigrationStep("archive", str(file), "", "error", getattr(state, "problem", "it no longer exists"))
