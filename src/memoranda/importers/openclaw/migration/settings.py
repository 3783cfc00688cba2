"""Plans settings and credentials: settings are archived without credentials, keys are copied only on request."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.openclaw.credentials import Credential
from memoranda.importers.openclaw.installation import Installation, section
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.steps import MigrationOptions, MigrationStep, MigrationTarget, StoreSecret
from memoranda.importers.openclaw.migration.workspace_files import plan_archive
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.support.relaxed_json import JsonTextError, parse_json5
from memoranda.support.text_file import TextFile, read_text

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
