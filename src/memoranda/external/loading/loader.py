"""Loads a discovered provider: imports its code, and no other code.

A plugin in the home may have been written for Hermes: it imports modules of Hermes by their names (see `hermes`), and
registers itself with a context. Both are provided, so that it works unchanged. What it registers besides a provider is
ignored, and the log says so.

`inspect_provider` loads one for a command, under the deadlines of a session; whatever the provider does (raise, hang,
return garbage) becomes a ProviderError.
"""

import hashlib
import importlib
import importlib.util
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.guarded_call import PendingCall
from memoranda.external.loading.discovery import DiscoveredProvider
from memoranda.external.loading.hermes.plugin_imports import PACKAGE, HermesModules, PluginFinder, PluginLoader
from memoranda.external.loading.setup import ConfigField, fields_of
from memoranda.external.provider import MemoryProvider, has_own
from memoranda.external.settings import ProviderSettings
from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)

_finder = PluginFinder()
_registry_lock = threading.Lock()
_import_locks: dict[str, threading.RLock] = {}


class PluginContext:
    """The `ctx` of a plugin's `register(ctx)`."""

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

        def ignore(*arguments: Any, **facts: Any) -> None:
            _log.warning(
                "The plugin %s calls %s, which Memoranda does not support; the call is ignored.", self._plugin, name
            )

        return ignore


def load(found: DiscoveredProvider, home: Path, settings: Mapping[str, Any] | None = None) -> MemoryProvider:
    """Import and construct a provider; raises ProviderError with the reason when that fails."""
    if found.problem:
        raise ProviderError(f"The provider {found.name} cannot be used: {found.problem}.")
    try:
        if found.origin == "home":
            return _from_module(_import_plugin(found, home), found.name, home, settings)
        return _construct(_import_class(found.reference), home, settings)
    except ProviderError:
        raise
    except (Exception, SystemExit) as error:
        # Third-party code runs here, and may raise anything.
        _log.debug("The provider %s could not be loaded.", found.name, exc_info=True)
        raise ProviderError(
            f"The provider {found.name} could not be loaded ({type(error).__name__}: {error})."
        ) from error


@dataclass(frozen=True, slots=True)
class PluginCommands:
    """The commands of a plugin's `cli.py`: `register` adds them to a parser, `handler` runs them."""

    register: Callable[[Any], Any]
    handler: Callable[[Any], Any] | None


def load_commands(found: DiscoveredProvider, home: Path) -> PluginCommands:
    """Load the commands of a plugin in the home; raises ProviderError when it has none."""
    if found.origin != "home" or not (Path(found.reference) / "cli.py").is_file():
        raise ProviderError(f"The provider {found.name} has no commands.")
    try:
        package = _import_plugin(found, home)
        module = importlib.import_module(f"{package.__name__}.cli")
        # Its name in the home, whatever it is chosen as.
        command = f"{Path(found.reference).name.replace('-', '_')}_command"
        return PluginCommands(module.register_cli, getattr(module, command, None))
    except (Exception, SystemExit) as error:
        raise ProviderError(f"The commands of {found.name} could not be loaded: {error}.") from error


def _import_class(reference: str) -> type[MemoryProvider]:
    module, _, attribute = reference.partition(":")
    found = importlib.import_module(module)
    for name in attribute.split(".") if attribute else []:
        found = getattr(found, name)
    if isinstance(found, ModuleType):
        raise ProviderError(f"{reference} does not name a class.")
    return found


def _construct(kind: Any, home: Path, settings: Mapping[str, Any] | None) -> MemoryProvider:
    """Construct a provider; pass `home` and `settings` if its constructor accepts them."""
    parameters = inspect.signature(kind).parameters
    available = {"home": home, "settings": settings}
    provider = kind(**{name: value for name, value in available.items() if name in parameters})
    if not isinstance(provider, MemoryProvider):
        raise ProviderError(f"{kind!r} is not a MemoryProvider.")
    return provider


def _import_plugin(found: DiscoveredProvider, home: Path) -> ModuleType:
    """Import a folder as a package under a private name, so that relative imports work and no other module is hidden.

    The first session imports it; it is imported again when one of its files has changed.
    """
    folder = Path(found.reference)
    with _registry_lock:
        if PACKAGE not in sys.modules:
            root = ModuleType(PACKAGE)
            root.__path__ = []
            sys.modules[PACKAGE] = root
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        import_lock = _import_locks.setdefault(str(folder), threading.RLock())
    # A lock per plugin: an import that never ends blocks no other plugin.
    with import_lock:
        name = f"{PACKAGE}.{folder.name.replace('-', '_')}_{_fingerprint(found)}"
        return sys.modules[name] if name in sys.modules else _execute(name, found, home)


def _fingerprint(found: DiscoveredProvider) -> str:
    """A hash of a plugin's name, which decides where its settings are, and of the paths and times of its files."""
    folder = Path(found.reference)
    files = sorted((str(file), file.stat().st_mtime_ns) for file in folder.glob("**/*.py"))
    return hashlib.sha256(repr((found.name, str(folder), files)).encode()).hexdigest()[:12]


def _execute(name: str, found: DiscoveredProvider, home: Path) -> ModuleType:
    # Most homes have no plugin, and need none of these modules.
    from memoranda.external.loading.hermes.modules import hermes_modules

    folder = Path(found.reference)
    offer = _finder.offers[name] = HermesModules(hermes_modules(folder, home, found.name), folder.name, name)
    file = str(folder / "__init__.py")
    spec = importlib.util.spec_from_file_location(
        name, file, loader=PluginLoader(name, file, offer), submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ProviderError(f"{folder} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_module(module: ModuleType, name: str, home: Path, settings: Mapping[str, Any] | None) -> MemoryProvider:
    """The provider that `register(ctx)` registers; else an instance of the first provider class in the module."""
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
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, MemoryProvider) and not inspect.isabstract(value)
    ]
    if not classes:
        raise ProviderError(f"The plugin {name} contains no provider.") from failure
    return _construct(classes[0], home, settings)


@dataclass(frozen=True, slots=True)
class Inspection:
    """A loaded provider, and the fields of its configuration schema."""

    provider: MemoryProvider
    fields: list[ConfigField]


def inspect_provider(
    found: DiscoveredProvider,
    home: Path,
    saved: Mapping[str, Any],
    export_secrets: Callable[[Collection[str]], Mapping[str, str]],
    limits: ProviderSettings,
) -> Inspection:
    """Load a provider, read its schema, and export its secrets to the environment. Raises ProviderError."""

    def load_and_describe() -> Inspection:
        provider = load(found, home, saved)
        fields = fields_of(provider)
        provider.receive_secrets(export_secrets([field.env_var for field in fields if field.env_var]))
        return Inspection(provider, fields)

    failure = f"The provider {found.name} cannot be used"
    inspection: Inspection = run_guarded(load_and_describe, failure, limits.start_seconds, "provider.start_seconds")
    return inspection


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a provider reports that it is available, and if not, what is missing, where the provider says so."""

    ready: bool
    reason: str = ""


def check_ready(provider: MemoryProvider, limits: ProviderSettings) -> Readiness:
    """Ask a provider whether it is available. Raises ProviderError when it fails to answer."""

    def ask() -> Readiness:
        if provider.is_available() is True:
            return Readiness(True)
        return Readiness(False, str(provider.explain_unavailable()) if has_own(provider, "explain_unavailable") else "")

    failure = "It does not say whether it is ready"
    readiness: Readiness = run_guarded(ask, failure, limits.call_seconds, "provider.call_seconds")
    return readiness


def run_guarded(call: Callable[[], Any], failure: str, timeout: float, setting: str = "") -> Any:
    """Run a provider's code in a thread and return its value; raises ProviderError, which begins with `failure`.

    `setting` is the name of the setting that holds the timeout, for the error.
    """
    result = PendingCall(call, "memoranda-inspect").wait(timeout)
    if result is None:
        remedy = f" 'memoranda config set {setting} SECONDS' allows more time." if setting else ""
        raise ProviderError(f"{failure}: no answer within {timeout:g} s.{remedy}")
    if not result.ok:
        reason = result.error if result.error.endswith((".", "…")) else f"{result.error}."
        raise ProviderError(reason if reason.startswith("The ") else f"{failure}: {reason}")
    return result.value
