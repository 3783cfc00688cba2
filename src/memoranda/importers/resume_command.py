"""Builds the command that resumes an imported session in its own program, for a person to copy."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from memoranda.importers.sources import SOURCES

# Session ids of other programs. A shell could take anything else for an option or for another command.
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,199}")
_ABSOLUTE_PATH = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def resume_command(session: Mapping[str, Any]) -> str:
    """Return the exact command for a session row; "" when it was not imported, or its program has no such command."""
    source = SOURCES.get(_text_column(session, "host"))
    name = _text_column(session, "host_session_id")
    if source is None or not _SESSION_ID.fullmatch(name):
        return ""
    directory = _text_column(session, "directory")
    if directory and not (_ABSOLUTE_PATH.match(directory) and directory.isprintable()):
        # The directory cannot be named safely in a command.
        return ""
    command = source.load().resume_command(name, directory or None)
    return command if command.isprintable() else ""


def in_directory(command: str, directory: str | None) -> str:
    """Return a command that runs in a directory, if one is known."""
    return f"cd {shlex.quote(directory)} && {command}" if directory else command


def _text_column(session: Mapping[str, Any], name: str) -> str:
    value = session.get(name)
    return value if isinstance(value, str) else ""
