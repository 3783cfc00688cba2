"""What a plugin says that it needs: Python packages, which can be installed, and other programs, which are only named.

A manifest is somebody else's text. Of its packages only names, extras, versions and markers are accepted; anything else
(options of the installer, addresses, paths) is refused and shown.
"""

import importlib.util
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.discovery import DiscoveredProvider

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"\s*(?:~=|===?|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*\s*"
_REQUIREMENT = re.compile(
    rf"\s*({_NAME})\s*(?:\[\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\])?(?:{_VERSION}(?:,{_VERSION})*)?"
    r"(?:\s*;\s*[A-Za-z0-9_.'\"<>=!~() -]+)?\s*"
)


def missing_packages(candidate: DiscoveredProvider) -> list[str]:
    """The Python packages that a candidate asks for and that are not installed; versions are not compared."""
    return [text.strip() for text in candidate.pip_dependencies if not _is_installed(_package(candidate, text))]


def missing_programs(candidate: DiscoveredProvider) -> list[tuple[str, str]]:
    """The other programs that are not there, each with what its author says about installing it."""
    return [
        (str(needed.get("name", "?")), str(needed.get("install") or needed.get("url") or ""))
        for needed in candidate.external_dependencies
        if not _is_there(needed)
    ]


def install_command(packages: list[str]) -> list[str]:
    """What installs packages for the Python that is running, which need not have pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *packages]
    uv = shutil.which("uv")
    if uv is None:
        raise ProviderError(f"There is neither pip nor uv here. Install {', '.join(packages)} by hand.")
    return [uv, "pip", "install", "--python", sys.executable, *packages]


def _package(candidate: DiscoveredProvider, text: str) -> str:
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise ProviderError(
            f"{text[:80]!r} in the plugin.yaml of {candidate.name} is no package with a version. "
            "It is not installed; install what the plugin needs by hand."
        )
    return match[1]


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _is_there(needed: Mapping[str, Any]) -> bool:
    """By the first word of its check; nothing that a manifest says is run."""
    words = str(needed.get("check") or needed.get("name") or "").split()
    return bool(words) and shutil.which(words[0]) is not None
