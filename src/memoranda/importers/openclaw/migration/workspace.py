"""Plans what else a workspace has: SOUL.md, AGENTS.md, notes without an equivalent here, settings and credentials.

Settings are archived without credentials; keys are copied only on request.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.openclaw.credentials import Credential, MigrationRedactor
from memoranda.importers.openclaw.installation import Installation, section
from memoranda.importers.openclaw.migration.steps import (
    ArchiveText,
    MigrationHistory,
    MigrationOptions,
    MigrationStep,
    MigrationTarget,
    Status,
    StoreSecret,
    WriteText,
)
from memoranda.importers.openclaw.migration.templates import is_template
from memoranda.support.relaxed_json import JsonTextError, parse_json5
from memoranda.support.text_file import MissingFile, TextFile, fingerprint, read_text

IDENTITY = "SOUL.md"
INSTRUCTIONS = "AGENTS.md"
_NOTES = ("IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md", "BOOTSTRAP.md", "DREAMS.md")
_MAX_FILE_BYTES = 1_000_000
_NO_EQUIVALENT = "It has no equivalent here; it is archived for your review."
_OTHER_FILES = ("cron/jobs.json", "exec-approvals.json", "plugins/installs.json", "hooks/transforms.json")
# The names in a workspace that are migrated; everything else is the user's work, and is not copied.
_MIGRATED = (
    "MEMORY.md", "memory.md", "USER.md", "SOUL.md", "AGENTS.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md",
    "BOOTSTRAP.md", "DREAMS.md", "memory", "skills", "users", ".git",
)  # fmt: skip
# Files that only OpenClaw can use, or that must not be copied.
_NEVER_COPIED = {
    "credentials": "signed-in accounts of channels",
    "identity": "keys of this device",
    "devices": "paired devices",
    "state": "OpenClaw's own state",
    "memory": "its search index, which is built from the notes",
    "agents/{agent}/agent/auth-profiles.json": "accounts that the agent signs in with",
    "workspace.zip": "a copy of the workspace",
}


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


def plan_settings(
    installation: Installation, history: MigrationHistory, redactor: MigrationRedactor
) -> Iterator[MigrationStep]:
    """Plan to archive the configuration and the files beside it, for the user to review."""
    if installation.config and installation.config_file is not None:
        text = json.dumps(redactor.settings(installation.config), ensure_ascii=False, indent=2) + "\n"
        reason = f"Sections {', '.join(sorted(map(str, installation.config)))}: for your review."
        yield plan_archive(
            "settings", str(installation.config_file), installation.config_file.name, text, history, reason
        )
    for name in _OTHER_FILES:
        state = read_text(installation.root / name)
        if not isinstance(state, TextFile):
            continue
        try:
            text = json.dumps(redactor.settings(parse_json5(state.text)), ensure_ascii=False, indent=2) + "\n"
        except JsonTextError as error:
            yield MigrationStep("settings", str(state.path), "", "error", str(error))
        else:
            yield plan_archive("settings", str(state.path), name, text, history)


def plan_secrets(
    credentials: Sequence[Credential], home: MigrationTarget, options: MigrationOptions
) -> Iterator[MigrationStep]:
    """Plan the credentials: one step for each that can be used here, and one for all others."""
    unusable = [credential for credential in credentials if not credential.is_usable]
    for credential in credentials:
        if credential.is_usable:
            yield _plan_secret(credential, home, options)
    if unusable:
        names = ", ".join(credential.name for credential in unusable[:10])
        more = f" and {len(unusable) - 10} more" if len(unusable) > 10 else ""
        where = ", ".join(sorted({str(credential.file) for credential in unusable}))
        yield MigrationStep("secret", where, "", "skipped", f"Not usable here; they stay in OpenClaw: {names}{more}.")


def plan_omitted_files(installation: Installation) -> Iterator[MigrationStep]:
    """Yield a step for everything that is never copied, so that the report names it."""
    for name, label in _NEVER_COPIED.items():
        path = installation.root / name.format(agent=installation.agent)
        if path.exists():
            yield MigrationStep("left", str(path), "", "skipped", f"{label[0].upper()}{label[1:]}; never copied.")
    for workspace in installation.workspaces:
        names = sorted(path.name for path in workspace.iterdir() if path.name not in _MIGRATED)
        if names:
            shown = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
            yield MigrationStep("left", str(workspace), "", "skipped", f"Other files of the workspace: {shown}.")
    for other in installation.others:
        reason = (
            f"The workspace of the agent {other.id}, which can have its own memory: "
            f"'memoranda import openclaw --agent {other.id} --profile {_profile_name(other.id)}'."
        )
        yield MigrationStep("other-agent", str(other.workspace), "", "skipped", reason)


def model_of(installation: Installation) -> str:
    """Return the model that the agent used, for a hint."""
    model = section(installation.config, "agents", "defaults").get("model")
    name = model.get("primary") if isinstance(model, dict) else model
    return name if isinstance(name, str) else ""


def _plan_secret(credential: Credential, home: MigrationTarget, options: MigrationOptions) -> MigrationStep:
    source, destination = str(credential.file), str(home.root / ".env")
    details = {"name": credential.name}
    present = home.secrets.get(credential.name)
    if present == credential.value:
        return MigrationStep("secret", source, destination, "unchanged", f"{credential.name} is already here.", details)
    if options.preset == "user-data" or not options.migrate_secrets:
        reason = f"{credential.name} stays in OpenClaw; --migrate-secrets copies it."
        return MigrationStep("secret", source, "", "skipped", reason, details)
    if present is not None and not options.overwrite:
        reason = f"{credential.name} has another value here; --overwrite replaces it."
        return MigrationStep("secret", source, destination, "conflict", reason, details)
    work = StoreSecret(credential.name, credential.value)
    return MigrationStep("secret", source, destination, "planned", credential.name, details, work)


def _profile_name(agent: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in agent.lower()).strip("-_") or "other"


def is_openclaw(directory: Path) -> bool:
    """Whether a directory looks like one of OpenClaw's."""
    known_names = ("openclaw.json", "clawdbot.json", "moltbot.json", "agents", "workspace", "workspace.default")
    return any((directory / name).exists() for name in known_names) or any(directory.glob("workspace-*"))
