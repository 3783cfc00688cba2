"""The modules of Hermes that its memory plugins import, with the names that they use; a plugin sees no others."""

import functools
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from memoranda.external.loading.hermes import config_schema, functions
from memoranda.external.loading.hermes.home import HermesHome
from memoranda.external.provider import MemoryProvider
from memoranda.safety.fence import sanitize_context

_log = logging.getLogger(__name__)


def hermes_modules(folder: Path, home: Path, settings_name: str = "") -> dict[str, ModuleType]:
    """The modules for the plugin in `folder`, by name; what they say of Hermes's home is true of `home`.

    `settings_name` is the name under which its settings are saved; by default that of its folder.
    """
    own = HermesHome(folder.name, home, settings_name)
    contents: dict[str, Mapping[str, Any]] = {
        "agent.memory_provider": {"MemoryProvider": MemoryProvider},
        "agent.memory_manager": {"sanitize_context": sanitize_context},
        "agent.message_content": _named(functions.flatten_message_text),
        "agent.file_safety": _named(own.raise_if_read_blocked),
        "agent.skill_commands": _named(functions.extract_user_instruction_from_skill_message),
        "agent.async_utils": _named(functions.safe_schedule_threadsafe),
        "tools.registry": {
            "registry": _HermesRegistry(folder.name),
            "tool_error": _tool_error,
            "tool_result": _tool_result,
        },
        "tools.lazy_deps": {
            "ensure": functools.partial(functions.ensure_packages, folder),
            "FeatureUnavailable": functions.FeatureUnavailable,
        },
        "utils": _named(functions.atomic_json_write, functions.env_var_enabled),
        "hermes_constants": {"get_hermes_home": lambda: home, "display_hermes_home": lambda: _display_path(home)},
        "hermes_state": _named(functions.apply_wal_with_fallback),
        "hermes_cli.config": {
            "load_config": own.load_config,
            "load_config_readonly": own.load_config,
            "save_config": own.save_config,
            "cfg_get": functions.cfg_get,
        },
        "hermes_cli.profiles": {
            "get_active_profile_name": own.profile_name,
            "list_profiles": own.list_profiles,
            "_get_default_hermes_home": own.default_home,
        },
        "hermes_cli.secret_prompt": _named(functions.masked_secret_prompt),
        "plugins.plugin_utils": _named(functions.SingletonSlot),
        "plugins.memory.config_schema": {name: getattr(config_schema, name) for name in config_schema.__all__},
        "plugins.memory.query_rewrite": _named(functions.rewrite_memory_query),
    }
    return _link({name: _module(name, attributes) for name, attributes in contents.items()})


def _named(*values: Any) -> dict[str, Any]:
    return {value.__name__: value for value in values}


def _module(name: str, attributes: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "Offered by Memoranda to a plugin that was written for Hermes.")
    vars(module).update(attributes)
    return module


def _link(modules: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Add the packages that contain the modules, each with its modules as attributes."""
    for name in list(modules):
        for package, child in _packages_of(name):
            modules.setdefault(package, _module(package, {}))
            setattr(modules[package], child, modules[f"{package}.{child}"])
    return modules


def _packages_of(name: str) -> Iterable[tuple[str, str]]:
    while "." in name:
        name, _, child = name.rpartition(".")
        yield name, child


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
