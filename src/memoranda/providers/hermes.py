"""Compatibility with plugins that were written for Hermes: the modules they import, and the arguments they expect.

Such a plugin says `from agent.memory_provider import MemoryProvider`. A module named `agent` may be the host's own, so
nothing is put into `sys.modules`: each plugin's modules get their own builtins, whose `__import__` knows these names.
That covers imports at the top of a file and those inside a function that is called much later, in any thread, and no
other code. A module that is not offered here is imported as usual, so a plugin can import from the host as well.
"""

import builtins
import importlib.abc
import importlib.machinery
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from memoranda.providers.arguments import BoundArguments, Parameters, bind_arguments
from memoranda.providers.provider import MemoryProvider

_log = logging.getLogger(__name__)

PACKAGE = "memoranda_home_plugins"


class HermesModules:
    """The modules for one plugin; their `get_hermes_home` returns the home that contains the plugin."""

    def __init__(self, plugin: str, home: Path) -> None:
        self._modules = _modules(plugin, home)
        self._roots = {name.partition(".")[0] for name in self._modules}
        self.builtins: dict[str, Any] = vars(builtins) | {"__import__": self._import}

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if level or name.partition(".")[0] not in self._roots:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        offered = self._modules.get(name)
        if offered is None or not all(hasattr(offered, name) for name in fromlist or () if name != "*"):
            return self._import_from_host(name, globals, locals, fromlist or ())
        return offered if fromlist else self._modules[name.partition(".")[0]]

    def _import_from_host(
        self,
        name: str,
        globals: Mapping[str, Any] | None,
        locals: Mapping[str, Any] | None,
        fromlist: Sequence[str],
    ) -> Any:
        try:
            return builtins.__import__(name, globals, locals, fromlist, 0)
        except ImportError as error:
            wanted = ", ".join([name, *fromlist])
            raise ImportError(
                f"it imports {wanted} of Hermes, which is not offered to plugins here ({error})", name=name
            ) from error


class PluginLoader(importlib.machinery.SourceFileLoader):
    """Runs a file of a plugin with the builtins that its package has."""

    def __init__(self, name: str, path: str, offer: HermesModules) -> None:
        super().__init__(name, path)
        self._offer = offer

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._offer.builtins
        super().exec_module(module)


class PluginFinder(importlib.abc.MetaPathFinder):
    """Finds the modules inside plugins, and nothing else."""

    def __init__(self) -> None:
        self.offers: dict[str, HermesModules] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}."):
            return None
        offer = self.offers.get(".".join(fullname.split(".")[:2]))
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and offer is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = PluginLoader(spec.loader.name, str(spec.loader.path), offer)
        return spec


def _modules(plugin: str, home: Path) -> dict[str, ModuleType]:
    provider = _module("agent.memory_provider", MemoryProvider=MemoryProvider)
    registry = _module(
        "tools.registry", registry=_HermesRegistry(plugin), tool_error=_tool_error, tool_result=_tool_result
    )
    constants = _module(
        "hermes_constants", get_hermes_home=lambda: home, display_hermes_home=lambda: _display_path(home)
    )
    return {
        "agent": _module("agent", memory_provider=provider),
        "agent.memory_provider": provider,
        "tools": _module("tools", registry=registry),
        "tools.registry": registry,
        "hermes_constants": constants,
    }


def _module(name: str, **attributes: Any) -> ModuleType:
    module = ModuleType(name, "Offered by Memoranda to a plugin that was written for Hermes.")
    vars(module).update(attributes)
    return module


class _HermesRegistry:
    """Replaces the tool registry of Hermes; providers report their tools themselves, so calls are only logged."""

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("_"):
            raise AttributeError(name)

        def ignore(*arguments: Any, **facts: Any) -> None:
            _log.warning(
                "The plugin %s calls %s of Hermes's tool registry, which is not supported here; the call is ignored.",
                self._plugin,
                name,
            )

        return ignore


def _tool_error(message: object, **more: Any) -> str:
    return json.dumps({"error": str(message), **more}, ensure_ascii=False, default=str)


def _tool_result(data: Any = None, **more: Any) -> str:
    return json.dumps(more if data is None else data, ensure_ascii=False, default=str)


def _display_path(home: Path) -> str:
    try:
        return f"~/{home.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(home)


def bind_hermes_arguments(parameters: Parameters, args: Mapping[str, Any], facts: Mapping[str, Any]) -> BoundArguments:
    """Bind arguments for a provider that may predate `metadata`.

    `metadata` is passed by name; else in the next free position, whatever that parameter is called; and its values also
    go to parameters of the same names, because older hooks accepted `session_id` and others one by one.
    """
    bound = bind_arguments(parameters, args, facts)
    metadata = facts.get("metadata")
    if not isinstance(metadata, dict):
        return bound
    filled = set(parameters.positional[: len(bound.positional)])
    spread = parameters.named & metadata.keys() - filled - bound.named.keys()
    named = bound.named | {name: metadata[name] for name in spread}
    if "metadata" in named:
        return BoundArguments(bound.positional, named, bound.dropped)
    free = [name for name in parameters.positional[len(bound.positional) :] if name not in named]
    if not free:
        return BoundArguments(bound.positional, named, (*bound.dropped, "metadata"))
    if free[0] in parameters.named:
        return BoundArguments(bound.positional, named | {free[0]: metadata}, bound.dropped)
    return BoundArguments((*bound.positional, metadata), named, bound.dropped)
