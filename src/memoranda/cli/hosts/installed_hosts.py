"""Inspects the hosts that are installed for a home, and formats what the doctor reports about them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from memoranda import __version__
from memoranda.cli.hosts.host_environment import DEFAULT_HOME, host_environment
from memoranda.errors import HomeError
from memoranda.home.config import locate_home
from memoranda.integrations.hosts.host import HOME_OPTION
from memoranda.integrations.hosts.host_status import HostStatus, inspect_hosts
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.support.home import DEFAULT_PROFILE, Home


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
    call = "" if status.last_call is None else f"; its last hook call was at {_format_time(status.last_call)}"
    return f"Host: {status.host.title} starts {status.program}{version}{call}"


def host_as_json(status: HostStatus) -> dict[str, Any]:
    return {
        "host": status.host.name,
        "program": status.program,
        "version": status.version or None,
        "last_call": status.last_call,
    }


def _format_time(timestamp: float) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC).astimezone():%Y-%m-%d %H:%M}"
