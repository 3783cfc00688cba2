"""The functions of Hermes that its memory plugins call and that need no home."""

import asyncio
import concurrent.futures
import getpass
import json
import sqlite3
import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from memoranda.external.loading.dependencies import missing_packages
from memoranda.external.loading.discovery import read_plugin
from memoranda.external.loading.plugin_variables import read_variable
from memoranda.external.message_text import plain_text
from memoranda.support.durable_files import make_private_directory, write_private

_YES = {"1", "true", "yes", "on"}


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
        """Empty the slot."""
        with self._lock:
            self._value = None
