"""Lets `memoranda import jsonl` read what `memoranda sessions export` wrote."""

from pathlib import Path

from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation
from memoranda.cli.imports.workflow import ImportOptions
from memoranda.cli.sessions.transfer import import_exported, read_sessions


def is_export(path: Path) -> bool:
    """Whether the first value in a file is a session with its messages."""
    first = next(read_sessions(path, []), None) if path.is_file() else None
    return isinstance(first, dict) and "id" in first and isinstance(first.get("messages"), list)


def run_export_import(invocation: Invocation, path: Path, options: ImportOptions) -> None:
    """Imports exported sessions after showing how many there are, like every other import."""
    sessions = messages = 0
    for session in read_sessions(path, []):
        if isinstance(session, dict):
            sessions += 1
            messages += len(session.get("messages") or ())
    text = f"{path} was exported from Memoranda: {sessions:,} sessions with {messages:,} messages."
    data = {"success": True, "applied": False, "sessions": sessions, "messages": messages}
    planned = PlannedChange(text, data, "Import this?", "Nothing was written. Add --yes to import this.")
    confirm_and_run(
        invocation, planned, lambda: import_exported(invocation, path), dry_run=options.dry_run, yes=options.yes
    )
