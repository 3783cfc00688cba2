"""Settings and credentials: settings are archived without their credentials, and keys move only when asked for."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.openclaw.credentials import Credential
from memoranda.importers.openclaw.installation import Installation, section
from memoranda.importers.openclaw.migration.history import MigrationHistory
from memoranda.importers.openclaw.migration.steps import MigrationOptions, MigrationStep, MigrationTarget, StoreSecret
from memoranda.importers.openclaw.migration.workspace_files import archived_text
from memoranda.importers.openclaw.redaction import MigrationRedactor
from memoranda.support.relaxed_json import JsonTextError, parse_json5
from memoranda.support.text_file import TextFile, read_text

_OTHER_FILES = ("cron/jobs.json", "exec-approvals.json", "plugins/installs.json", "hooks/transforms.json")
# What is looked at in a workspace; everything else is work, and stays where it is.
_READ = (
    "MEMORY.md", "memory.md", "USER.md", "SOUL.md", "AGENTS.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOT.md",
    "BOOTSTRAP.md", "DREAMS.md", "memory", "skills", "users", ".git",
)  # fmt: skip
# What nobody but OpenClaw itself can use, or what must not be copied.
_STAYS = {
    "credentials": "signed-in accounts of channels",
    "identity": "keys of this device",
    "devices": "paired devices",
    "state": "OpenClaw's own state",
    "memory": "its search index, which is made of the notes",
    "agents/{agent}/agent/auth-profiles.json": "accounts that the agent signs in with",
    "workspace.zip": "a copy of the workspace",
}


def plan_settings(
    found: Installation, history: MigrationHistory, redactor: MigrationRedactor
) -> Iterator[MigrationStep]:
    """The configuration and what lies beside it, archived for a person to look at."""
    if found.config and found.config_file is not None:
        text = json.dumps(redactor.settings(found.config), ensure_ascii=False, indent=2) + "\n"
        reason = f"Sections {', '.join(sorted(map(str, found.config)))}: for you to look at."
        yield archived_text("settings", str(found.config_file), found.config_file.name, text, history, reason)
    for name in _OTHER_FILES:
        state = read_text(found.root / name)
        if not isinstance(state, TextFile):
            continue
        try:
            text = json.dumps(redactor.settings(parse_json5(state.text)), ensure_ascii=False, indent=2) + "\n"
        except JsonTextError as error:
            yield MigrationStep("settings", str(state.path), "", "error", str(error))
        else:
            yield archived_text("settings", str(state.path), name, text, history)


def plan_secrets(
    credentials: Sequence[Credential], home: MigrationTarget, options: MigrationOptions
) -> Iterator[MigrationStep]:
    """Credentials: those of use here by name, all others as a number."""
    useless = [credential for credential in credentials if not credential.is_usable]
    for credential in credentials:
        if credential.is_usable:
            yield _secret(credential, home, options)
    if useless:
        names = ", ".join(credential.name for credential in useless[:10])
        more = f" and {len(useless) - 10} more" if len(useless) > 10 else ""
        where = ", ".join(sorted({str(credential.file) for credential in useless}))
        yield MigrationStep("secret", where, "", "skipped", f"Of no use here, and left there: {names}{more}.")


def plan_omitted_files(found: Installation) -> Iterator[MigrationStep]:
    """What is never copied, named so that nobody misses it."""
    for name, label in _STAYS.items():
        place = found.root / name.format(agent=found.agent)
        if place.exists():
            yield MigrationStep("left", str(place), "", "skipped", f"{label[0].upper()}{label[1:]}; never copied.")
    for workspace in found.workspaces:
        names = sorted(path.name for path in workspace.iterdir() if path.name not in _READ)
        if names:
            shown = ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
            yield MigrationStep("left", str(workspace), "", "skipped", f"Whatever else is in the workspace: {shown}.")
    for other in found.others:
        reason = (
            f"The workspace of the agent {other.id}, which can have a memory of its own: "
            f"'memoranda import openclaw --agent {other.id} --profile {_profile(other.id)}'."
        )
        yield MigrationStep("other-agent", str(other.workspace), "", "skipped", reason)


def model_of(found: Installation) -> str:
    """The model that the agent spoke with, for a hint."""
    model = section(found.config, "agents", "defaults").get("model")
    name = model.get("primary") if isinstance(model, dict) else model
    return name if isinstance(name, str) else ""


def _secret(credential: Credential, home: MigrationTarget, options: MigrationOptions) -> MigrationStep:
    source, destination = str(credential.file), str(home.root / ".env")
    details = {"name": credential.name}
    present = home.secrets.get(credential.name)
    if present == credential.value:
        return MigrationStep(
            "secret", source, destination, "unchanged", f"{credential.name} is there already.", details
        )
    if options.preset == "user-data" or not options.migrate_secrets:
        reason = f"{credential.name} stays there; --migrate-secrets takes it along."
        return MigrationStep("secret", source, "", "skipped", reason, details)
    if present is not None and not options.overwrite:
        reason = f"{credential.name} is set to something else here; --overwrite replaces it."
        return MigrationStep("secret", source, destination, "conflict", reason, details)
    work = StoreSecret(credential.name, credential.value)
    return MigrationStep("secret", source, destination, "planned", credential.name, details, work)


def _profile(agent: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in agent.lower()).strip("-_") or "other"


def is_openclaw(directory: Path) -> bool:
    """Whether a directory looks like one of OpenClaw's."""
    marks = ("openclaw.json", "clawdbot.json", "moltbot.json", "agents", "workspace", "workspace.default")
    return any((directory / mark).exists() for mark in marks) or any(directory.glob("workspace-*"))
