"""The hosts on this machine: where their settings are, how they start Memoranda, and whether it is installed there."""

import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from memoranda import __version__
from memoranda.cli.context import Invocation
from memoranda.cli.terminal_text import local_time
from memoranda.errors import HomeError
from memoranda.home.config import locate_home
from memoranda.home.config.environment import ENVIRONMENT
from memoranda.integrations.hosts.host import HOME_OPTION, PROGRAM, Host, HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.host_status import HostStatus, inspect_hosts
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import HostFileChange, SettingsError
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.support.home import DEFAULT_PROFILE, Home
from memoranda.support.lazy_dataclass import dataclass

DEFAULT_HOME = "~/.memoranda"


@dataclass(frozen=True, slots=True)
class HostState:
    """A host, its settings files, and the changes that installing would make, or the `problem` that prevents them."""

    host: Host
    files: Sequence[Path]
    present: bool
    """Whether the host's settings directory exists on this machine."""
    changes: Sequence[HostFileChange] = ()
    problem: str = ""
    has_entries: bool = False
    """Whether its settings contain our entries, even outdated ones."""

    @property
    def state(self) -> str:
        if self.problem:
            return self.problem
        if not self.changes:
            return "installed"
        return "outdated" if self.has_entries else "not installed"

    def as_json(self) -> dict[str, Any]:
        files = [str(path) for path in self.files]
        return {
            "host": self.host.name,
            "title": self.host.title,
            "present": self.present,
            "state": self.state,
            "files": files,
        }


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


def typed_program() -> str:
    """Returns the program as a shell finds it: by its name if that is on the PATH, or else by its path."""
    words = _program_words()
    return PROGRAM if words == (shutil.which(PROGRAM),) else shlex.join(words)


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


def find_hosts(invocation: Invocation, project: Path | None = None) -> list[HostState]:
    """Returns every supported host, including those that are not on this machine."""
    hosts = [host for host in HOSTS.values() if project is None or host.has_projects]
    return [_find_host(host, invocation, project) for host in hosts]


def _find_host(host: Host, invocation: Invocation, project: Path | None) -> HostState:
    environment = host_environment(project)
    paths = [file.path for file in host.files(environment)]
    present = any(path.parent.exists() and path.parent != environment.user_home for path in paths)
    try:
        changes = plan_install(host, environment, launch_command(invocation))
        return HostState(host, paths, present, changes, has_entries=bool(plan_uninstall(host, environment)))
    except SettingsError as error:
        return HostState(host, paths, present, problem=str(error))


def inspect_installed_hosts(home: Home) -> list[HostStatus]:
    """Returns the state of every host whose user settings start Memoranda with this home."""

    def uses_home(arguments: Sequence[str]) -> bool:
        # An entry without options was written for the default home.
        options = dict(pairwise(arguments))
        try:
            found = locate_home(options.get(HOME_OPTION, DEFAULT_HOME), options.get("--profile", DEFAULT_PROFILE))
        except HomeError:
            return False
        return found.root == home.root

    return list(inspect_hosts(HOSTS, host_environment(None), home.root, __version__, uses_home))


def format_host(status: HostStatus) -> str:
    version = f" ({status.version})" if status.version else ""
    call = "" if status.last_call is None else f"; its last hook call was at {local_time(status.last_call)}"
    return f"Host: {status.host.title} starts {status.program}{version}{call}"


def host_as_json(status: HostStatus) -> dict[str, Any]:
    return {
        "host": status.host.name,
        "program": status.program,
        "version": status.version or None,
        "last_call": status.last_call,
    }
