"""The facts of one user as rows: in `home.db`, or on a server that all its nodes share.

A change takes the lock of the user, so the numbers follow the order of commits, and a cache that asks for the rows
after a number misses none. A removed fact keeps its row without its content, so that every cache removes it, too.
"""

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.external.holographic.schema import COPIED, SCHEMA, next_revision, removed_values
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.lazy_database import opened_for_everyone
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.home import encode_user_id

CACHE = "holographic.cache"
"""The directory of the caches, which nothing but time is lost with."""
EVERYTHING = -1
OF_HOME = "home:"
"""What the name of the store begins with if it is a `home.db`; a new file gets another name with its first fact."""
_STORE_NAME = "facts.store"
NAMES = tuple(column.name for column in COPIED)
_ROW = f"fact_id, removed, given_names, {', '.join(NAMES)}"


def cache_path(home: Path, user: str) -> Path:
    """The cache with the facts of a user; "" is the home's owner."""
    return home / CACHE / (f"holographic-{encode_user_id(user)}.db" if user else "holographic.db")


def facts_database(home: Path, server_url: str = "") -> HomeDatabase:
    """The rows of facts: in `home.db`, or on the server of all nodes."""
    return HomeDatabase(home, SCHEMA, server_url=server_url)


class SharedFact(NamedTuple):
    """A row: the values of the columns `NAMES`, or None if the fact was removed."""

    fact_id: int
    values: Mapping[str, Any] | None
    given_names: Sequence[str] | None = None
    """What the writer named; None leaves what is stored."""
    forget_names: bool = False
    """The content has changed, so the names of the old one are not its names."""


class FactChanges(NamedTuple):
    """The rows that were written after a change, and the number of the last change."""

    facts: list[SharedFact]
    revision: int
    store: str
    """Which store has them: a cache of another one is worthless."""


class SharedFacts:
    """Reads and writes the rows of one user; '' is the home's owner."""

    def __init__(self, home: Path, user: str, server_url: str = "") -> None:
        self._database = facts_database(home, server_url)
        self._engine: Engine = self._database.open()
        self._user = user
        self.in_home = not server_url

    def close(self) -> None:
        self._database.close()

    def count(self) -> int:
        with self._engine.acting_for(self._user or None).reading() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM shared_facts WHERE user_id = ? AND removed = 0", (self._user,)
            ).fetchone()
        return int(count)

    def erase_removed(self) -> bool:
        """Overwrite what removed facts left in a file; False if a reader of another process still needs its log."""
        self._engine.release_space()
        return self._engine.shrink_log()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction in which no other node changes the facts of this user."""
        engine = self._engine.acting_for(self._user or None)
        with engine.writing() as connection:
            engine.lock_session(connection, f"facts:{self._user}")
            if self.in_home and read_meta(connection, _STORE_NAME) is None:
                write_meta(connection, _STORE_NAME, OF_HOME + secrets.token_hex(8))
            yield connection

    def read_after(self, revision: int) -> FactChanges:
        """What has changed after a change; everything if the cache is ahead, because a backup was restored."""
        with self._engine.acting_for(self._user or None).reading() as connection:
            row = connection.execute("SELECT revision FROM fact_revisions WHERE user_id = ?", (self._user,)).fetchone()
            current = int(row[0]) if row else 0
            name = read_meta(connection, _STORE_NAME if self.in_home else "store_id") or self._engine.location
            if revision == current:
                return FactChanges([], current, name)
            after = revision if 0 <= revision < current else 0
            return FactChanges(self._select(connection, "revision > ?", after), current, name)

    def find(self, connection: Connection, content_key: str) -> int | None:
        """The number of the fact with a text."""
        found = self._select(connection, "removed = 0 AND content_key = ?", content_key)
        return found[0].fact_id if found else None

    def get(self, connection: Connection, fact_id: int) -> Mapping[str, Any] | None:
        """The values of a fact; None if there is none."""
        found = self._select(connection, "fact_id = ?", fact_id)
        return found[0].values if found else None

    def next_number(self, connection: Connection) -> int:
        """The number of a new fact; none is used again."""
        (highest,) = connection.execute(
            "SELECT COALESCE(max(fact_id), 0) FROM shared_facts WHERE user_id = ?", (self._user,)
        ).fetchone()
        return int(highest) + 1

    def _select(self, connection: Connection, condition: str, value: object) -> list[SharedFact]:
        rows = connection.execute(
            f"SELECT {_ROW} FROM shared_facts WHERE user_id = ? AND {condition} ORDER BY fact_id", (self._user, value)
        ).fetchall()
        return [_read_row(row) for row in rows]

    def write(self, connection: Connection, fact: SharedFact) -> None:
        """Write a fact as one change."""
        is_removed = fact.values is None
        row = {"user_id": self._user, "fact_id": fact.fact_id,
               "revision": next_revision(connection, self._user, removal=is_removed), "removed": int(is_removed),
               **(fact.values or removed_values(fact.fact_id))}  # fmt: skip
        if is_removed or fact.forget_names:
            row["given_names"] = ""
        elif fact.given_names is not None:
            row["given_names"] = json.dumps(list(fact.given_names), ensure_ascii=False)
        changed = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("user_id", "fact_id"))
        connection.execute(
            f"INSERT INTO shared_facts ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            f" ON CONFLICT (user_id, fact_id) DO UPDATE SET {changed}",
            list(row.values()),
        )

    def count_retrieved(self, fact_ids: Collection[int]) -> None:
        """Count a retrieval; the nodes learn the count with the next change of the fact, because it decides nothing."""
        condition, values = self._engine.dialect.one_of("fact_id", list(fact_ids))
        with self._engine.acting_for(self._user or None).writing() as connection:
            connection.execute(
                f"UPDATE shared_facts SET retrieval_count = retrieval_count + 1 WHERE user_id = ? AND {condition}",
                (self._user, *values),
            )


def name_of_store(home: Path) -> str | None:
    """The name of the store that `home.db` is; None before its first fact."""
    with closing(facts_database(home)) as database:
        if not database.exists():
            return None
        with database.open().reading() as connection:
            return read_meta(connection, _STORE_NAME)


def last_removals(home: Path, users: Sequence[str], server_url: str = "") -> dict[str, int]:
    """For each of these users that has facts: the number of the last change that removed one."""
    with opened_for_everyone(facts_database(home, server_url)) as engine, engine.reading() as connection:
        condition, values = engine.dialect.one_of("user_id", users)
        rows = connection.execute(f"SELECT user_id, last_removal FROM fact_revisions WHERE {condition}", values)
        return {user: int(number) for user, number in rows}


def _read_row(row: Sequence[Any]) -> SharedFact:
    fact_id, removed, names, *values = row
    given = json.loads(names) if names else None
    return SharedFact(fact_id, None if removed else dict(zip(NAMES, values, strict=True)), given)
