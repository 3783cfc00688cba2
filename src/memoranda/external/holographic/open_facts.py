"""Opens the facts of a user: in a file of the home, or on a server with a cache in the home."""

import logging
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from memoranda.errors import LockTimeoutError
from memoranda.external.holographic.fact_store import FactStore
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.home import decode_user_id, encode_user_id

_log = logging.getLogger(__name__)

DATABASE = "holographic.db"
CACHE = "holographic.cache"
"""The directory of the caches, which nothing but time is lost with."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_SWEEP_SECONDS = 600.0
_MAX_SWEPT = 1_000
_swept: dict[tuple[Path, str], float] = {}


def database_name(user: str) -> str:
    """The file with the facts of a user; "" is the home's owner."""
    return f"holographic-{encode_user_id(user)}.db" if user else DATABASE


def facts_path(home: Path, user: str, server_url: str = "") -> Path:
    """The file with the facts of a user, or the cache of those on a server."""
    return (home / CACHE if server_url else home) / database_name(user)


def open_facts(home: Path, user: str, server_url: str = "", **options: Any) -> FactStore:
    """The facts of a user; those on a server are up to date after `refresh`."""
    path = facts_path(home, user, server_url)
    if not server_url:
        return FactStore(path, **options)
    # Needs psycopg.
    from memoranda.external.holographic.cached_fact_store import CachedFactStore  # noqa: PLC0415

    return CachedFactStore(path, server_url, user, **options)


def sweep_caches(home: Path, server_url: str) -> None:
    """Delete the caches of users who were forgotten, or lost facts, through another node; at most every ten minutes.

    A user who never comes back would otherwise leave the text of removed facts on this node.
    """
    now = time.monotonic()
    if now < _swept.get((home, server_url), 0.0):
        return
    _swept[home, server_url] = now + _SWEEP_SECONDS
    from memoranda.external.holographic.shared_facts import last_removals  # noqa: PLC0415

    caches = {_user_of(path): path for path in sorted((home / CACHE).glob("holographic*.db"))[:_MAX_SWEPT]}
    known = {user: path for user, path in caches.items() if user is not None}
    removals = last_removals(server_url, list(known)) if known else {}
    for user, path in known.items():
        if user not in removals or _revision_of(path) < removals[user]:
            delete_cache(path)


def delete_cache(path: Path) -> None:
    """Delete a cache, unless a process is using it at this moment."""
    try:
        with FileLock(path.with_suffix(".lock"), 0.0):
            for ending in _SIDE_FILES:
                with suppress(FileNotFoundError):
                    path.with_name(path.name + ending).unlink()
    except LockTimeoutError as error:
        _log.info("%s is in use, and is cleaned by its user: %s", path.name, error)


def _user_of(path: Path) -> str | None:
    return "" if path.name == DATABASE else decode_user_id(path.stem.removeprefix("holographic-"))


def _revision_of(path: Path) -> int:
    """The last change that a cache has; 0 if that cannot be read."""
    from memoranda.external.holographic.cached_fact_store import read_state  # noqa: PLC0415

    try:
        with closing(sqlite3.connect(path, timeout=1.0)) as connection:
            return read_state(connection)[0]
    except sqlite3.Error:
        return 0
