"""The facts of one user on a server: the rows that all nodes share, with a number for every change.

A change takes the lock of the user, so the numbers follow the order of commits, and a node that asks for the rows after
a number misses none. A removed fact keeps its row without its content, so that every node removes it, too.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from memoranda.external.holographic.server_schema import COPIED, SERVER_SCHEMA
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.lazy_database import open_server_engine

_NAMES = tuple(column.name for column in COPIED)
_ROW = f"fact_id, removed, given_names, {', '.join(_NAMES)}"


class SharedFact(NamedTuple):
    """A row: the values of the columns in `server_schema.COPIED`, or None if the fact was removed."""

    fact_id: int
    values: tuple[Any, ...] | None
    given_names: list[str] | None = None
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

    def __init__(self, url: str, user: str) -> None:
        self._engine: Engine = open_server_engine(url, SERVER_SCHEMA)
        self._user = user

    def close(self) -> None:
        self._engine.close()

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction in which no other node changes the facts of this user."""
        engine = self._engine.acting_for(self._user or None)
        with engine.writing() as connection:
            engine.lock_session(connection, f"facts:{self._user}")
            yield connection

    def read_after(self, revision: int) -> FactChanges:
        """What has changed after a change."""
        with self._engine.acting_for(self._user or None).reading() as connection:
            return self.read_changes(connection, revision)

    def read_changes(self, connection: Connection, revision: int) -> FactChanges:
        """What has changed after a change; everything if the cache is ahead, because a backup was restored."""
        row = connection.execute("SELECT revision FROM fact_revisions WHERE user_id = ?", (self._user,)).fetchone()
        store = connection.execute("SELECT value FROM state_meta WHERE key = 'store_id'").fetchone()
        current = int(row[0]) if row else 0
        name = str(store[0]) if store else self._engine.location
        if revision == current:
            return FactChanges([], current, name)
        rows = connection.execute(
            f"SELECT {_ROW} FROM shared_facts WHERE user_id = ? AND revision > ? ORDER BY fact_id",
            (self._user, revision if 0 <= revision < current else 0),
        ).fetchall()
        return FactChanges([_read_row(row) for row in rows], current, name)

    def write(self, connection: Connection, facts: Sequence[SharedFact]) -> int:
        """Write facts as one change, and return its number."""
        (revision,) = connection.execute(
            "INSERT INTO fact_revisions (user_id, revision) VALUES (?, 1)"
            " ON CONFLICT (user_id) DO UPDATE SET revision = fact_revisions.revision + 1 RETURNING revision",
            (self._user,),
        ).fetchone()
        for fact in facts:
            self._write_fact(connection, fact, revision)
        if any(fact.values is None for fact in facts):
            connection.execute("UPDATE fact_revisions SET last_removal = revision WHERE user_id = ?", (self._user,))
        return int(revision)

    def count_retrieved(self, fact_ids: Collection[int]) -> None:
        """Count a retrieval; the nodes learn the count with the next change of the fact, because it decides nothing."""
        condition, values = self._engine.dialect.one_of("fact_id", list(fact_ids))
        with self._engine.acting_for(self._user or None).writing() as connection:
            connection.execute(
                f"UPDATE shared_facts SET retrieval_count = retrieval_count + 1 WHERE user_id = ? AND {condition}",
                (self._user, *values),
            )

    def _write_fact(self, connection: Connection, fact: SharedFact, revision: int) -> None:
        values = fact.values or _removed_values(fact.fact_id)
        row = {"user_id": self._user, "fact_id": fact.fact_id, "revision": revision,
               "removed": int(fact.values is None), **dict(zip(_NAMES, values, strict=True))}  # fmt: skip
        if fact.values is None or fact.forget_names:
            row["given_names"] = ""
        elif fact.given_names is not None:
            row["given_names"] = json.dumps(fact.given_names)
        changed = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("user_id", "fact_id"))
        connection.execute(
            f"INSERT INTO shared_facts ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            f" ON CONFLICT (user_id, fact_id) DO UPDATE SET {changed}",
            list(row.values()),
        )


def count_facts(url: str, user: str) -> int:
    """How many facts a user has on a server."""
    with closing(open_server_engine(url, SERVER_SCHEMA)) as engine, engine.reading() as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM shared_facts WHERE user_id = ? AND removed = 0", (user,)
        ).fetchone()
    return int(count)


def users_with_facts(url: str) -> list[str]:
    """The users that have facts on a server; "" is the home's owner."""
    with closing(open_server_engine(url, SERVER_SCHEMA)) as engine, engine.reading() as connection:
        rows = connection.execute("SELECT DISTINCT user_id FROM shared_facts WHERE removed = 0 ORDER BY user_id")
        return [user for (user,) in rows]


def last_removals(url: str, users: Sequence[str]) -> dict[str, int]:
    """For each of these users that has facts on a server: the number of the last change that removed one."""
    with closing(open_server_engine(url, SERVER_SCHEMA)) as engine, engine.reading() as connection:
        condition, values = engine.dialect.one_of("user_id", users)
        rows = connection.execute(f"SELECT user_id, last_removal FROM fact_revisions WHERE {condition}", values)
        return {user: int(number) for user, number in rows}


def _removed_values(fact_id: int) -> tuple[Any, ...]:
    """A row without content; its key is unique among removed facts."""
    empty: dict[str, Any] = {"text": "", "real": 0.0, "integer": 0}
    return tuple(f"removed:{fact_id}" if column.name == "content_key" else empty[column.kind] for column in COPIED)


def _read_row(row: Sequence[Any]) -> SharedFact:
    fact_id, removed, names, *values = row
    given = json.loads(names) if names else None
    return SharedFact(fact_id, None if removed else tuple(values), given)
