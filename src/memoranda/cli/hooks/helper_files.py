"""The files of hook helpers in a home's `run/`, by which a helper is started once, and others see that it runs.

    run/hooks-<name>.lock     held by the helper while it runs
    run/hooks-<name>.sock     its socket
    run/hooks-<name>.json     what it is: process, version, program, since when

There may be several: one for each installed program, and for each set of settings in the environment. `memoranda hook
status` and `memoranda doctor` describe them.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from memoranda import __version__
from memoranda.cli.hooks.helper_protocol import DIRECTORY, IS_SUPPORTED, identity_of, name_of
from memoranda.cli.hooks.process import HELPER, start_detached
from memoranda.errors import ConfigError, LockTimeoutError
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory, open_without_following, read_file, write_private
from memoranda.support.home import Home
from memoranda.support.processes import has_ended, process_identity

# A helper that could not start, or that was killed, is not started again sooner.
_SECONDS_BETWEEN_STARTS = 30.0
_MAX_INFO_BYTES = 10_000


class RunningHelper(NamedTuple):
    """A helper as others see it: its process id, its version, the directory of its program, and when it began."""

    process: int
    version: str
    program: str
    since: float


class HelperFiles:
    """The paths of one helper."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.name = name
        self.lock = directory / f"{name}.lock"
        self.socket = directory / f"{name}.sock"
        self.info = directory / f"{name}.json"

    @classmethod
    def of(cls, home: Home) -> "HelperFiles":
        """The files of the helper that answers calls like those of this process."""
        return cls(home.root / DIRECTORY, name_of(identity_of(str(home.root))))

    def remove(self) -> None:
        """Removes all of them. The caller holds the lock, and lets go of it next."""
        for path in (self.socket, self.info, self.lock):
            path.unlink(missing_ok=True)


def start_helper(config: HomeConfig) -> bool:
    """Starts a helper in a process of its own, if the settings allow it; returns whether it did.

    Nothing is started in a home that does not exist or belongs to another user, nor shortly after another start.
    """
    home = config.home
    if not IS_SUPPORTED or not home.root.is_dir() or home.root.stat().st_uid != os.geteuid():
        return False
    if not config.wants_helper():
        return False
    files = HelperFiles.of(home)
    make_private_directory(files.directory)
    age = _age(files.lock)
    if age is not None and 0 <= age < _SECONDS_BETWEEN_STARTS:
        return False
    descriptor = open_without_following(files.lock)
    try:
        os.utime(descriptor)
    finally:
        os.close(descriptor)
    start_detached([HELPER, "--home", str(home.base), "--profile", home.profile])
    return True


def _age(path: Path) -> float | None:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return None


def running_helpers(home: Home) -> list[RunningHelper]:
    """The helpers of a home, of every program and version."""
    found = (_read_info(path) for path in sorted((home.root / DIRECTORY).glob("hooks-*.json")))
    return [helper for helper in found if helper is not None]


def write_info(files: HelperFiles, version: str, program: str) -> None:
    """Says that this process is the helper."""
    fields = {"process": process_identity(), "version": version, "program": program, "since": round(time.time(), 3)}
    write_private(files.info, json.dumps(fields).encode())


def _read_info(path: Path) -> RunningHelper | None:
    """Reads what a helper wrote; None when its process has ended."""
    try:
        fields: Any = json.loads(read_file(path, _MAX_INFO_BYTES))
        process, version, program = (str(fields[name]) for name in ("process", "version", "program"))
        if has_ended(process):
            return None
        return RunningHelper(int(process.partition(".")[0]), version, program, float(fields["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_stale_files(own: HelperFiles) -> None:
    """Removes what killed helpers of other programs left."""
    for path in sorted(own.directory.glob("hooks-*.lock")):
        files = HelperFiles(own.directory, path.stem)
        age = _age(path)
        if files.name != own.name and age is not None and age > _SECONDS_BETWEEN_STARTS:
            with suppress(LockTimeoutError, OSError), FileLock(path, 0):
                files.remove()


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
