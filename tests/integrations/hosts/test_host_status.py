"""The doctor knows which program each installed host starts, whether it runs, and when it last called a hook."""

import json
import time
from pathlib import Path

import pytest

from memoranda.integrations.hooks.log import HookLog
from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.host_status import HostStatus, inspect_hosts
from memoranda.integrations.hosts.install_plan import plan_install
from memoranda.integrations.hosts.settings_change import apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(tmp_path: Path) -> HostEnvironment:
    return HostEnvironment(tmp_path / "user", "linux")


def _program(path: Path, script: str = "echo memoranda, version 1.2.3") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _install(name: str, environment: HostEnvironment, program: Path) -> None:
    changes = plan_install(HOSTS[name], environment, LaunchCommand((str(program),), ("--home", "/h")))
    apply_changes(changes, environment.user_home / "backups")


def _inspect(environment: HostEnvironment, home: Path) -> list[HostStatus]:
    return list(inspect_hosts(HOSTS, environment, home, "1.2.3", lambda words: "/h" in words))


@pytest.mark.parametrize("name", HOSTS)
def test_a_program_that_moved_is_reported_with_the_command_that_fixes_it(
    name: str, environment: HostEnvironment, tmp_path: Path
) -> None:
    """Once for each settings file; the installation that runs has no issue."""
    program = _program(tmp_path / "old place" / "memoranda")
    _install(name, environment, program)
    HookLog(tmp_path).begin(name, "Stop", "s", "")
    (status,) = _inspect(environment, tmp_path)
    assert (status.host.name, status.version, status.issues) == (name, "1.2.3", ())
    assert "memoranda" in status.program
    program.unlink()
    (status,) = _inspect(environment, tmp_path)
    host = HOSTS[name]
    plugin = [file.path for file in host.plugin(environment) if file.path.name == "memoranda.json"]
    ours = [file.path for file in host.files(environment)]
    ours += [file.path for file in host.owned_files(environment)]
    assert [issue.path for issue in status.issues] == (plugin or ours)
    for issue in status.issues:
        assert (issue.severity, issue.remedy) == ("error", f"memoranda install {name}")
        assert issue.problem.endswith("which does not exist")
    _install(name, environment, _program(tmp_path / "new" / "memoranda"))
    assert [status.issues for status in _inspect(environment, tmp_path)] == [()]


def test_a_program_that_fails_or_is_another_version_is_reported(environment: HostEnvironment, tmp_path: Path) -> None:
    """The broken one as an error, the other version as a note."""
    _install("vscode", environment, _program(tmp_path / "a" / "memoranda", "exit 1"))
    _install("gemini-cli", environment, _program(tmp_path / "b" / "memoranda", "echo memoranda, version 1.0"))
    issues = [issue for status in _inspect(environment, tmp_path) for issue in status.issues]
    assert [(issue.severity, issue.problem.split(", ")[-2:]) for issue in issues] == [
        ("error", [f"makes VS Code start {tmp_path}/a/memoranda", "which does not run"]),
        ("note", ["which is version 1.0", "not 1.2.3"]),
    ]


def test_an_installation_without_its_hooks_is_noted(environment: HostEnvironment, tmp_path: Path) -> None:
    """Such as one whose hooks a person removed; without them no session is recorded."""
    _install("codex", environment, _program(tmp_path / "memoranda"))
    (environment.user_home / ".codex" / "hooks.json").unlink()
    (status,) = _inspect(environment, tmp_path)
    (issue,) = status.issues
    assert (issue.severity, issue.path.name, issue.remedy) == ("note", "hooks.json", "memoranda install codex")


@pytest.mark.parametrize(("name", "file"), [("gemini-cli", ".gemini/settings.json"), ("opencode", "memoranda.js")])
def test_a_server_without_its_hooks_is_noted(
    name: str, file: str, environment: HostEnvironment, tmp_path: Path
) -> None:
    """Such as one whose hooks a person removed."""
    _install(name, environment, _program(tmp_path / "memoranda"))
    if name == "opencode":
        (environment.user_home / ".config" / "opencode" / "plugins" / file).unlink()
    else:
        settings = json.loads((environment.user_home / file).read_text())
        (environment.user_home / file).write_text(json.dumps({"mcpServers": settings["mcpServers"]}))
    (status,) = _inspect(environment, tmp_path)
    (issue,) = status.issues
    assert (issue.severity, issue.path.name, issue.remedy) == ("note", Path(file).name, f"memoranda install {name}")


def test_hosts_with_another_home_or_with_broken_settings_are_left_out(
    environment: HostEnvironment, tmp_path: Path
) -> None:
    """They are not this home's concern."""
    _install("vscode", environment, _program(tmp_path / "memoranda"))
    assert list(inspect_hosts(HOSTS, environment, tmp_path, "1.2.3", lambda words: False)) == []
    (environment.user_home / ".config" / "Code" / "User" / "mcp.json").write_text("{ broken")
    assert _inspect(environment, tmp_path) == []


def test_the_last_call_is_the_newest_in_the_log(environment: HostEnvironment, tmp_path: Path) -> None:
    """Hooks that were never called are noted with what to do: Codex runs them only after a review."""
    _install("codex", environment, _program(tmp_path / "memoranda"))
    _install("vscode", environment, tmp_path / "memoranda")
    codex, vscode = _inspect(environment, tmp_path)
    assert (codex.last_call, vscode.last_call, vscode.issues) == (None, None, ())
    (issue,) = codex.issues
    assert (issue.severity, issue.path.name) == ("note", "hooks.json")
    assert "trust the hooks" in issue.remedy
    for host in ("codex", "claude-code"):
        HookLog(tmp_path).begin(host, "UserPromptSubmit", "s", "prompt")
    before = time.time()
    HookLog(tmp_path).begin("codex", "UserPromptSubmit", "s", "prompt")
    codex, _ = _inspect(environment, tmp_path)
    assert codex.issues == ()
    assert codex.last_call is not None
    assert codex.last_call >= round(before, 3)
