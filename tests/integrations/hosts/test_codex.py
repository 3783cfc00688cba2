"""Uninstalling removes what Codex 0.166 stored about our hooks; everything else in its settings stays."""

import json
from pathlib import Path

import pytest

from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import CreatedFiles, apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS

pytestmark = pytest.mark.slow

_CONFIG = '# mine\nmodel = "gpt-5.5"\n'
_EVENTS = ("pre_compact", "session_start", "session_end", "user_prompt_submit", "subagent_stop", "stop")


def _review(file: Path, name: str) -> str:
    return f'\n[hooks.state."{file}:{name}"]\ntrusted_hash = "sha256:6568315d8f3a7b5a705f"\n'


def _install(environment: HostEnvironment, backups: Path) -> None:
    changes = plan_install(HOSTS["codex"], environment, LaunchCommand(("/opt/bin/memoranda",)))
    apply_changes(changes, backups)


def _uninstall(environment: HostEnvironment, backups: Path) -> None:
    apply_changes(plan_uninstall(HOSTS["codex"], environment, CreatedFiles(backups)), backups)


def test_uninstalling_removes_the_reviews_of_our_hooks(tmp_path: Path) -> None:
    """Codex appends the reviews to the file, each in its own table."""
    environment, directory = HostEnvironment(tmp_path, "linux"), tmp_path / ".codex"
    directory.mkdir()
    (directory / "config.toml").write_text(_CONFIG)
    _install(environment, tmp_path / "backups")
    hooks, config = directory / "hooks.json", directory / "config.toml"
    tui = "\n[tui]\nscreen_reader_detection_done = true\n"
    notes = "".join(_review(hooks, f"{event}:0:0") for event in _EVENTS)
    config.write_text(config.read_text() + tui + "\n[hooks.state]\n" + notes)
    _uninstall(environment, tmp_path / "backups")
    assert config.read_text() == _CONFIG + tui
    assert not hooks.exists()


def test_the_reviews_of_other_hooks_stay(tmp_path: Path) -> None:
    """They stay whether those hooks are in the same file or in another one."""
    environment, directory = HostEnvironment(tmp_path, "linux"), tmp_path / ".codex"
    directory.mkdir()
    hooks, config = directory / "hooks.json", directory / "config.toml"
    hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./audit.sh"}]}]}}))
    theirs = "\n[hooks.state]\n" + _review(hooks, "stop:0:0") + _review(tmp_path / "other.json", "stop:1:0")
    config.write_text(_CONFIG + theirs)
    _install(environment, tmp_path / "backups")
    config.write_text(config.read_text() + _review(hooks, "stop:1:0") + "\n[tui]\nx = [\n[1],\n]\n")
    _uninstall(environment, tmp_path / "backups")
    assert config.read_text() == _CONFIG + theirs + "\n[tui]\nx = [\n[1],\n]\n"
