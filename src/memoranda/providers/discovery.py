"""Which providers there are, without running any of their code.

A provider is bundled, offered by an installed package (entry point `memoranda.providers`), or lies in the home as
`plugins/<name>/` with an `__init__.py` and, if it likes, a `plugin.yaml`. On a clash the bundled one wins, then the
installed one. Only the one that is asked for is ever imported: see `loading`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal

from memoranda.support.durable_files import read_file

GROUP = "memoranda.providers"
_MARKS = ("MemoryProvider", "register_memory_provider")
_LONGEST_SOURCE = 1_000_000
_LONGEST_MANIFEST = 20_000


@dataclass(frozen=True, slots=True)
class DiscoveredProvider:
    """A provider that can be asked for. `reference` is `module:class` or a directory; `problem` says why it cannot."""

    name: str
    origin: Literal["bundled", "installed", "home"]
    reference: str
    description: str = ""
    pip_dependencies: tuple[str, ...] = ()
    external_dependencies: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    shadows: tuple[str, ...] = ()
    """Other providers of the same name, which this one hides."""
    data_files: tuple[str, ...] = ()
    """Patterns of a bundled provider's files: a home that has one is checked by it, whether or not it is in use."""

    def has_data(self, home: Path) -> bool:
        return any(next(home.glob(pattern), None) is not None for pattern in self.data_files)


BUNDLED = (
    DiscoveredProvider(
        "holographic",
        "bundled",
        "memoranda.providers.holographic:HolographicProvider",
        "Facts with entities and trust in a file on this machine; needs nothing else.",
        data_files=("holographic*.db*",),
    ),
)


def discover(home: Path) -> dict[str, DiscoveredProvider]:
    """Every provider by its name."""
    found: dict[str, DiscoveredProvider] = {}
    for candidate in (*BUNDLED, *_installed(), *_in_home(home)):
        first = found.setdefault(candidate.name, candidate)
        if first is not candidate:
            hidden = f"{candidate.origin}: {candidate.reference}"
            found[candidate.name] = replace(first, shadows=(*first.shadows, hidden))
    return dict(sorted(found.items()))


def _installed() -> list[DiscoveredProvider]:
    points: list[EntryPoint] = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return [DiscoveredProvider(point.name, "installed", point.value, _package(point)) for point in points]


def _package(point: EntryPoint) -> str:
    return f"from the package {point.dist.name}" if point.dist else ""


def _in_home(home: Path) -> list[DiscoveredProvider]:
    directory = home / "plugins"
    if not directory.is_dir():
        return []
    places = [place for place in sorted(directory.iterdir()) if place.is_dir() and place.name[0] not in "._"]
    return [candidate for place in places if (candidate := _plugin(place)) is not None]


def _plugin(place: Path) -> DiscoveredProvider | None:
    """The plugin in a directory; None for one that is no memory provider. A broken one is a candidate too."""
    try:
        source = read_file(place / "__init__.py", _LONGEST_SOURCE).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        return DiscoveredProvider(place.name, "home", str(place), problem=f"cannot be read: {error.strerror}")
    if not any(mark in source for mark in _MARKS):
        return None
    try:
        manifest = _manifest(place / "plugin.yaml")
    except ValueError as error:
        return DiscoveredProvider(place.name, "home", str(place), problem=str(error))
    return DiscoveredProvider(
        place.name,
        "home",
        str(place),
        str(manifest.get("description") or ""),
        tuple(str(each) for each in _list(manifest, "pip_dependencies")),
        tuple(each for each in _list(manifest, "external_dependencies") if isinstance(each, Mapping)),
    )


def _list(manifest: Mapping[str, Any], key: str) -> list[Any]:
    value = manifest.get(key)
    return value if isinstance(value, list) else []


def _manifest(path: Path) -> Mapping[str, Any]:
    # 40 ms, and most homes have no plugin.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe", pure=True).load(read_file(path, _LONGEST_MANIFEST).decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, YAMLError, RecursionError) as error:
        raise ValueError(f"its plugin.yaml cannot be read: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise ValueError("its plugin.yaml must hold keys and values")
    return document
