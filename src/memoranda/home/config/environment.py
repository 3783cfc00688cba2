"""Reads the environment of the process; no other module does.

Every call of a hook loads this module, so it loads nothing else before a function needs it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from memoranda.support.home import Home

ENVIRONMENT = os.environ
_HELPER = "MEMORANDA_HOOKS_HELPER"
# Variables with our prefix that change no answer of a hook.
_NO_SETTINGS = frozenset({"MEMORANDA_HOME", "MEMORANDA_PROFILE", "MEMORANDA_URL", "MEMORANDA_API_KEY", _HELPER})


def locate_home(home: "str | Path | None" = None, profile: str | None = None) -> "Home":
    """Find a home: as given, else as MEMORANDA_HOME and MEMORANDA_PROFILE say, else ~/.memoranda."""
    from pathlib import Path

    from memoranda.errors import HomeError
    from memoranda.support.home import Home

    if home is not None and not isinstance(home, str | os.PathLike):
        raise TypeError(f"The home is a path, as a string or a pathlib.Path, not {type(home).__name__}.")
    if home is not None and not str(home).strip():
        raise HomeError("The home is empty. Leave it out for ~/.memoranda, or name a directory.")
    base, profile = choose_home(None if home is None else str(home), profile)
    return Home.at(Path(base), profile)


def choose_home(home: str | None, profile: str | None) -> tuple[str, str | None]:
    """The directory and the profile of `locate_home`, neither checked nor resolved."""
    base = home or ENVIRONMENT.get("MEMORANDA_HOME", "").strip() or "~/.memoranda"
    return base, profile or ENVIRONMENT.get("MEMORANDA_PROFILE", "").strip() or None


def service_url() -> str | None:
    """The service that commands use instead of a home, unless an option says otherwise: MEMORANDA_URL."""
    return ENVIRONMENT.get("MEMORANDA_URL", "").strip() or None


def variables_in_answers() -> list[str]:
    """The variables that change what a hook answers, with their values: every setting, and the time zone."""
    return sorted(
        f"{name}={value}"
        for name, value in ENVIRONMENT.items()
        if name == "TZ" or (name.startswith("MEMORANDA_") and name not in _NO_SETTINGS)
    )


def helper_is_off() -> bool:
    """Whether the environment turns the helper of hooks off; every value but a yes does."""
    return ENVIRONMENT.get(_HELPER, "").strip().lower() not in ("", "on", "true", "yes", "1")


def is_set(name: str) -> bool:
    """Whether a variable is set and not blank, such as a provider's key."""
    return bool(ENVIRONMENT.get(name, "").strip())


def directory_from_variable(variable: str) -> "Path | None":
    """The directory that a variable names, such as the one with another program's files; None when it is not set."""
    from pathlib import Path

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


def uses_defaults(home: "Home") -> bool:
    """Whether neither config.yaml nor the environment has a setting, so that nothing has to be read or checked."""
    if any(name.startswith("MEMORANDA_") and name not in _NO_SETTINGS for name in ENVIRONMENT):
        return False
    return not os.path.lexists(home.config_file)
