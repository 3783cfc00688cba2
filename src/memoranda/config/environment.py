"""The environment of the process: this is the only module that reads it."""

import os
from pathlib import Path

from memoranda.errors import HomeError
from memoranda.support.home import Home

ENVIRONMENT = os.environ


def locate_home(home: str | Path | None = None, profile: str | None = None) -> Home:
    """Where a home lies: as given, else as MEMORANDA_HOME and MEMORANDA_PROFILE say, else ~/.memoranda."""
    if home is not None and not str(home).strip():
        raise HomeError("The home is empty. Leave it out for ~/.memoranda, or name a directory.")
    base = home or ENVIRONMENT.get("MEMORANDA_HOME", "").strip() or "~/.memoranda"
    return Home.at(Path(base), profile or ENVIRONMENT.get("MEMORANDA_PROFILE", "").strip() or None)


def is_set(name: str) -> bool:
    """Whether the environment has a variable, such as a provider's key."""
    return bool(ENVIRONMENT.get(name, "").strip())


def directory_from_variable(variable: str) -> Path | None:
    """The directory that a variable names, such as the one where another program keeps its files."""
    named = ENVIRONMENT.get(variable, "").strip() if variable else ""
    return Path(named).expanduser() if named else None


def editor_is_set() -> bool:
    """Whether the person has named an editor."""
    return any(ENVIRONMENT.get(name, "").strip() for name in ("VISUAL", "EDITOR"))
