"""The command that takes a session up again in the program that it came from, for a person to copy."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from memoranda.importers.sources import SOURCES

# What other programs call their sessions. Anything else could be read as an option, or as a command of its own.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,199}")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[\\/]|\\\\")


def resume_command(session: Mapping[str, Any]) -> str:
    """The exact command for a session as the record holds it; "" when it came from nowhere else, or has none."""
    source = SOURCES.get(_text(session, "host"))
    name = _text(session, "host_session_id")
    if source is None or not _NAME.fullmatch(name):
        return ""
    directory = _text(session, "directory")
    if directory and not (_ABSOLUTE.match(directory) and directory.isprintable()):
        # It took place somewhere that cannot be named safely, so nobody can go there.
        return ""
    command = source.load().resume_command(name, directory or None)
    return command if command.isprintable() else ""


def in_directory(command: str, directory: str | None) -> str:
    """A command as it is given in a directory, if one is known."""
    return f"cd {shlex.quote(directory)} && {command}" if directory else command


def _text(session: Mapping[str, Any], field: str) -> str:
    value = session.get(field)
    return value if isinstance(value, str) else ""
