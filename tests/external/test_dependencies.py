"""What a plugin says that it needs is installed only when it is the name of a package."""

import sys

import pytest

from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import DiscoveredProvider, install_command, missing_packages, missing_programs
from tests.cases import cases


def _needing(*packages: str) -> DiscoveredProvider:
    return DiscoveredProvider("p", "home", "/nowhere", pip_dependencies=packages)


@cases(
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


@cases(
    "text",
    [
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
    ],
)
def test_anything_else_is_refused_and_named(text: str) -> None:
    """Options, addresses and paths reach no installer."""
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
