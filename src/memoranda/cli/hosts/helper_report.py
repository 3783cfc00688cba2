"""What `memoranda hook status` and `memoranda doctor` say about the helpers of a home."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memoranda import __version__
from memoranda.cli.hosts.helper_files import RunningHelper
from memoranda.cli.hosts.helper_protocol import IS_SUPPORTED
from memoranda.errors import ConfigError
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.support.home import Home


def describe_helpers(home: Home, helpers: Sequence[RunningHelper]) -> list[str]:
    """One line for each helper that runs, or one that says why none does."""
    if helpers:
        return [f"Helper: {_describe(helper)}" for helper in helpers]
    if not IS_SUPPORTED:
        return ["Helper: none; on this system every hook does the work itself."]
    try:
        wanted = HomeConfig(home).wants_helper()
    except ConfigError:
        return ["Helper: none, because the configuration cannot be read."]
    reason = "the next prompt starts one" if wanted else "hooks.helper is off"
    return [f"Helper: none; {reason}."]


def _describe(helper: RunningHelper) -> str:
    other = "" if helper.version == __version__ else f" (this is {__version__})"
    since = f"{datetime.fromtimestamp(helper.since):%Y-%m-%d %H:%M:%S}"
    return f"process {helper.process}, version {helper.version}{other} in {helper.program}, since {since}"


def helper_as_json(helper: RunningHelper) -> dict[str, Any]:
    return helper._asdict()
