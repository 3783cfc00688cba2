"""Reads the environment of the process; no other module does."""

import os
from pathlib import Path

from memoranda.errors import HomeError
from memoranda.support.home import Home

ENVIRONMENT = os.environ
# Variables with our prefix that choose a home and change no setting.
_NO_SETTINGS = frozenset({"MEMORANDA_HOME", "MEMORANDA_PROFILE"})


def locate_home(home: str | Path | None = None, profile: str | None = None) -> Home:
    """Find a home: as given, else as MEMORANDA_HOME and MEMORANDA_PROFILE say, else ~/.memoranda."""
    if home is not None and not str(home).strip():
        raise HomeError("The home is empty. Leave it out for ~/.memoranda, or name a directory.")
    base = home or ENVIRONMENT.get("MEMORANDA_HOME", "").strip() or "~/.memoranda"
    return Home.at(Path(base), profile or ENVIRONMENT.get("MEMORANDA_PROFILE", "").strip() or None)


def is_set(name: str) -> bool:
    """Whether a variable is set and not blank, such as a provider's key."""
    return bool(ENVIRONMENT.get(name, "").strip())


def directory_from_variable(variable: str) -> Path | None:
    """The directory that a variable names, such as the one with another program's files; None when it is not set."""
    path = ENVIRONMENT.get(variable, "").strip() if variable else ""
    return Path(path).expanduser() if path else None


def colour_choice() -> bool | None:
    """Whether output is coloured: NO_COLOR and FORCE_COLOR decide; None leaves it to the terminal."""
    if ENVIRONMENT.get("NO_COLOR"):
        return False
    return True if ENVIRONMENT.get("FORCE_COLOR", "0") not in ("", "0") else None


def editor_is_set() -> bool:
    """Whether VISUAL or EDITOR is set."""
    return any(ENVIRONMENT.get(name, "").strip() for name in ("VISUAL", "EDITOR"))


def uses_defaults(home: Home) -> bool:
    """Whether neither config.yaml nor the environment has a setting, so that nothing has to be read or checked."""
    if any(name.startswith("MEMORANDA_") and name not in _NO_SETTINGS for name in ENVIRONMENT):
        return False
    return not os.path.lexists(home.config_file)
