"""Inspects the hosts into which Memoranda is installed: which program they start, its version, and their last call."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from memoranda.integrations.hooks.events import HOOK_HOSTS, waiting_turns
from memoranda.integrations.hooks.log import read_calls
from memoranda.integrations.hosts.host import (
    PROGRAM,
    Host,
    HostEnvironment,
    OwnedFile,
    SettingsFile,
    UnusableSettingsError,
    is_our_hook,
)
from memoranda.integrations.hosts.plugin_settings import FILE_NAME
from memoranda.integrations.hosts.settings_change import SettingsError, read_settings
from memoranda.integrations.hosts.settings_text import read_values
from memoranda.support.health_issues import HealthIssue
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.relaxed_json import JsonTextError

_TIMEOUT = 20.0
# A capture takes seconds; a turn that has waited for longer was not recorded.
_MAX_CAPTURE_SECONDS = 300.0
_SUBCOMMANDS = ("mcp", "hook")


@dataclass(frozen=True, slots=True)
class HostStatus:
    """One host that uses this home; `version` is "" when the program does not run, `last_call` None when unknown."""

    host: Host
    program: str
    version: str
    last_call: float | None
    issues: tuple[HealthIssue, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One command of ours in a settings file, split into the program and the options of its home."""

    file: Path
    words: tuple[str, ...]

    @property
    def program(self) -> tuple[str, ...]:
        return self.words[: self._subcommand_index()]

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.words[self._subcommand_index() :]

    def _subcommand_index(self) -> int:
        return next((index for index, word in enumerate(self.words) if word in _SUBCOMMANDS), len(self.words))


def inspect_hosts(
    hosts: Mapping[str, Host],
    environment: HostEnvironment,
    home: Path,
    version: str,
    uses_home: Callable[[tuple[str, ...]], bool],
) -> Iterator[HostStatus]:
    """Yields the state of each host whose entries use this home; `uses_home` decides by the options of an entry."""
    read_version = cache(_read_version)
    last_calls = _read_last_calls(home)
    for host in hosts.values():
        files = host.files(environment)
        owned = host.owned_files(environment)
        settings: list[SettingsFile | OwnedFile] = [*files, *_plugin_settings(host, environment), *owned]
        entries = [entry for file in settings for entry in _entries(file, host.name) if uses_home(entry.arguments)]
        if not entries:
            continue
        versions = {entry.program: read_version(entry.program) for entry in entries}
        issues = list(_program_issues(host, entries, versions, version))
        missing = [file.path for file in files if not _has_entries(file, entries)]
        missing += [file.path for file in owned if file.path not in {entry.file for entry in entries}]
        issues += [
            HealthIssue("note", path, f"has no entries of Memoranda for {host.title}", _reinstall(host))
            for path in missing
        ]
        issues += _spool_issues(host, home)
        last_call = last_calls.get(host.name)
        hooks = next((entry.file for entry in entries if entry.arguments[:1] == ("hook",)), None)
        if hooks is None and not missing and host.name in HOOK_HOSTS:
            issues.append(HealthIssue("note", files[-1].path, f"has no hooks for {host.title}", _reinstall(host)))
        if hooks is not None and last_call is None and not issues:
            problem = f"has our command, but the log of calls has none from {host.title}"
            issues.append(HealthIssue("note", hooks, problem, host.next_step))
        program = entries[0].program
        yield HostStatus(host, shlex.join(program), versions[program], last_call, tuple(issues))


def _plugin_settings(host: Host, environment: HostEnvironment) -> list[SettingsFile]:
    """Returns the file of the plugin that has our command, if the host has a plugin."""
    files = [file.path for file in host.plugin(environment) if file.path.name == FILE_NAME]
    return [SettingsFile(path, lambda settings, command: settings, lambda settings: settings) for path in files]


def _has_entries(file: SettingsFile, entries: list[_Entry]) -> bool:
    """Whether a settings file has a command of ours, or selects our plugin."""
    if file.path in {entry.file for entry in entries}:
        return True
    try:
        settings = read_values(file)
        return file.remove(settings) != settings
    except (SettingsError, UnicodeDecodeError, JsonTextError, UnusableSettingsError):
        return False


def _spool_issues(host: Host, home: Path) -> list[HealthIssue]:
    """Reports turns that a plugin wrote and that no process has recorded since."""
    waiting = [path for path in waiting_turns(home, host.name) if _age(path) > _MAX_CAPTURE_SECONDS]
    if not waiting:
        return []
    problem = f"{len(waiting)} turns of {host.title} wait to be recorded"
    return [HealthIssue("error", waiting[0].parent, problem, f"memoranda hook {host.name} capture")]


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _program_issues(
    host: Host, entries: list[_Entry], versions: dict[tuple[str, ...], str], version: str
) -> Iterator[HealthIssue]:
    reported = set()
    for entry in entries:
        key = (entry.file, entry.program)
        if key in reported:
            continue
        reported.add(key)
        program = shlex.join(entry.program)
        if not _exists(entry.program):
            problem = f"makes {host.title} start {program}, which does not exist"
            yield HealthIssue("error", entry.file, problem, _reinstall(host))
        elif not versions[entry.program]:
            problem = f"makes {host.title} start {program}, which does not run"
            yield HealthIssue("error", entry.file, problem, _reinstall(host))
        elif versions[entry.program] != version:
            problem = f"makes {host.title} start {program}, which is version {versions[entry.program]}, not {version}"
            yield HealthIssue("note", entry.file, problem, _reinstall(host))


def _reinstall(host: Host) -> str:
    return f"memoranda install {host.name}"


def _exists(program: tuple[str, ...]) -> bool:
    return bool(program) and shutil.which(program[0]) is not None


def _read_version(program: tuple[str, ...]) -> str:
    """Runs the program as a host would; returns "" when it does not run."""
    if not _exists(program):
        return ""
    try:
        # The working directory must not decide which code runs.
        completed = subprocess.run(
            [*program, "--version"], capture_output=True, text=True, timeout=_TIMEOUT, cwd=os.sep, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    words = completed.stdout.split()
    return words[-1] if completed.returncode == 0 and words else ""


def _entries(file: SettingsFile | OwnedFile, host: str) -> Iterator[_Entry]:
    """Yields our commands in a settings file; none when it cannot be read, which `memoranda install` reports."""
    try:
        if isinstance(file, OwnedFile):
            commands = file.commands((read_settings(file.path) or b"").decode())
        else:
            commands = list(_commands("", read_values(file), host))
    except (SettingsError, UnicodeDecodeError, JsonTextError, UnusableSettingsError):
        return
    for words in commands:
        yield _Entry(file.path, tuple(words))


def _commands(key: str, value: Any, host: str) -> Iterator[list[str]]:
    if isinstance(value, list):
        for child in value:
            yield from _commands("", child, host)
    elif isinstance(value, dict):
        command, arguments = value.get("command"), value.get("args")
        if key == PROGRAM and command:
            words = command if isinstance(command, list) else [command, *(arguments or [])]
            yield [str(word) for word in words]
        elif is_our_hook(command, host):
            yield shlex.split(command)
        else:
            for name, child in value.items():
                yield from _commands(name, child, host)


def _read_last_calls(home: Path) -> dict[str, float]:
    """Returns when each host last called a hook, as far as the log of hook calls goes back."""
    try:
        calls = read_calls(home)
    except OSError:
        return {}
    return {str(call.get("host")): call["at"] for call in reversed(calls)}
