"""A host with a plugin of ours selects it, and has after uninstalling every byte that it had before."""

from pathlib import Path

import pytest

from memoranda.adapters.hosts.created_files import CreatedFiles
from memoranda.adapters.hosts.host import HostEnvironment
from memoranda.adapters.hosts.install_plan import plan_install, plan_uninstall
from memoranda.adapters.hosts.launch_command import LaunchCommand
from memoranda.adapters.hosts.settings_change import SettingsError, apply_changes
from memoranda.adapters.hosts.supported_hosts import HOSTS

PROGRAM = LaunchCommand(("/opt/bin/memoranda",), ("--home", "/data/memory"), "/data/memory")
CONFIGS = {"hermes": ".hermes/config.yaml", "openclaw": ".openclaw/openclaw.json"}
PLUGINS = {"hermes": ".hermes/plugins/memoranda", "openclaw": ".openclaw/extensions/memoranda"}
TEXTS = [
    ("hermes", "# mine\nmodel: x  # a model\n"),
    ("hermes", "memory:\n  memory_char_limit: 2200\n  provider: ''   # none\n"),
    ("hermes", "memory: {provider: honcho}"),
    ("hermes", "memory:\r\n  provider: mem0\r\nmodel: x\r\n"),
]
_each_text = pytest.mark.parametrize(("name", "text"), TEXTS)
_each = pytest.mark.parametrize("name", [name for name in CONFIGS if name in HOSTS])


@pytest.fixture
def environment(tmp_path: Path) -> HostEnvironment:
    return HostEnvironment(tmp_path / "user", "linux")


def _install(name: str, environment: HostEnvironment, program: LaunchCommand = PROGRAM) -> int:
    changes = plan_install(HOSTS[name], environment, program)
    apply_changes(changes, environment.user_home.parent / "backups")
    return len(changes)


def _uninstall(name: str, environment: HostEnvironment) -> None:
    backups = environment.user_home.parent / "backups"
    apply_changes(plan_uninstall(HOSTS[name], environment, CreatedFiles(backups), backups), backups)


def _files(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(root.rglob("*"))}


@_each
def test_a_host_without_settings_has_none_again(name: str, environment: HostEnvironment) -> None:
    """What it compiled beside the plugin is gone too; a second installation has nothing to do."""
    assert _install(name, environment) > 2
    assert plan_install(HOSTS[name], environment, PROGRAM) == []
    cache = environment.user_home / PLUGINS[name] / "__pycache__"
    cache.mkdir()
    (cache / "plugin.pyc").write_bytes(b"\0\1")
    _uninstall(name, environment)
    assert list(environment.user_home.parent.iterdir()) == []


@_each_text
def test_uninstalling_restores_every_byte(name: str, text: str, environment: HostEnvironment) -> None:
    """Also the memory that the host used before; also after the program moved."""
    config = environment.user_home / CONFIGS[name]
    config.parent.mkdir(parents=True)
    config.write_bytes(text.encode())
    before = _files(environment.user_home)
    _install(name, environment)
    assert b"memoranda" in config.read_bytes()
    _install(name, environment, LaunchCommand(("/new/memoranda",), (), "/data/memory"))
    _uninstall(name, environment)
    assert _files(environment.user_home) == before


def test_what_the_user_changed_meanwhile_stays(environment: HostEnvironment) -> None:
    """And the provider of before is selected again."""
    config = environment.user_home / CONFIGS["hermes"]
    config.parent.mkdir(parents=True)
    config.write_text("memory:\n  provider: honcho\n")
    _install("hermes", environment)
    config.write_text(config.read_text() + "model: new\n")
    _install("hermes", environment)
    _uninstall("hermes", environment)
    assert config.read_text() == "memory:\n  provider: honcho\nmodel: new\n"


@_each
def test_another_plugin_with_our_name_is_left_alone(name: str, environment: HostEnvironment) -> None:
    """Neither installing nor uninstalling touches it."""
    other = environment.user_home / PLUGINS[name] / "mine.py"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    with pytest.raises(SettingsError, match="not Memoranda's"):
        plan_install(HOSTS[name], environment, PROGRAM)
    assert plan_uninstall(HOSTS[name], environment) == []
