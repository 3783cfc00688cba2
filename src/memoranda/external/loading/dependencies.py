"""Dependencies of a plugin: Python packages, which can be installed, and other programs, which are only named.

A manifest comes from a third party. Of its packages only names, extras, versions and markers are accepted; anything
else (options of the installer, addresses, paths) is refused and shown.
"""

import importlib.util
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.loading.discovery import DiscoveredProvider

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"\s*(?:~=|===?|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*\s*"
_REQUIREMENT = re.compile(
    rf"\s*({_NAME})\s*(?:\[\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\])?(?:{_VERSION}(?:,{_VERSION})*)?"
    r"(?:\s*;\s*[A-Za-z0-9_.'\"<>=!~() -]+)?\s*"
)


def missing_packages(found: DiscoveredProvider) -> list[str]:
    """The Python packages that a provider needs and that are not installed; versions are not compared."""
    return [text.strip() for text in found.pip_dependencies if not _is_installed(_package(found, text))]


def missing_programs(found: DiscoveredProvider) -> list[tuple[str, str]]:
    """The other programs that are missing, each with the manifest's hint on how to install it."""
    return [
        (str(needed.get("name", "?")), str(needed.get("install") or needed.get("url") or ""))
        for needed in found.external_dependencies
        if not _is_available(needed)
    ]


def install_command(packages: list[str]) -> list[str]:
    """The command that installs packages for the running Python, which may lack pip."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *packages]
    uv = shutil.which("uv")
    if uv is None:
        raise ProviderError(f"Neither pip nor uv is installed. Install {', '.join(packages)} by hand.")
    return [uv, "pip", "install", "--python", sys.executable, *packages]


def _package(found: DiscoveredProvider, text: str) -> str:
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise ProviderError(
            f"{text[:80]!r} in the plugin.yaml of {found.name} is not a package with a version. "
            "It is not installed; install what the plugin needs by hand."
        )
    return match[1]


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _is_available(needed: Mapping[str, Any]) -> bool:
    """Look for the first word of the manifest's check in the path; nothing is run."""
    words = str(needed.get("check") or needed.get("name") or "").split()
    return bool(words) and shutil.which(words[0]) is not None
