"""Installing selects our plugin in a host, and uninstalling restores every byte that the host had before."""

from pathlib import Path

import pytest

from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.install_plan import plan_install, plan_uninstall
from memoranda.integrations.hosts.settings_change import CreatedFiles, SettingsError, apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from memoranda.support.relaxed_json import parse_json5

pytestmark = pytest.mark.slow

PROGRAM = LaunchCommand(("/opt/bin/memoranda",), ("--home", "/data/memory"), "/data/memory")
CONFIGS = {"hermes": ".hermes/config.yaml", "openclaw": ".openclaw/openclaw.json"}
PLUGINS = {"hermes": ".hermes/plugins/memoranda", "openclaw": ".openclaw/extensions/memoranda"}
TEXTS = [
    ("hermes", "# mine\nmodel: x  # a model\n"),
    ("hermes", "memory:\n  memory_char_limit: 2200\n  provider: ''   # none\n"),
    ("hermes", "memory: {provider: honcho}"),
    ("hermes", "memory:\r\n  provider: mem0\r\nmodel: x\r\n"),
    ("openclaw", "{\n  // mine\n  agents: { defaults: { model: 'x' } },\n}\n"),
    ("openclaw", '{"plugins": {"slots": {"memory": "memory-core"}, "allow": ["a"], "entries": {"a": {}}}}'),
    ("openclaw", "{ plugins: { slots: { memory: 'none', contextEngine: 'legacy' } } } // end\n"),
    ("openclaw", '{\n  "plugins": {\n    "entries": {}\n  }\n}\n'),
]
_each_text = pytest.mark.parametrize(("name", "text"), TEXTS)
_each = pytest.mark.parametrize("name", CONFIGS)


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
def test_a_host_without_settings_has_none_after_uninstalling(name: str, environment: HostEnvironment) -> None:
    """The bytecode beside the plugin is removed too; a second installation has nothing to do."""
    assert _install(name, environment) > 2
    assert plan_install(HOSTS[name], environment, PROGRAM) == []
    cache = environment.user_home / PLUGINS[name] / "__pycache__"
    cache.mkdir()
    (cache / "plugin.pyc").write_bytes(b"\0\1")
    _uninstall(name, environment)
    assert list(environment.user_home.parent.iterdir()) == []


@_each_text
def test_uninstalling_restores_every_byte(name: str, text: str, environment: HostEnvironment) -> None:
    """This includes the memory that the host used before, and is true even after the program was moved."""
    config = environment.user_home / CONFIGS[name]
    config.parent.mkdir(parents=True)
    config.write_bytes(text.encode())
    before = _files(environment.user_home)
    _install(name, environment)
    assert b"memoranda" in config.read_bytes()
    _install(name, environment, LaunchCommand(("/new/memoranda",), (), "/data/memory"))
    _uninstall(name, environment)
    assert _files(environment.user_home) == before


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("hermes", "memory:\n  provider: honcho\nmodel: old\n"),
        (
            "openclaw",
            '{\n  "model": "old",\n  "plugins": {\n    "slots": {\n      "memory": "lancedb"\n    }\n  }\n}\n',
        ),
    ],
)
def test_what_the_user_changed_since_stays(name: str, before: str, environment: HostEnvironment) -> None:
    """The memory that the host used before is selected again."""
    config = environment.user_home / CONFIGS[name]
    config.parent.mkdir(parents=True)
    config.write_text(before)
    _install(name, environment)
    config.write_text(config.read_text().replace("old", "new"))
    _install(name, environment)
    _uninstall(name, environment)
    assert config.read_text() == before.replace("old", "new")


def test_the_plugin_is_allowed_to_see_conversations_and_to_load(environment: HostEnvironment) -> None:
    """OpenClaw asks for the first, and loads only the plugins in its list of allowed ones if it has such a list."""
    config = environment.user_home / CONFIGS["openclaw"]
    config.parent.mkdir(parents=True)
    config.write_text("{ plugins: { allow: ['a'], entries: { memoranda: { config: { owner: ['k'] } } } } }")
    _install("openclaw", environment)
    plugins = parse_json5(config.read_text())["plugins"]
    assert plugins["allow"] == ["a", "memoranda"]
    assert plugins["slots"] == {"memory": "memoranda"}
    assert plugins["entries"]["memoranda"] == {
        "config": {"owner": ["k"]},
        "enabled": True,
        "hooks": {"allowConversationAccess": True},
    }


@_each
def test_another_plugin_with_our_name_is_left_alone(name: str, environment: HostEnvironment) -> None:
    """Neither installing nor uninstalling touches it."""
    other = environment.user_home / PLUGINS[name] / "mine.py"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    with pytest.raises(SettingsError, match="not Memoranda's"):
        plan_install(HOSTS[name], environment, PROGRAM)
    assert plan_uninstall(HOSTS[name], environment) == []
