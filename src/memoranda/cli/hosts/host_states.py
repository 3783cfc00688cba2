"""Finds the hosts on this machine, and whether Memoranda is installed into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.cli.context import Invocation
from memoranda.cli.hosts.host_environment import host_environment, launch_command
from memoranda.integrations.hosts.host import Host
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import HostFileChange, SettingsError
from memoranda.integrations.hosts.supported_hosts import HOSTS


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
