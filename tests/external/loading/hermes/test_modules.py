"""The modules of Hermes that a plugin imports do what the plugin expects of them, for its own home."""

import asyncio
import importlib
import json
import sqlite3
import stat
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import discover
from memoranda.external.loading.hermes.modules import hermes_modules
from memoranda.external.loading.loader import load
from memoranda.external.loading.setup import read_settings, write_settings
from tests.external.plugins import add_plugin
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

# Each import that a vendor's plugin for Hermes has, at the top of a file or in a function.
EVERY_IMPORT = """
import utils
import plugins.memory.every_import.client as client_by_path
from agent.async_utils import safe_schedule_threadsafe
from agent.file_safety import raise_if_read_blocked
from agent.memory_manager import sanitize_context
from agent.memory_provider import MemoryProvider
from agent.message_content import flatten_message_text
from agent.skill_commands import extract_user_instruction_from_skill_message
from hermes_cli.config import cfg_get, load_config, load_config_readonly, save_config
from hermes_cli.profiles import _get_default_hermes_home, get_active_profile_name, list_profiles
from hermes_cli.secret_prompt import masked_secret_prompt
from hermes_constants import display_hermes_home, get_hermes_home
from hermes_state import apply_wal_with_fallback
from plugins.memory import every_import as itself
from plugins.memory.config_schema import KIND_SELECT, ProviderConfigSchema, ProviderField, ProviderFieldOption
from plugins.memory.every_import.client import Client
from plugins.plugin_utils import SingletonSlot
from tools.lazy_deps import FeatureUnavailable, ensure
from tools.registry import tool_error
from utils import atomic_json_write, env_var_enabled

SCHEMA = ProviderConfigSchema(
    name="every", fields=(ProviderField(key="mode", kind=KIND_SELECT, options=(ProviderFieldOption("a", "A"),)),)
)


class Every(MemoryProvider):
    name = "every_import"

    def __init__(self, rewrite=None):
        self.rewrite = rewrite
        self.client = Client()

    def is_available(self):
        return client_by_path.Client is Client and utils.atomic_json_write is atomic_json_write

    def initialize(self, session_id, **kwargs):
        from plugins.memory.every_import import client
        self.same = client.Client is Client and itself.Every is Every

    def get_tool_schemas(self):
        return []

    def prefetch(self, query, **kwargs):
        from utils import shout
        return shout(self.rewrite(query))


def register(ctx):
    from plugins.memory.query_rewrite import rewrite_memory_query
    ctx.register_memory_provider(Every(rewrite=rewrite_memory_query))
"""
CLIENT = "class Client:\n    pass\n"


@pytest.fixture
def offered(tmp_path: Path) -> dict[str, ModuleType]:
    """The modules for a plugin called notes."""
    return hermes_modules(add_plugin(tmp_path / "home", "notes"), tmp_path / "home")


def test_a_plugin_imports_all_names_and_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own modules are the same ones by both names, and the host's `utils` stays the host's."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "utils.py").write_text("def shout(text):\n    return text.upper()\n")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    monkeypatch.delitem(sys.modules, "utils", raising=False)
    before = set(sys.modules)
    add_plugin(tmp_path, "every_import", EVERY_IMPORT, client=CLIENT)
    provider = load(discover(tmp_path)["every_import"], tmp_path)
    provider.initialize("s1")
    assert provider.is_available()
    assert vars(provider)["same"]
    assert provider.prefetch("tea") == "TEA"
    assert not hasattr(sys.modules["utils"], "atomic_json_write")
    monkeypatch.delitem(sys.modules, "utils")
    new = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert not new & {"agent", "plugins", "tools", "hermes_cli", "hermes_state", "hermes_constants"}


def test_an_interactive_part_of_hermes_is_not_offered(tmp_path: Path) -> None:
    """The one sentence of the error says which import fails."""
    source = "from agent.memory_provider import MemoryProvider\nfrom hermes_cli.memory_setup import _prompt\n"
    add_plugin(tmp_path, "asks", source)
    with pytest.raises(ProviderError, match=r"imports hermes_cli\.memory_setup, _prompt of Hermes") as caught:
        load(discover(tmp_path)["asks"], tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.disk  # No plugin reads below /dev, where files in memory are.
def test_a_plugin_may_not_read_credentials_or_the_home(tmp_path: Path, offered: dict[str, ModuleType]) -> None:
    """Nor by a link or in another case; other files, public keys and examples it may read."""
    refuse = offered["agent.file_safety"].raise_if_read_blocked
    (tmp_path / "home" / "state.db").touch()
    (tmp_path / "innocent.txt").symlink_to(tmp_path / "home" / "state.db")
    (tmp_path / "alias.txt").symlink_to(tmp_path / ".env")
    blocked = [".env", ".ENV", ".env.production", "id_ed25519", "server.pem", ".ssh/config", ".aws/credentials"]
    blocked += ["home/state.db", "home/memories/MEMORY.md", "home/../home/config.yaml", "innocent.txt", "alias.txt"]
    for name in blocked:
        with pytest.raises(ValueError, match="may not be read"):
            refuse(str(tmp_path / name))
    for path in ("/proc/self/environ", "~/.netrc", "a\0b"):
        with pytest.raises(ValueError, match="may not be read"):
            refuse(path)
    for name in ("report.txt", "id_ed25519.pub", ".env.example", "environment.md", "homework.txt"):
        refuse(str(tmp_path / name))


def test_a_plugin_sees_the_configuration_and_saves_only_its_own(
    tmp_path: Path, offered: dict[str, ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    """`memory.<plugin>` is what setup saved; config.yaml does not change."""
    config, home = offered["hermes_cli.config"], tmp_path / "home"
    text = "memory:\n  provider: notes\nhoncho:\n  timeout: 7\n"
    (home / "config.yaml").write_text(text)
    write_settings(home, "notes", {"region": "eu"})
    loaded = config.load_config()
    assert loaded["memory"] == {"provider": "notes", "notes": {"region": "eu"}}
    assert config.load_config_readonly()["honcho"] == {"timeout": 7}
    assert config.cfg_get(loaded, "memory", "notes", "region") == "eu"
    assert config.cfg_get(loaded, "memory", "other", "region", default="us") == "us"
    loaded["memory"]["notes"]["region"] = "us"
    config.save_config(loaded | {"model": "another"})
    assert read_settings(home, "notes") == {"region": "us"}
    assert (home / "config.yaml").read_text() == text
    assert "may not change model" in caplog.text


def test_profiles_are_those_of_the_home(tmp_path: Path) -> None:
    """A plugin in a named profile knows its name and the default home."""
    home = tmp_path / "base" / "profiles" / "work"
    profiles = hermes_modules(add_plugin(home, "notes"), home)["hermes_cli.profiles"]
    assert profiles.get_active_profile_name() == "work"
    assert profiles._get_default_hermes_home() == tmp_path / "base"
    assert [(profile.name, profile.path) for profile in profiles.list_profiles()] == [
        ("default", tmp_path / "base"),
        ("work", home),
    ]


def test_json_is_written_privately_and_replaced_whole(tmp_path: Path, offered: dict[str, ModuleType]) -> None:
    """A value that is no JSON leaves the old file."""
    write, path = offered["utils"].atomic_json_write, tmp_path / "deep" / "a.json"
    write(path, {"b": 1, "a": "é"}, mode=0o600, sort_keys=True)
    assert path.read_text("utf-8") == '{\n  "a": "é",\n  "b": 1\n}'
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(TypeError):
        write(path, {"a": object()})
    assert json.loads(path.read_text("utf-8")) == {"a": "é", "b": 1}


def test_missing_packages_are_named_and_not_installed(tmp_path: Path) -> None:
    """The error has the line that installs them."""
    folder = add_plugin(tmp_path, "needy", manifest="pip_dependencies: ['no-such-package-here>=1']\n")
    lazy = hermes_modules(folder, tmp_path)["tools.lazy_deps"]
    with pytest.raises(lazy.FeatureUnavailable, match="pip install no-such-package-here>=1"):
        lazy.ensure("memory.needy", prompt=False)
    hermes_modules(add_plugin(tmp_path, "modest"), tmp_path)["tools.lazy_deps"].ensure("memory.modest", prompt=False)


def test_texts_and_variables(offered: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of a message, without recalled memory, and whether a variable means yes."""
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "two"}]
    assert offered["agent.message_content"].flatten_message_text(parts) == "one\ntwo"
    extract = offered["agent.skill_commands"].extract_user_instruction_from_skill_message
    assert (extract("do it"), extract(None)) == ("do it", None)
    fenced = "<memory-context>secret</memory-context>after"
    assert offered["agent.memory_manager"].sanitize_context(fenced).strip() == "after"
    # The configuration provides the variables, as soon as a provider's keys are looked up.
    importlib.import_module("memoranda.home.config.secrets")
    monkeypatch.setenv("NOTES_TRACE", "Yes")
    enabled = offered["utils"].env_var_enabled
    assert (enabled("NOTES_TRACE"), enabled("NOTES_ABSENT"), enabled("NOTES_ABSENT", "1")) == (True, False, True)


def test_a_slot_makes_its_object_once(offered: dict[str, ModuleType]) -> None:
    """Several threads get the same object; a factory that raises leaves the slot empty."""
    slot = offered["plugins.plugin_utils"].SingletonSlot()
    with pytest.raises(ZeroDivisionError):
        slot.get(lambda: 1 // 0)
    assert slot.peek() is None
    made: list[Any] = []
    threads = [threading.Thread(target=lambda: made.append(slot.get(object))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert set(made) == {slot.peek()}
    slot.reset()
    assert slot.peek() is None


def test_coroutines_run_in_an_open_loop_only(offered: dict[str, ModuleType]) -> None:
    """A closed loop or none gives None, and the coroutine is closed."""
    schedule = offered["agent.async_utils"].safe_schedule_threadsafe

    async def answer() -> int:
        return 7

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    assert schedule(answer(), loop).result(GIVE_UP) == 7
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert schedule(answer(), loop) is None
    assert schedule(answer(), None) is None


def test_a_database_gets_a_write_ahead_log(tmp_path: Path, offered: dict[str, ModuleType]) -> None:
    """The mode that is in effect is returned."""
    connection = sqlite3.connect(tmp_path / "facts.db")
    assert offered["hermes_state"].apply_wal_with_fallback(connection) == "wal"
    connection.close()
