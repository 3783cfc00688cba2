"""Where a host is looked for, and how it has to call us, as seen from the command that is running."""

import shutil
import sys
from pathlib import Path

from memoranda.adapters.hosts.host import HostEnvironment
from memoranda.adapters.hosts.launch_command import HOME, NAME, LaunchCommand
from memoranda.cli.context import Invocation
from memoranda.config import locate_home
from memoranda.config.environment import ENVIRONMENT
from memoranda.support.home import DEFAULT_PROFILE

_DEFAULT_HOME = "~/.memoranda"


def host_environment(project: Path | None) -> HostEnvironment:
    return HostEnvironment(Path.home(), sys.platform, ENVIRONMENT, project)


def program(invocation: Invocation) -> LaunchCommand:
    """How to call us on this machine: by an absolute path, because desktop programs know no PATH."""
    return LaunchCommand(_words(), _options(invocation))


def _words() -> tuple[str, ...]:
    running = Path(sys.argv[0])
    if running.name in (NAME, f"{NAME}.exe") and running.is_file():
        # Not where a link leads: the link is what an upgrade keeps.
        return (str(running.absolute()),)
    found = shutil.which(NAME)
    return (found,) if found else (sys.executable, "-P", "-m", NAME)


def _options(invocation: Invocation) -> tuple[str, ...]:
    """What tells this home from the one that is taken by default."""
    place = invocation.locate_home()
    base = place.root if place.profile == DEFAULT_PROFILE else place.root.parent.parent
    options: list[str] = []
    if base != locate_home(_DEFAULT_HOME, DEFAULT_PROFILE).root:
        options += [HOME, str(base)]
    if place.profile != DEFAULT_PROFILE:
        options += ["--profile", place.profile]
    if invocation.user is not None:
        options += ["--user", invocation.user]
    return tuple(options)
