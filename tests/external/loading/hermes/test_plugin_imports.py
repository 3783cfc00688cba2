"""Plugins written for Hermes find what they import, and the host's own modules stay the host's."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import discover
from memoranda.external.loading.loader import load
from memoranda.external.provider import MemoryProvider
from tests.external.plugins import add_plugin

WIDE = """
import agent.memory_provider
from agent.memory_provider import MemoryProvider
from tools.registry import registry, tool_error
from .notes import Notes


class Wide(MemoryProvider):
    name = "wide"

    def is_available(self):
        return issubclass(Wide, agent.memory_provider.MemoryProvider)

    def initialize(self, session_id, **kwargs):
        from hermes_constants import get_hermes_home
        self.home = get_hermes_home()

    def get_tool_schemas(self):
        return []

    def handle_tool_call(self, tool_name, args, **kwargs):
        from tools.registry import tool_result
        return tool_result(value=1) if args else tool_error("nothing to do", code=3)

    def prefetch(self, query, **kwargs):
        from agent import greeting
        return greeting()


registry.register(name="something", handler=None)
"""
LAZY = """
class Notes:
    def about(self, query):
        from hermes_constants import display_hermes_home
        return display_hermes_home()
"""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A project that has a package called agent, and no tools."""
    (tmp_path / "project" / "agent").mkdir(parents=True)
    (tmp_path / "project" / "agent" / "__init__.py").write_text("def greeting():\n    return 'the host is here'\n")
    monkeypatch.syspath_prepend(str(tmp_path / "project"))
    monkeypatch.delitem(sys.modules, "agent", raising=False)
    yield importlib.import_module("agent")
    monkeypatch.delitem(sys.modules, "agent", raising=False)


def test_a_plugin_and_a_host_package_called_agent_live_side_by_side(tmp_path: Path, host: ModuleType) -> None:
    """The plugin gets what it imports from Hermes, at once and in functions, and what the host has besides."""
    add_plugin(tmp_path, "wide", WIDE, notes=LAZY)
    found = discover(tmp_path)["wide"]
    before = set(sys.modules)
    provider = load(found, tmp_path)
    assert isinstance(provider, MemoryProvider)
    assert provider.is_available()
    provider.initialize("s1")
    assert vars(provider)["home"] == tmp_path
    assert provider.handle_tool_call("x", {}) == '{"error": "nothing to do", "code": 3}'
    assert provider.handle_tool_call("x", {"a": 1}) == '{"value": 1}'
    assert provider.prefetch("x") == "the host is here"
    assert sys.modules["agent"] is host
    assert not hasattr(host, "memory_provider")
    # What this package itself loads for the first time, if this test is the first, does not matter.
    ours = sys.stdlib_module_names | {"memoranda"}
    assert {name.partition(".")[0] for name in set(sys.modules) - before} - ours == {"memoranda_home_plugins"}


def test_the_host_cannot_import_what_is_offered_to_plugins(tmp_path: Path) -> None:
    """No other code finds a module of Hermes that is not installed."""
    add_plugin(tmp_path, "notes")
    load(discover(tmp_path)["notes"], tmp_path)
    for name in ("agent.memory_provider", "tools.registry", "hermes_constants"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)


def test_each_home_s_plugin_gets_its_own_home(tmp_path: Path) -> None:
    """Two homes in one process, whichever was loaded last."""
    providers = []
    for home in (tmp_path / "a", tmp_path / "b"):
        add_plugin(home, "notes")
        providers.append(load(discover(home)["notes"], home))
    for provider in providers:
        provider.initialize("s1")
    assert [vars(provider)["home"] for provider in providers] == [tmp_path / "a", tmp_path / "b"]


def test_what_hermes_has_and_is_not_offered_is_named(tmp_path: Path) -> None:
    """The reason says which import it is."""
    add_plugin(tmp_path, "deep", "from agent.memory_provider import MemoryProvider\nfrom agent.redact import hide\n")
    with pytest.raises(ProviderError, match=r"imports agent\.redact, hide of Hermes"):
        load(discover(tmp_path)["deep"], tmp_path)
