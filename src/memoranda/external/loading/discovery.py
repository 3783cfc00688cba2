"""Discovers providers without running any of their code.

A provider is bundled, offered by an installed package (entry point `memoranda.providers`), or a plugin in the
home: `plugins/<name>/` with an `__init__.py` and optionally a `plugin.yaml`. Of two with the same name the bundled one
has it, then the installed one; the other is chosen as `home:<name>` or `installed:<name>`. Only the provider that is
used is ever imported: see `loader`.

Dependencies of a plugin are Python packages, which can be installed, and other programs, which are only named. A
manifest comes from a third party: of its packages only names, extras, versions and markers are accepted; anything else
(options of the installer, addresses, paths) is refused and shown.
"""

import importlib.util
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any, Literal

from memoranda.errors import ProviderError
from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass

GROUP = "memoranda.providers"
_MARKS = ("MemoryProvider", "register_memory_provider")
_HERMES_MODULE = "agent.memory_provider"
_THREAD_MARKS = ("threading.Thread", "import Thread", "ThreadPoolExecutor")
_MAX_SOURCE_BYTES = 1_000_000
_MAX_MANIFEST_BYTES = 20_000

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"\s*(?:~=|===?|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*\s*"
_REQUIREMENT = re.compile(
    rf"\s*({_NAME})\s*(?:\[\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\])?(?:{_VERSION}(?:,{_VERSION})*)?"
    r"(?:\s*;\s*[A-Za-z0-9_.'\"<>=!~() -]+)?\s*"
)


@dataclass(frozen=True, slots=True)
class DiscoveredProvider:
    """A provider that can be loaded. `reference` is `module:class` or a directory; `problem` says why it cannot be."""

    name: str
    origin: Literal["bundled", "installed", "home"]
    reference: str
    description: str = ""
    pip_dependencies: tuple[str, ...] = ()
    external_dependencies: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    shadows: tuple[str, ...] = ()
    """Other providers of the same name, each with where it is; they have qualified names."""
    data_files: tuple[str, ...] = ()
    """Patterns of a bundled provider's files: a home that has one is checked by it, whether or not it is in use."""

    is_local: bool = False
    """It starts without a network, a model or another program, so a session waits until it has started."""

    own_thread: bool = False
    """A plugin written for Hermes that starts threads: it takes turns in one, so their delivery cannot be monitored."""

    def has_data(self, home: Path) -> bool:
        return any(next(home.glob(pattern), None) is not None for pattern in self.data_files)


def _vendor(name: str, provider: str, description: str, **options: Any) -> DiscoveredProvider:
    """A bundled provider in `memoranda.external.vendors.<name>.vendor`; imported when it is chosen."""
    reference = f"memoranda.external.vendors.{name}.vendor:{provider}"
    return DiscoveredProvider(name, "bundled", reference, description, **options)


BUNDLED = (
    DiscoveredProvider(
        "holographic",
        "bundled",
        "memoranda.external.holographic:HolographicProvider",
        "Facts with entities and trust in a file on this machine; needs nothing else.",
        data_files=("holographic.cache/*.db*",),
        is_local=True,
    ),
    _vendor("honcho", "HonchoProvider", "A model of the user, in Honcho's cloud or on a server of your own."),
    _vendor(
        "byterover",
        "ByteRoverProvider",
        "A tree of knowledge in files on this machine, searched and extended by the program brv.",
        external_dependencies=({"name": "brv", "install": "npm install -g byterover-cli"},),
    ),
    _vendor(
        "openviking",
        "OpenVikingProvider",
        "A tree of memories and documents on your own OpenViking server, searched by meaning.",
    ),
    _vendor(
        "retaindb",
        "RetainDBProvider",
        "Typed memories and files: RetainDB's cloud, a server of yours, or its program on this machine.",
    ),
    _vendor(
        "mem0",
        "Mem0Provider",
        "Facts that a model extracts from conversations: Mem0's cloud, a server of yours, or a library here.",
    ),
    _vendor(
        "hindsight",
        "HindsightProvider",
        "Facts, entities and observations that Hindsight extracts; cloud, or a server of yours.",
    ),
    _vendor(
        "supermemory",
        "SupermemoryProvider",
        "Memories and a profile of the user that Supermemory learns from conversations; cloud.",
    ),
    _vendor("zep", "ZepProvider", "A graph of facts about each user, with the times when they were true, at Zep."),
)


def discover(home: Path) -> dict[str, DiscoveredProvider]:
    found: dict[str, DiscoveredProvider] = {}
    for provider in (*BUNDLED, *_installed_providers(), *_plugins_in(home)):
        first = found.setdefault(provider.name, provider)
        if first is not provider:
            hidden = f"{provider.origin}: {provider.reference}"
            found[provider.name] = replace(first, shadows=(*first.shadows, hidden))
            qualified = f"{provider.origin}:{provider.name}"
            found.setdefault(qualified, replace(provider, name=qualified))
    return dict(sorted(found.items()))


def is_local(name: str) -> bool:
    """Whether a name means a bundled provider that needs nothing but this machine."""
    return any(provider.name == name and provider.is_local for provider in BUNDLED)


def find_by_name(home: Path, name: str) -> DiscoveredProvider | None:
    """The provider with a name; `home:<name>` and `installed:<name>` name one also where no other has its name."""
    found = discover(home)
    if name in found:
        return found[name]
    origin, _, plain = name.partition(":")
    other = found.get(plain)
    return replace(other, name=name) if other is not None and other.origin == origin else None


def _installed_providers() -> list[DiscoveredProvider]:
    points: list[EntryPoint] = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [DiscoveredProvider(point.name, "installed", point.value, _package_of(point)) for point in points]


def _package_of(point: EntryPoint) -> str:
    return f"from the package {point.dist.name}" if point.dist else ""


def _plugins_in(home: Path) -> list[DiscoveredProvider]:
    directory = home / "plugins"
    if not directory.is_dir():
        return []
    folders = [path for path in sorted(directory.iterdir()) if path.is_dir() and path.name[0] not in "._"]
    return [plugin for folder in folders if (plugin := read_plugin(folder)) is not None]


def read_plugin(folder: Path) -> DiscoveredProvider | None:
    """The plugin in a folder; None when it is not a memory provider. A broken plugin has a `problem`."""
    try:
        source = read_file(folder / "__init__.py", _MAX_SOURCE_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        return DiscoveredProvider(folder.name, "home", str(folder), problem=f"cannot be read: {error.strerror}")
    if not any(mark in source for mark in _MARKS):
        return None
    try:
        manifest = _read_manifest(folder / "plugin.yaml")
    except ValueError as error:
        return DiscoveredProvider(folder.name, "home", str(folder), problem=str(error))
    return DiscoveredProvider(
        folder.name,
        "home",
        str(folder),
        str(manifest.get("description") or ""),
        tuple(str(package) for package in _list_of(manifest, "pip_dependencies")),
        tuple(program for program in _list_of(manifest, "external_dependencies") if isinstance(program, Mapping)),
        own_thread=_HERMES_MODULE in source and any(mark in source for mark in _THREAD_MARKS),
    )


def _list_of(manifest: Mapping[str, Any], key: str) -> list[Any]:
    value = manifest.get(key)
    return value if isinstance(value, list) else []


def _read_manifest(path: Path) -> Mapping[str, Any]:
    # The import takes 40 ms, and most homes have no plugin.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(read_file(path, _MAX_MANIFEST_BYTES).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, YAMLError, RecursionError) as error:
        raise ValueError(f"its plugin.yaml cannot be read: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ValueError("its plugin.yaml must contain keys and values")
    return document


def missing_packages(found: DiscoveredProvider) -> list[str]:
    """The Python packages that a provider needs and that are not installed; versions are not compared."""
    return [text.strip() for text in found.pip_dependencies if not _is_installed(_required_package(found, text))]


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


def _required_package(found: DiscoveredProvider, text: str) -> str:
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
