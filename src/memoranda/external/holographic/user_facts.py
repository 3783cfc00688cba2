"""The facts of users without a provider: read and written by other parts; and caches of forgotten users deleted."""

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from memoranda.errors import LockTimeoutError
from memoranda.external.holographic.fact_store import FactStore, read_state
from memoranda.external.holographic.shared_facts import (
    CACHE,
    OF_HOME,
    SharedFacts,
    facts_database,
    last_removals,
    name_of_store,
)
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.home import decode_user_id, remove_file

_log = logging.getLogger(__name__)

_SWEEP_SECONDS = 600.0
_MAX_SWEPT = 1_000
_swept: dict[tuple[Path, str], float] = {}

TEXTS = ("content", "category", "tags", "session_id", "message", "written_by", "mirror_of")
NUMBERS = ("trust_score", "helpful_count", "created_at", "updated_at")
_COLUMNS = (*TEXTS, *NUMBERS)


def sweep_caches(home: Path, server_url: str = "") -> None:
    """Delete the caches of users who were forgotten, or lost facts, elsewhere; at most every ten minutes.

    A user who never comes back would otherwise leave the text of removed facts on this machine. A cache without facts
    is one that another process is creating.
    """
    now = time.monotonic()
    if now < _swept.get((home, server_url), 0.0):
        return
    _swept[home, server_url] = now + _SWEEP_SECONDS
    caches = {user_of(path): path for path in sorted((home / CACHE).glob("holographic*.db"))[:_MAX_SWEPT]}
    known = {user: path for user, path in caches.items() if user is not None}
    # Read before the rows, so that what is added meanwhile does not make a cache look outdated.
    revisions = {user: _state_of(path)[0] for user, path in known.items()}
    removals = last_removals(home, list(known), server_url) if known else {}
    for user, path in known.items():
        outdated = revisions[user] and (user not in removals or revisions[user] < removals[user])
        if outdated and (server_url or not lost_store(home, path)):
            delete_cache(path)


def lost_store(home: Path, path: Path) -> str:
    """The name of the `home.db` that a cache was filled from, if the home has another one now; otherwise ""."""
    _, store = _state_of(path)
    return store if store.startswith(OF_HOME) and store != name_of_store(home) else ""


def delete_cache(path: Path) -> None:
    """Delete a cache, unless a process is using it at this moment."""
    try:
        with FileLock(path.with_suffix(".lock"), 0.0):
            remove_file(path)
    except LockTimeoutError as error:
        _log.info("%s is in use, and is cleaned by its user: %s", path.name, error)


def user_of(path: Path) -> str | None:
    return "" if path.stem == "holographic" else decode_user_id(path.stem.removeprefix("holographic-"))


def _state_of(path: Path) -> tuple[int, str]:
    """The last change that a cache has, and of which store; 0 and "" for a new one, -1 and "" for a damaged one."""
    try:
        with closing(sqlite3.connect(path, timeout=1.0)) as connection:
            return read_state(connection)
    except sqlite3.OperationalError:
        return 0, ""
    except sqlite3.Error:
        return -1, ""


@contextmanager
def stored_facts(home: Path, user: str | None, server_url: str = "") -> Iterator[FactStore | None]:
    """Opens the facts of a user, None for the home's owner; yields None if there are none.

    `server_url` names the server that has them, if they are not in the home.
    """
    if not has_facts(home, user or "", server_url):
        yield None
        return
    with closing(FactStore(home, user or "", server_url)) as store:
        store.refresh()
        yield store


def has_facts(home: Path, user: str, server_url: str = "") -> bool:
    """Whether a user has facts; creates nothing."""
    if not facts_database(home, server_url).exists():
        return False
    with closing(SharedFacts(home, user, server_url)) as shared:
        return shared.count() > 0


def read_facts(store: FactStore) -> dict[str, dict[str, Any]]:
    """All facts by their keys, without what each machine has of its own; `entities` are names that a writer gave."""
    return {
        fact.values["content_key"]: {name: fact.values[name] for name in _COLUMNS} | {"entities": fact.given_names}
        for fact in store.all_rows()
        if fact.values is not None
    }


def put_fact(store: FactStore, key: str, state: Mapping[str, Any]) -> None:
    """Add a fact, or give the one with this key these values; raises FactError if it would get another key."""
    store.put(key, {name: state[name] for name in _COLUMNS}, state["entities"])


def remove_fact(store: FactStore, key: str) -> None:
    """Remove the fact with a key, with all that it leaves in the files."""
    store.refresh()
    with store.database.reading() as connection:
        row = connection.execute("SELECT fact_id FROM facts WHERE content_key = ?", (key,)).fetchone()
    if row is not None:
        store.remove(row[0])
        store.erase_removed()
