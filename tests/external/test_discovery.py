"""Which providers there are, and how one is loaded.

What a plugin says that it needs is installed only when it is the name of a package.
"""

import logging
import sys
from pathlib import Path

import pytest

from memoranda.errors import ProviderError
from memoranda.external.checks import check_settings
from memoranda.external.loading.discovery import (
    DiscoveredProvider,
    discover,
    find_by_name,
    install_command,
    missing_packages,
    missing_programs,
)
from memoranda.external.loading.loader import load, load_commands
from memoranda.external.loading.setup import write_settings
from tests.external.plugins import HERMES_STYLE, add_plugin

pytestmark = pytest.mark.slow


def test_listing_runs_no_provider_s_code(tmp_path: Path) -> None:
    """A plugin that would end the program is listed all the same."""
    add_plugin(tmp_path, "bomb", "# MemoryProvider\nraise SystemExit('boom')", "description: goes off\n")
    assert discover(tmp_path)["bomb"].description == "goes off"


def test_what_is_no_memory_provider_is_not_listed(tmp_path: Path) -> None:
    """Nor what is hidden; how far down in the file the class stands makes no difference."""
    add_plugin(tmp_path, "other", "print('hello')")
    add_plugin(tmp_path, "_hidden")
    add_plugin(tmp_path, "late", "#" * 20_000 + "\n" + HERMES_STYLE)
    assert [name for name, found in discover(tmp_path).items() if found.origin == "home"] == ["late"]


def test_a_plugin_with_the_name_of_a_bundled_provider_is_chosen_by_where_it_is(tmp_path: Path) -> None:
    """Nothing replaces a bundled provider silently, and nothing makes a plugin unusable."""
    commands = "def register_cli(parser): ...\ndef holographic_command(args): ..."
    folder = add_plugin(tmp_path, "holographic", cli=commands)
    found = discover(tmp_path)
    assert found["holographic"].origin == "bundled"
    assert found["holographic"].shadows == (f"home: {folder}",)
    plugin = found["home:holographic"]
    assert (plugin.name, plugin.origin, plugin.reference) == ("home:holographic", "home", str(folder))
    assert load(plugin, tmp_path).prefetch("zebras") == "a note about zebras"
    assert load_commands(plugin, tmp_path).handler is not None


def test_where_a_provider_is_may_always_be_part_of_its_name(tmp_path: Path) -> None:
    """So a choice stays valid when a provider of the same name is bundled later."""
    add_plugin(tmp_path, "notes")
    assert "home:notes" not in discover(tmp_path)
    named = [find_by_name(tmp_path, name) for name in ("notes", "home:notes", "installed:notes", "home:holographic")]
    assert [found and (found.name, found.origin) for found in named] == [
        ("notes", "home"), ("home:notes", "home"), None, None,
    ]  # fmt: skip


def test_a_plugin_with_the_name_of_a_bundled_provider_has_its_own_settings(tmp_path: Path) -> None:
    """In a file that every system can have, and as Hermes's configuration in the plugin."""
    reading = "\n\ndef read():\n    from hermes_cli.config import load_config\n    return load_config()\n"
    add_plugin(tmp_path, "holographic", HERMES_STYLE + reading)
    write_settings(tmp_path, "holographic", {"depth": 1})
    write_settings(tmp_path, "home:holographic", {"depth": 2})
    assert (tmp_path / "providers" / "home.holographic.json").exists()
    provider = load(discover(tmp_path)["home:holographic"], tmp_path)
    seen = sys.modules[type(provider).__module__].read()
    assert seen["memory"]["holographic"] == {"depth": 2}
    (tmp_path / "providers" / "home.holographic.json").write_text("{")
    (issue,) = [issue for issue in check_settings(tmp_path) if issue.severity == "error"]
    assert "provider setup home:holographic" in issue.remedy


def test_a_manifest_that_cannot_be_read_is_a_problem_of_that_plugin_only(tmp_path: Path) -> None:
    """The others are there."""
    add_plugin(tmp_path, "broken", manifest="description: [")
    add_plugin(tmp_path, "good", manifest="description: fine\npip_dependencies: [something>=1]\n")
    found = discover(tmp_path)
    assert "plugin.yaml" in found["broken"].problem
    assert found["good"].pip_dependencies == ("something>=1",)
    with pytest.raises(ProviderError, match=r"plugin\.yaml"):
        load(found["broken"], tmp_path)


def test_a_plugin_written_for_hermes_works_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its imports, its own modules, its registration; what has no place here is said."""
    add_plugin(tmp_path, "notes")
    with caplog.at_level(logging.WARNING):
        provider = load(discover(tmp_path)["notes"], tmp_path)
    assert provider.name == "notes"
    assert provider.prefetch("zebras") == "a note about zebras"
    provider.initialize("s1")
    assert vars(provider)["home"] == tmp_path
    assert "register_tool" in caplog.text


def test_two_homes_do_not_share_a_plugin(tmp_path: Path) -> None:
    """The same name in another home is another plugin."""
    add_plugin(tmp_path / "a", "notes")
    add_plugin(tmp_path / "b", "notes", notes="class Notes:\n    def about(self, query):\n        return 'b'\n")
    first = load(discover(tmp_path / "a")["notes"], tmp_path / "a")
    second = load(discover(tmp_path / "b")["notes"], tmp_path / "b")
    assert (first.prefetch("x"), second.prefetch("x")) == ("a note about x", "b")


@pytest.mark.parametrize(
    "source",
    [
        HERMES_STYLE.replace(
            "def register(ctx):", "def register(ctx):\n    raise RuntimeError('no')\n\ndef unused(ctx):"
        ),
        HERMES_STYLE.split("def register")[0],
        HERMES_STYLE.replace("ctx.register_memory_provider(NotesProvider())", "pass"),
    ],
    ids=["register fails", "no register", "register does nothing"],
)
def test_without_a_registration_the_class_is_used(tmp_path: Path, source: str) -> None:
    """A subclass in the module is a provider."""
    add_plugin(tmp_path, "notes", source)
    assert load(discover(tmp_path)["notes"], tmp_path).name == "notes"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nonsense_that_is_not_there  # MemoryProvider", "ModuleNotFoundError"),
        ("# MemoryProvider\n1 / 0", "ZeroDivisionError"),
        ("# MemoryProvider\nraise SystemExit(3)", "SystemExit"),
        ("# MemoryProvider", "contains no provider"),
        ("def MemoryProvider(:", "SyntaxError"),
    ],
)
def test_a_broken_plugin_is_reported_and_not_fatal(tmp_path: Path, source: str, reason: str) -> None:
    """With the reason, and nothing of it stays behind."""
    add_plugin(tmp_path, "broken", source)
    with pytest.raises(ProviderError, match=reason):
        load(discover(tmp_path)["broken"], tmp_path)
    assert not [name for name in sys.modules if name.endswith(".broken")] or reason == "contains no provider"


def _needing(*packages: str) -> DiscoveredProvider:
    return DiscoveredProvider("p", "home", "/nowhere", pip_dependencies=packages)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense-thing",
        "nonsense_thing>=1.0",
        "nonsense.thing[extra,more]>=1,<2",
        "nonsense ~= 1.4.2",
        "nonsense==1.*; python_version >= '3.11'",
    ],
)
def test_names_with_versions_are_accepted(text: str) -> None:
    """And those that are installed are left out."""
    assert missing_packages(_needing(text, "click>=8")) == [text]


def test_anything_else_is_refused_and_named() -> None:
    """Options, addresses and paths reach no installer."""
    for text in [
        "--extra=somewhere",
        "-r other.txt",
        "-e .",
        "nonsense @ https://example.com/x.whl",
        "https://example.com/x.whl",
        "git+https://example.com/x",
        "../here",
        "./here",
        "nonsense --no-deps",
        "nonsense\n--pre",
        "nonsense; rm -rf $HOME",
        "",
    ]:
        with pytest.raises(ProviderError, match="is not a package with a version"):
            missing_packages(_needing(text))


def test_packages_are_installed_for_this_python() -> None:
    """By pip, or by uv where there is no pip."""
    command = install_command(["nonsense"])
    assert sys.executable in command
    assert command[-1] == "nonsense"


def test_only_programs_that_are_not_there_are_hinted_at() -> None:
    """Nothing that a manifest says is run to find that out."""
    needed = (
        {"name": "a shell", "check": "sh --version"},
        {"name": "zzz", "install": "get it", "check": "zzz-none -v"},
    )
    found = DiscoveredProvider("p", "home", "/nowhere", external_dependencies=needed)
    assert missing_programs(found) == [("zzz", "get it")]
