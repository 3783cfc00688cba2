"""The facts of one user: opened in a file of the home or on a server, read without a provider, and copied elsewhere."""

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.external.holographic.fact_store import FactError, FactStore
from memoranda.external.holographic.shared_facts import (
    CachedFactStore,
    SharedFact,
    SharedFacts,
    forget_state,
    last_removals,
    read_rows,
    read_state,
)
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.orphaned_wal import database_exists
from memoranda.storage.sqlite.database import Connection
from memoranda.support.home import decode_user_id, encode_user_id

_log = logging.getLogger(__name__)

DATABASE = "holographic.db"
CACHE = "holographic.cache"
"""The directory of the caches, which nothing but time is lost with."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_SWEEP_SECONDS = 600.0
_MAX_SWEPT = 1_000
_swept: dict[tuple[Path, str], float] = {}

TEXTS = ("content", "category", "tags", "session_id", "message", "written_by", "mirror_of")
NUMBERS = ("trust_score", "helpful_count", "created_at", "updated_at")
_COLUMNS = (*TEXTS, *NUMBERS)

_EVERYTHING = -1


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
    return CachedFactStore(path, server_url, user, **options)


def sweep_caches(home: Path, server_url: str) -> None:
    """Delete the caches of users who were forgotten, or lost facts, through another node; at most every ten minutes.

    A user who never comes back would otherwise leave the text of removed facts on this node.
    """
    now = time.monotonic()
    if now < _swept.get((home, server_url), 0.0):
        return
    _swept[home, server_url] = now + _SWEEP_SECONDS
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
    try:
        with closing(sqlite3.connect(path, timeout=1.0)) as connection:
            return read_state(connection)[0]
    except sqlite3.Error:
        return 0


@contextmanager
def stored_facts(home: Path, user: str | None, server_url: str = "") -> Iterator[FactStore | None]:
    """Opens the facts of a user, None for the home's owner; yields None if there are none yet.

    `server_url` names the server that has them, if they are not in the home.
    """
    if not server_url and not database_exists(facts_path(home, user or "")):
        yield None
        return
    with closing(open_facts(home, user or "", server_url)) as store:
        store.refresh()
        yield store


def read_facts(store: FactStore) -> dict[str, dict[str, Any]]:
    """All facts by their keys, without what each machine has of its own; `entities` are names that a writer gave."""
    with store.database.reading() as connection:
        given = _given_names(connection)
        rows = connection.execute(
            f"SELECT fact_id, content_key, {', '.join(_COLUMNS)} FROM facts ORDER BY fact_id"
        ).fetchall()
    return {
        key: dict(zip(_COLUMNS, values, strict=True)) | {"entities": given.get(fact_id)}
        for fact_id, key, *values in rows
    }


def _given_names(connection: Connection) -> dict[int, list[str]]:
    """The names of the entities of facts whose writer named them; those of the others are found in the text."""
    rows = connection.execute(
        "SELECT fact_id, name, entity_type FROM fact_entities JOIN entities USING (entity_id) ORDER BY entity_id"
    ).fetchall()
    named = {fact_id for fact_id, _, kind in rows if kind == "given"}
    found: dict[int, list[str]] = {}
    for fact_id, name, _ in rows:
        if fact_id in named:
            found.setdefault(fact_id, []).append(name)
    return found


def put_fact(store: FactStore, key: str, state: Mapping[str, Any]) -> None:
    """Add a fact, or give the one with this key these values; raises FactError if it would get another key."""
    fact, is_new = store.add(state["content"], category=state["category"], entities=state["entities"])
    with store.database.writing() as connection:
        (stored,) = connection.execute("SELECT content_key FROM facts WHERE fact_id = ?", (fact.fact_id,)).fetchone()
        if stored == key:
            assignments = ", ".join(f"{name} = ?" for name in _COLUMNS)
            values = [state[name] for name in _COLUMNS]
            connection.execute(f"UPDATE facts SET {assignments} WHERE fact_id = ?", (*values, fact.fact_id))
    if stored != key:
        if is_new:
            store.remove(fact.fact_id)
        raise FactError("It contains a secret, and is not stored.")
    # Its words contain its tags, and entries about the user are linked to the user.
    store.relink(fact.fact_id, state["entities"])


def remove_fact(store: FactStore, key: str) -> None:
    """Remove the fact with a key, with all that it leaves in the file."""
    with store.database.reading() as connection:
        row = connection.execute("SELECT fact_id FROM facts WHERE content_key = ?", (key,)).fetchone()
    if row is not None:
        store.remove(row[0])
        store.erase_removed()


def export_facts(path: Path, url: str, user: str) -> int:
    """Copy the facts of a file to a server, and verify them; can be repeated. Returns how many facts there are."""
    with closing(FactStore(path)) as store, store.database.reading() as connection:
        numbers = [number for (number,) in connection.execute("SELECT fact_id FROM facts ORDER BY fact_id")]
        given = _given_names(connection)
        rows = [SharedFact(fact.fact_id, fact.values, given.get(fact.fact_id))
                for fact in read_rows(connection, numbers)]  # fmt: skip
    with closing(SharedFacts(url, user)) as shared:
        if rows:
            with shared.changing() as connection:
                shared.write(connection, rows)
        stored = [fact for fact in shared.read_after(_EVERYTHING).facts if fact.values is not None]
    if [fact[:2] for fact in stored] != [fact[:2] for fact in rows]:
        raise StorageError(f"The facts of {path.name} differ on the server. Was the file changed during the copy?")
    return len(rows)


def import_facts(url: str, user: str, path: Path) -> int:
    """Copy the facts of a server into a file; can be repeated. Returns how many facts there are."""
    with closing(CachedFactStore(path, url, user)) as store:
        store.refresh()
        with store.database.writing() as connection:
            forget_state(connection)
            (count,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    path.with_suffix(".lock").unlink(missing_ok=True)
    return int(count)
