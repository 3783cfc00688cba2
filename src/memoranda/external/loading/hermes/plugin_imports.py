"""How plugins that were written for Hermes import its modules.

Such a plugin says `from agent.memory_provider import MemoryProvider`. A module named `agent` may be the host's own, so
nothing is put into `sys.modules`: each plugin's modules get their own builtins, whose `__import__` knows these names.
That covers imports at the top of a file and those inside a function that is called much later, in any thread, and no
other code. `modules` has the modules that are offered. Every other one is imported as usual, so a plugin can
import from the host as well.
"""

import builtins
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

PACKAGE = "memoranda_home_plugins"
MEMORY_PLUGINS = "plugins.memory"


class HermesModules:
    """What one plugin imports from Hermes: modules by name, and the plugin itself as `plugins.memory.<name>`."""

    def __init__(self, modules: Mapping[str, ModuleType], plugin: str, package: str) -> None:
        """`package` is the name under which the plugin is imported.

        A plugin in a folder `hermes-<name>`, which a bundled provider of its own name does not hide, imports itself by
        the name that it has in Hermes.
        """
        self._modules = modules
        self._roots = {name.partition(".")[0] for name in modules}
        self._own_name = f"{MEMORY_PLUGINS}.{plugin.removeprefix('hermes-').replace('-', '_')}"
        self._package = package
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
        if name == self._own_name or name.startswith(f"{self._own_name}."):
            return self._import_itself(name, fromlist or ())
        if name == MEMORY_PLUGINS and self._own_name.rpartition(".")[2] in (fromlist or ()):
            self._import_itself(self._own_name, ())
        offered = self._modules.get(name)
        if offered is None or not all(hasattr(offered, name) for name in fromlist or () if name != "*"):
            return self._import_from_host(name, globals, locals, fromlist or ())
        return offered if fromlist else self._modules[name.partition(".")[0]]

    def _import_itself(self, name: str, fromlist: Sequence[str]) -> Any:
        """Import a module of the plugin by the name that it has in Hermes."""
        module = builtins.__import__(self._package + name.removeprefix(self._own_name), None, None, fromlist or ("*",))
        setattr(self._modules[MEMORY_PLUGINS], self._own_name.rpartition(".")[2], sys.modules[self._package])
        return module if fromlist else self._modules[name.partition(".")[0]]

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
