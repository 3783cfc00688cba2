"""The modules of Hermes that its memory plugins import, with the names that they use; a plugin sees no others."""

import asyncio
import concurrent.futures
import functools
import getpass
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from memoranda.external.loading.discovery import missing_packages, read_plugin
from memoranda.external.loading.hermes import config_schema
from memoranda.external.loading.hermes.home import HermesHome
from memoranda.external.loading.plugin_variables import read_variable
from memoranda.external.message_text import plain_text
from memoranda.external.provider import MemoryProvider
from memoranda.safety.fence import sanitize_context
from memoranda.support.durable_files import make_private_directory, write_private

_log = logging.getLogger(__name__)

_YES = {"1", "true", "yes", "on"}


def hermes_modules(folder: Path, home: Path, settings_name: str = "") -> dict[str, ModuleType]:
    """The modules for the plugin in `folder`, by name; what they say of Hermes's home is true of `home`.

    `settings_name` is the name under which its settings are saved; by default that of its folder.
    """
    own = HermesHome(folder.name, home, settings_name)
    contents: dict[str, Mapping[str, Any]] = {
        "agent.memory_provider": {"MemoryProvider": MemoryProvider},
        "agent.memory_manager": {"sanitize_context": sanitize_context},
        "agent.message_content": _named(flatten_message_text),
        "agent.file_safety": _named(own.raise_if_read_blocked),
        "agent.skill_commands": _named(extract_user_instruction_from_skill_message),
        "agent.async_utils": _named(safe_schedule_threadsafe),
        "tools.registry": {
            "registry": _HermesRegistry(folder.name),
            "tool_error": _tool_error,
            "tool_result": _tool_result,
        },
        "tools.lazy_deps": {
            "ensure": functools.partial(ensure_packages, folder),
            "FeatureUnavailable": FeatureUnavailable,
        },
        "utils": _named(atomic_json_write, env_var_enabled),
        "hermes_constants": {"get_hermes_home": lambda: home, "display_hermes_home": lambda: _display_path(home)},
        "hermes_state": _named(apply_wal_with_fallback),
        "hermes_cli.config": {
            "load_config": own.load_config,
            "load_config_readonly": own.load_config,
            "save_config": own.save_config,
            "cfg_get": cfg_get,
        },
        "hermes_cli.profiles": {
            "get_active_profile_name": own.profile_name,
            "list_profiles": own.list_profiles,
            "_get_default_hermes_home": own.default_home,
        },
        "hermes_cli.secret_prompt": _named(masked_secret_prompt),
        "plugins.plugin_utils": _named(SingletonSlot),
        "plugins.memory.config_schema": {name: getattr(config_schema, name) for name in config_schema.__all__},
        "plugins.memory.query_rewrite": _named(rewrite_memory_query),
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


class FeatureUnavailable(RuntimeError):
    """A package that a plugin needs is not installed."""


def ensure_packages(folder: Path, feature: str, **options: Any) -> None:
    """Raise FeatureUnavailable when a package of the plugin's manifest is missing; nothing is ever installed."""
    found = read_plugin(folder)
    missing = missing_packages(found) if found else []
    if missing:
        raise FeatureUnavailable(f"{feature} needs packages that are not installed: pip install {' '.join(missing)}")


def flatten_message_text(content: object, *arguments: Any, **options: Any) -> str:
    """The text of a message's content, whose other parts are skipped."""
    return plain_text(content)


def extract_user_instruction_from_skill_message(content: object) -> str | None:
    """The text of a user's message; Memoranda adds no skills to it that would have to be removed."""
    return None if content is None else plain_text(content)


def rewrite_memory_query(query: str, **options: Any) -> str:
    """The query as it is: rewriting it would need a model, which nothing here calls without being asked to."""
    return query


def atomic_json_write(path: str | Path, data: Any, *, indent: int = 2, **options: Any) -> None:
    """Replace a JSON file atomically; only its owner can read it, whatever `mode` says.

    Other options are those of `json.dumps`.
    """
    options.pop("mode", None)
    # A link stays a link: what it points to is replaced.
    target = Path(path).expanduser().resolve()
    if not target.parent.is_dir():
        make_private_directory(target.parent)
    write_private(target, json.dumps(data, indent=indent, **{"ensure_ascii": False, **options}).encode())


def env_var_enabled(name: str, default: str = "") -> bool:
    """Whether a variable of the plugin has a value that means yes."""
    value = read_variable(name)
    return (default if value is None else value).strip().lower() in _YES


def cfg_get(config: Any, *keys: str, default: Any = None) -> Any:
    """The value below nested keys, or the default when one of them is missing."""
    for key in keys:
        if not isinstance(config, Mapping) or key not in config:
            return default
        config = config[key]
    return default if config is None else config


def masked_secret_prompt(prompt: str = "", **options: Any) -> str:
    """Ask for a secret without showing it."""
    return getpass.getpass(prompt)


def apply_wal_with_fallback(connection: sqlite3.Connection, **options: Any) -> str:
    """Switch a database to a write-ahead log, or to a rollback journal where the file system allows no other."""
    try:
        return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
    except sqlite3.OperationalError:
        return str(connection.execute("PRAGMA journal_mode=DELETE").fetchone()[0])


def safe_schedule_threadsafe(
    coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop | None, **options: Any
) -> "concurrent.futures.Future[Any] | None":
    """Run a coroutine in another thread's event loop; None when that loop cannot take it, and it is closed then."""
    if loop is None or loop.is_closed():
        coroutine.close()
        return None
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        coroutine.close()
        return None


class SingletonSlot:
    """Contains one object that is made when it is first needed, once, even if several threads ask for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._value: Any = None

    def get(self, factory: Callable[[], Any]) -> Any:
        """Return the object; make it if there is none. When the factory raises, the slot stays empty."""
        with self._lock:
            if self._value is None:
                self._value = factory()
            return self._value

    def peek(self) -> Any:
        """Return the object without making it: None if there is none."""
        return self._value

    def reset(self) -> None:
        with self._lock:
            self._value = None
