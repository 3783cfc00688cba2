"""Where a host is looked for, and how it has to call us, as seen from the command that is running."""

import shutil
import sys
from pathlib import Path

from memoranda.adapters.hosts.program import HOME, NAME, Program
from memoranda.adapters.hosts.shape import Surroundings
from memoranda.cli.context import Invocation
from memoranda.config import locate_home
from memoranda.config.environment import ENVIRONMENT
from memoranda.support.home import DEFAULT_PROFILE

_DEFAULT_HOME = "~/.memoranda"


def surroundings(project: Path | None) -> Surroundings:
    return Surroundings(Path.home(), sys.platform, ENVIRONMENT, project)


def program(invocation: Invocation) -> Program:
    """How to call us on this machine: by an absolute path, because desktop programs know no PATH."""
    return Program(_words(), _options(invocation))


def _words() -> tuple[str, ...]:
    running = Path(sys.argv[0])
    if running.name in (NAME, f"{NAME}.exe") and running.is_file():
        # Not where a link leads: the link is what an upgrade keeps.
        return (str(running.absolute()),)
    found = shutil.which(NAME)
    return (found,) if found else (sys.executable, "-P", "-m", NAME)


def _options(invocation: Invocation) -> tuple[str, ...]:
    """What tells this home from the one that is taken by default."""
    place = invocation.place()
    base = place.root if place.profile == DEFAULT_PROFILE else place.root.parent.parent
    options: list[str] = []
    if base != locate_home(_DEFAULT_HOME, DEFAULT_PROFILE).root:
        options += [HOME, str(base)]
    if place.profile != DEFAULT_PROFILE:
        options += ["--profile", place.profile]
    if invocation.user is not None:
        options += ["--user", invocation.user]
    return tuple(options)
