"""The facts of one user: rows in `home.db` or on a server, and a cache on this machine that can find them.

A change takes the lock of the user, so the numbers follow the order of commits, and a node that asks for the rows after
a number misses none. A removed fact keeps its row without its content, so that every node removes it, too.

The rows are the truth. Before anything is read, the cache gets what has changed there since; a change is made in the
cache and in the rows while the lock of the user is held. The cache is marked as unsure before its part of the change,
so that one whose process dies, or whose rows are not committed, is filled again. A damaged cache is replaced.
"""

import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memoranda.errors import CorruptStoreError
from memoranda.external.holographic.fact_store import UNKNOWN, Fact, FactError, FactStore, Provenance
from memoranda.external.holographic.schema import COPIED, SCHEMA, next_revision, removed_values
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.durable_files import make_private_directory
from memoranda.support.home import encode_user_id, remove_file

_log = logging.getLogger(__name__)

CACHE = "holographic.cache"
"""The directory of the caches, which nothing but time is lost with."""
_NAMES = tuple(column.name for column in COPIED)
_ROW = f"fact_id, removed, given_names, {', '.join(_NAMES)}"

_LOCK_TIMEOUT = 10.0
_REVISION, _STORE = "server_revision", "server_store"
_UNSURE = -1
# Which values the words, links and vectors of a fact are derived from.
_CONTENT = ("content", "tags", "mirror_of")

_Answer = TypeVar("_Answer")


def cache_path(home: Path, user: str) -> Path:
    """The cache with the facts of a user; "" is the home's owner."""
    return home / CACHE / (f"holographic-{encode_user_id(user)}.db" if user else "holographic.db")


def facts_database(home: Path, server_url: str = "") -> HomeDatabase:
    """The rows of facts: in `home.db`, or on the server of all nodes."""
    return HomeDatabase(home, SCHEMA, server_url=server_url)


class SharedFact(NamedTuple):
    """A row: the values of the columns in `COPIED`, or None if the fact was removed."""

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

    def __init__(self, home: Path, user: str, server_url: str = "") -> None:
        self._database = facts_database(home, server_url)
        self._engine: Engine = self._database.open()
        self._user = user

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
            yield connection

    def read_after(self, revision: int) -> FactChanges:
        """What has changed after a change."""
        with self._engine.acting_for(self._user or None).reading() as connection:
            return self.read_changes(connection, revision)

    def read_changes(self, connection: Connection, revision: int) -> FactChanges:
        """What has changed after a change; everything if the cache is ahead, because a backup was restored."""
        row = connection.execute("SELECT revision FROM fact_revisions WHERE user_id = ?", (self._user,)).fetchone()
        current = int(row[0]) if row else 0
        name = read_meta(connection, "store_id") or self._engine.location
        if revision == current:
            return FactChanges([], current, name)
        rows = connection.execute(
            f"SELECT {_ROW} FROM shared_facts WHERE user_id = ? AND revision > ? ORDER BY fact_id",
            (self._user, revision if 0 <= revision < current else 0),
        ).fetchall()
        return FactChanges([_read_row(row) for row in rows], current, name)

    def write(self, connection: Connection, facts: Sequence[SharedFact]) -> int:
        """Write facts as one change, and return its number."""
        removal = any(fact.values is None for fact in facts)
        revision = next_revision(connection, self._user, removal=removal)
        for fact in facts:
            self._write_fact(connection, fact, revision)
        return revision

    def count_retrieved(self, fact_ids: Collection[int]) -> None:
        """Count a retrieval; the nodes learn the count with the next change of the fact, because it decides nothing."""
        condition, values = self._engine.dialect.one_of("fact_id", list(fact_ids))
        with self._engine.acting_for(self._user or None).writing() as connection:
            connection.execute(
                f"UPDATE shared_facts SET retrieval_count = retrieval_count + 1 WHERE user_id = ? AND {condition}",
                (self._user, *values),
            )

    def _write_fact(self, connection: Connection, fact: SharedFact, revision: int) -> None:
        values = fact.values or removed_values(fact.fact_id)
        row = {"user_id": self._user, "fact_id": fact.fact_id, "revision": revision,
               "removed": int(fact.values is None), **dict(zip(_NAMES, values, strict=True))}  # fmt: skip
        if fact.values is None or fact.forget_names:
            row["given_names"] = ""
        elif fact.given_names is not None:
            row["given_names"] = json.dumps(fact.given_names, ensure_ascii=False)
        changed = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("user_id", "fact_id"))
        connection.execute(
            f"INSERT INTO shared_facts ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
            f" ON CONFLICT (user_id, fact_id) DO UPDATE SET {changed}",
            list(row.values()),
        )


def last_removals(home: Path, users: Sequence[str], server_url: str = "") -> dict[str, int]:
    """For each of these users that has facts: the number of the last change that removed one."""
    with (
        closing(facts_database(home, server_url)) as database,
        database.open().acting_for(None, everyone=True).reading() as connection,
    ):
        condition, values = database.open().dialect.one_of("user_id", users)
        rows = connection.execute(f"SELECT user_id, last_removal FROM fact_revisions WHERE {condition}", values)
        return {user: int(number) for user, number in rows}


def _read_row(row: Sequence[Any]) -> SharedFact:
    fact_id, removed, names, *values = row
    given = json.loads(names) if names else None
    return SharedFact(fact_id, None if removed else tuple(values), given)


class CachedFactStore(FactStore):
    """The facts of one user in a home, or on the server that all its nodes share."""

    def __init__(self, home: Path, user: str, server_url: str = "", **options: Any) -> None:
        path = cache_path(home, user)
        make_private_directory(path.parent)
        self._lock_path = path.with_suffix(".lock")
        self._shared = SharedFacts(home, user, server_url)
        try:
            self._open_cache(path, options)
        except BaseException:
            self._shared.close()
            raise

    def close(self) -> None:
        self._shared.close()
        super().close()

    def refresh(self) -> None:
        """Take over what other processes and nodes have changed."""
        if self.database.read_only or self._is_current():
            return
        with self._exclusive():
            self._catch_up()

    def erase_removed(self) -> bool:
        erased = self._shared.erase_removed()
        return super().erase_removed() and erased

    def put(self, key: str, values: Mapping[str, Any], entities: Sequence[str] | None) -> None:
        """Add a fact, or give the one with this key these values of columns; raises FactError for another key."""

        def change() -> int:
            fact, is_new = super(CachedFactStore, self).add(
                values["content"], category=values["category"], entities=entities
            )
            with self.database.writing() as connection:
                (stored,) = connection.execute(
                    "SELECT content_key FROM facts WHERE fact_id = ?", (fact.fact_id,)
                ).fetchone()
                if stored == key:
                    assignments = ", ".join(f"{name} = ?" for name in values)
                    connection.execute(
                        f"UPDATE facts SET {assignments} WHERE fact_id = ?", (*values.values(), fact.fact_id)
                    )
            if stored != key:
                if is_new:
                    super(CachedFactStore, self).remove(fact.fact_id)
                raise FactError("It contains a secret, and is not stored.")
            # Its words contain its tags, and entries about the user are linked to the user.
            self.relink(fact.fact_id, entities)
            return fact.fact_id

        self._change(change, lambda fact_id: [fact_id], entities, forget_names=entities is None)

    def add(
        self,
        content: str,
        *,
        category: str = "general",
        tags: Iterable[str] = (),
        entities: Sequence[str] | None = None,
        provenance: Provenance = UNKNOWN,
        mirror_of: str = "",
    ) -> tuple[Fact, bool]:
        def change() -> tuple[Fact, bool]:
            return super(CachedFactStore, self).add(
                content, category=category, tags=tags, entities=entities, provenance=provenance, mirror_of=mirror_of
            )

        return self._change(change, lambda answer: [answer[0].fact_id] if answer[1] else [], entities)

    def update(
        self,
        fact_id: int,
        *,
        content: str | None = None,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        entities: Sequence[str] | None = None,
        trust_delta: float = 0.0,
    ) -> Fact:
        def change() -> Fact:
            return super(CachedFactStore, self).update(
                fact_id, content=content, category=category, tags=tags, entities=entities, trust_delta=trust_delta
            )

        forget_names = content is not None and entities is None
        return self._change(change, lambda fact: [fact_id], entities, forget_names=forget_names)

    def remove(self, fact_id: int) -> bool:
        return self._change(
            lambda: super(CachedFactStore, self).remove(fact_id), lambda found: [fact_id] if found else []
        )

    def rate(self, fact_id: int, helpful: bool) -> tuple[float, Fact]:
        return self._change(lambda: super(CachedFactStore, self).rate(fact_id, helpful), lambda answer: [fact_id])

    def count_retrieved(self, fact_ids: Iterable[int]) -> None:
        numbers = list(fact_ids)
        if numbers:
            self._shared.count_retrieved(numbers)
            super().count_retrieved(numbers)

    def _change(
        self,
        change: Callable[[], _Answer],
        changed: Callable[[_Answer], list[int]],
        given_names: Sequence[str] | None = None,
        *,
        forget_names: bool = False,
    ) -> _Answer:
        """Change the cache, and write the facts that have changed to their rows, under the lock of the user."""
        with self._exclusive():
            # First without a transaction, in which all that the home writes would wait for a cache that is filled.
            self._catch_up()
            revision, _ = self._cache_state()
            with self._shared.changing() as connection:
                changes = self._shared.read_changes(connection, revision)
                if changes.revision != revision:
                    self._apply(changes)
                self._note_state(_UNSURE, changes.store)
                try:
                    answer = change()
                except FactError:
                    # The request was refused, and has changed nothing.
                    self._note_state(changes.revision, changes.store)
                    raise
                numbers = changed(answer)
                written = changes.revision
                if numbers:
                    rows = self._read_rows(numbers, given_names, forget_names)
                    written = self._shared.write(connection, rows)
            self._note_state(written, changes.store)
            return answer

    def _open_cache(self, path: Path, options: Mapping[str, Any]) -> None:
        try:
            super().__init__(path, **options)
        except CorruptStoreError as error:
            _log.warning("The cache of facts is damaged, and filled again: %s", error)
            with self._exclusive():
                remove_file(path)
            super().__init__(path, **options)

    def _is_current(self) -> bool:
        revision, store = self._cache_state()
        changes = self._shared.read_after(revision)
        return changes.store == store and changes.revision == revision

    def _catch_up(self) -> None:
        revision, store = self._cache_state()
        changes = self._shared.read_after(revision)
        if changes.store != store or changes.revision < revision or revision == _UNSURE:
            self._fill(self._shared.read_after(_UNSURE))
        elif changes.revision != revision:
            self._apply(changes)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let no other process or thread of this machine use the cache between two states."""
        with FileLock(self._lock_path, _LOCK_TIMEOUT):
            yield

    def _fill(self, changes: FactChanges) -> None:
        """Fill the cache with all facts, after it was found to be another store's, or unsure."""
        wanted = {fact.fact_id for fact in changes.facts if fact.values is not None}
        with self.database.reading() as connection:
            known = [number for (number,) in connection.execute("SELECT fact_id FROM facts")]
        gone = [SharedFact(number, None) for number in known if number not in wanted]
        self._apply(changes._replace(facts=[*gone, *changes.facts]))

    def _apply(self, changes: FactChanges) -> None:
        for fact in changes.facts:
            if fact.values is None:
                super().remove(fact.fact_id)
        with self.database.writing() as connection:
            present = [fact for fact in changes.facts if fact.values is not None]
            for fact in present:
                # Facts may have exchanged their texts, which are unique.
                connection.execute(
                    "UPDATE facts SET content_key = 'moving:' || fact_id WHERE fact_id = ?", (fact.fact_id,)
                )
            for fact in present:
                self._apply_fact(connection, fact)
            if changes.facts:
                # A number is never used again, also for a fact that this cache has never had.
                highest = max(fact.fact_id for fact in changes.facts)
                _raise_counter(connection, highest)
            _write_state(connection, changes.revision, changes.store)

    def _apply_fact(self, connection: sqlite3.Connection, fact: SharedFact) -> None:
        assert fact.values is not None
        values = dict(zip(_NAMES, fact.values, strict=True))
        before = connection.execute(
            f"SELECT {', '.join(_CONTENT)} FROM facts WHERE fact_id = ?", (fact.fact_id,)
        ).fetchone()
        changed = ", ".join(f"{name} = excluded.{name}" for name in _NAMES)
        connection.execute(
            f"INSERT INTO facts (fact_id, {', '.join(_NAMES)}) VALUES (?{', ?' * len(_NAMES)})"
            f" ON CONFLICT (fact_id) DO UPDATE SET {changed}",
            (fact.fact_id, *fact.values),
        )
        if fact.given_names is not None or before != tuple(values[name] for name in _CONTENT):
            self._write_derived(connection, fact.fact_id, fact.given_names)

    def _read_rows(
        self, fact_ids: list[int], given_names: Sequence[str] | None, forget_names: bool
    ) -> list[SharedFact]:
        """The facts as the cache has them; one that is gone was removed."""
        names = None if given_names is None else list(given_names)
        with self.database.reading() as connection:
            rows = read_rows(connection, fact_ids)
        return [row._replace(given_names=names, forget_names=forget_names) for row in rows]

    def _cache_state(self) -> tuple[int, str]:
        with self.database.reading() as connection:
            return read_state(connection)

    def _note_state(self, revision: int, store: str) -> None:
        with self.database.writing() as connection:
            _write_state(connection, revision, store)


def read_rows(connection: Connection, fact_ids: Iterable[int]) -> list[SharedFact]:
    """Facts of a cache as their rows have them; one that is gone was removed."""
    statement = f"SELECT {', '.join(_NAMES)} FROM facts WHERE fact_id = ?"
    return [SharedFact(number, connection.execute(statement, (number,)).fetchone()) for number in fact_ids]


def read_state(connection: Connection) -> tuple[int, str]:
    """The last change that a cache has, and of which store; 0 and "" for a new one."""
    return int(read_meta(connection, _REVISION) or 0), read_meta(connection, _STORE) or ""


def _write_state(connection: Connection, revision: int, store: str) -> None:
    for key, value in ((_REVISION, str(revision)), (_STORE, store)):
        write_meta(connection, key, value)


def _raise_counter(connection: Connection, highest: int) -> None:
    """Let the next fact get a higher number."""
    changed = connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'facts'", (highest,))
    if changed.rowcount == 0:
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('facts', ?)", (highest,))
