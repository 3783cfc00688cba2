"""Turns a candidate into a provider: imports its code, and that code only.

A plugin in the home may have been written for Hermes: it imports modules of Hermes by their names (see `hermes`), and
registers itself with a context. Both are offered, so that it works as it is. What it registers besides a provider has
no place here, and is said in the log.
"""

import hashlib
import importlib
import importlib.util
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from memoranda.errors import ProviderError
from memoranda.providers.discovery import DiscoveredProvider
from memoranda.providers.hermes import PACKAGE, HermesModules, PluginFinder, PluginLoader
from memoranda.providers.provider import MemoryProvider

_log = logging.getLogger(__name__)

_finder = PluginFinder()
_locks = threading.Lock()
_importing: dict[str, threading.RLock] = {}


class PluginContext:
    """What a plugin's `register(ctx)` is given."""

    def __init__(self, plugin: str, home: Path, settings: Mapping[str, Any]) -> None:
        self.providers: list[MemoryProvider] = []
        self.home = home
        self.settings = settings
        self._plugin = plugin

    def register_memory_provider(self, provider: MemoryProvider) -> None:
        self.providers.append(provider)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("register_"):
            raise AttributeError(name)

        def leave_out(*arguments: Any, **facts: Any) -> None:
            _log.warning(
                "The plugin %s calls %s, for which there is no place here; it is left out.", self._plugin, name
            )

        return leave_out


def load(candidate: DiscoveredProvider, home: Path, settings: Mapping[str, Any] | None = None) -> MemoryProvider:
    """The provider of a candidate; raises ProviderError, saying why, when it cannot be had."""
    if candidate.problem:
        raise ProviderError(f"The provider {candidate.name} cannot be used: {candidate.problem}.")
    try:
        if candidate.origin == "home":
            return _from_module(_import_plugin(Path(candidate.reference), home), candidate.name, home, settings)
        return _make(_import_class(candidate.reference), home, settings)
    except ProviderError:
        raise
    except (Exception, SystemExit) as error:
        # Somebody else's code runs here; whatever it raises is a reason, and no more than that.
        _log.warning("The provider %s could not be loaded.", candidate.name, exc_info=True)
        raise ProviderError(
            f"The provider {candidate.name} could not be loaded ({type(error).__name__}: {error})."
        ) from error


@dataclass(frozen=True, slots=True)
class PluginCommands:
    """What a plugin's `cli.py` brings: how its arguments are read, and what runs them."""

    register: Callable[[Any], Any]
    handler: Callable[[Any], Any] | None


def load_commands(candidate: DiscoveredProvider, home: Path) -> PluginCommands:
    """The commands of a plugin in the home; raises ProviderError when it brings none."""
    if candidate.origin != "home" or not (Path(candidate.reference) / "cli.py").is_file():
        raise ProviderError(f"The provider {candidate.name} brings no commands of its own.")
    try:
        package = _import_plugin(Path(candidate.reference), home)
        module = importlib.import_module(f"{package.__name__}.cli")
        return PluginCommands(module.register_cli, getattr(module, f"{candidate.name.replace('-', '_')}_command", None))
    except (Exception, SystemExit) as error:
        raise ProviderError(f"The commands of {candidate.name} could not be loaded: {error}.") from error


def _import_class(reference: str) -> type[MemoryProvider]:
    module, _, attribute = reference.partition(":")
    found = importlib.import_module(module)
    for name in attribute.split(".") if attribute else []:
        found = getattr(found, name)
    if isinstance(found, ModuleType):
        raise ProviderError(f"{reference} names no class.")
    return found


def _make(kind: Any, home: Path, settings: Mapping[str, Any] | None) -> MemoryProvider:
    """An instance, given what its constructor takes: the home, its settings, or nothing."""
    taken = inspect.signature(kind).parameters
    offered = {"home": home, "settings": settings}
    made = kind(**{name: value for name, value in offered.items() if name in taken})
    if not isinstance(made, MemoryProvider):
        raise ProviderError(f"{kind!r} is no MemoryProvider.")
    return made


def _import_plugin(place: Path, home: Path) -> ModuleType:
    """Import a directory as a package of its own, so that its relative imports work and its name takes nobody's.

    It is imported once, by whichever session is first, and again when one of its files has changed.
    """
    with _locks:
        if PACKAGE not in sys.modules:
            root = ModuleType(PACKAGE)
            root.__path__ = []
            sys.modules[PACKAGE] = root
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        importing = _importing.setdefault(str(place), threading.RLock())
    # One that never finishes holds up nobody but itself.
    with importing:
        name = f"{PACKAGE}.{place.name.replace('-', '_')}_{_fingerprint(place)}"
        return sys.modules[name] if name in sys.modules else _execute(name, place, home)


def _fingerprint(place: Path) -> str:
    """Tells the same plugin in the same state from any other."""
    files = sorted((str(file), file.stat().st_mtime_ns) for file in place.glob("**/*.py"))
    return hashlib.sha256(repr((str(place), files)).encode()).hexdigest()[:12]


def _execute(name: str, place: Path, home: Path) -> ModuleType:
    offer = _finder.offers[name] = HermesModules(place.name, home)
    file = str(place / "__init__.py")
    spec = importlib.util.spec_from_file_location(
        name, file, loader=PluginLoader(name, file, offer), submodule_search_locations=[str(place)]
    )
    if spec is None or spec.loader is None:
        raise ProviderError(f"{place} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_module(module: ModuleType, name: str, home: Path, settings: Mapping[str, Any] | None) -> MemoryProvider:
    """What `register(ctx)` registers; if it is not there, fails or registers nothing, a subclass in the module."""
    register = getattr(module, "register", None)
    context = PluginContext(name, home, settings or {})
    failure: BaseException | None = None
    if callable(register):
        try:
            register(context)
        except (Exception, SystemExit) as error:
            failure = error
            _log.warning("register() of the plugin %s failed: %s. Its class is tried.", name, error)
    if len(context.providers) > 1:
        _log.warning("The plugin %s registers %d providers; the first is used.", name, len(context.providers))
    if context.providers:
        return context.providers[0]
    own = [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, MemoryProvider) and not inspect.isabstract(each)
    ]
    if not own:
        raise ProviderError(f"The plugin {name} has no provider in it.") from failure
    return _make(own[0], home, settings)
