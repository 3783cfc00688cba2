"""Where the running command looks for a host's settings, and how the host has to start Memoranda."""

import shutil
import sys
from pathlib import Path

from memoranda.cli.context import Invocation
from memoranda.home.config import locate_home
from memoranda.home.config.environment import ENVIRONMENT
from memoranda.integrations.hosts.host import HOME_OPTION, PROGRAM, HostEnvironment, LaunchCommand
from memoranda.support.home import DEFAULT_PROFILE

DEFAULT_HOME = "~/.memoranda"


def host_environment(project: Path | None) -> HostEnvironment:
    return HostEnvironment(Path.home(), sys.platform, ENVIRONMENT, project)


def launch_command(invocation: Invocation) -> LaunchCommand:
    """Returns the command with an absolute path, because desktop programs do not know the PATH of a shell."""
    return LaunchCommand(_program_words(), _home_options(invocation), str(invocation.locate_home().root))


def _program_words() -> tuple[str, ...]:
    running = Path(sys.argv[0])
    if running.name in (PROGRAM, f"{PROGRAM}.exe") and running.is_file():
        # Symbolic links are not resolved: an upgrade keeps the link, not what it points to.
        return (str(running.absolute()),)
    found = shutil.which(PROGRAM)
    return (found,) if found else (sys.executable, "-P", "-m", PROGRAM)


def _home_options(invocation: Invocation) -> tuple[str, ...]:
    """Returns the options that select this home; none for the default home."""
    home = invocation.locate_home()
    options: list[str] = []
    if home.base != locate_home(DEFAULT_HOME, DEFAULT_PROFILE).root:
        options += [HOME_OPTION, str(home.base)]
    if home.profile != DEFAULT_PROFILE:
        options += ["--profile", home.profile]
    if invocation.user is not None:
        options += ["--user", invocation.user]
    return tuple(options)
