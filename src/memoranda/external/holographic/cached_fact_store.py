"""The facts of a user on a server, with a cache on this node that can find them: words, links and vectors in SQLite.

The server has the truth. Before anything is read, the cache gets what has changed there since; a change is made in the
cache and on the server while the lock of the user is held. The cache is marked as unsure before its part of the change,
so that one whose process dies, or whose server does not commit, is filled again.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from memoranda.external.holographic.fact import UNKNOWN, Fact, Provenance
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.server_schema import COPIED
from memoranda.external.holographic.shared_facts import FactChanges, SharedFact, SharedFacts
from memoranda.storage.connection import Connection
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import make_private_directory

_LOCK_TIMEOUT = 10.0
_REVISION, _STORE = "server_revision", "server_store"
_UNSURE = -1
_NAMES = tuple(column.name for column in COPIED)
# Which values the words, links and vectors of a fact are derived from.
_CONTENT = ("content", "tags", "mirror_of")

_Answer = TypeVar("_Answer")


class CachedFactStore(FactStore):
    """The facts of one user, shared by the nodes of a server; `path` is the cache."""

    def __init__(self, path: Path, url: str, user: str, **options: Any) -> None:
        make_private_directory(path.parent)
        super().__init__(path, **options)
        self._lock_path = path.with_suffix(".lock")
        self._shared = SharedFacts(url, user)

    def close(self) -> None:
        self._shared.close()
        super().close()

    def refresh(self) -> None:
        """Take over what other nodes have changed."""
        with self._exclusive():
            revision, store = self._cache_state()
            changes = self._shared.read_after(revision)
            if changes.store != store or changes.revision < revision or revision == _UNSURE:
                self._fill(self._shared.read_after(_UNSURE))
            elif changes.revision != revision:
                self._apply(changes)

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
        """Change the cache, and write the facts that have changed to the server, under the lock of the user."""
        with self._exclusive():
            revision, store = self._cache_state()
            with self._shared.changing() as connection:
                changes = self._shared.read_changes(connection, revision)
                if changes.store != store or changes.revision < revision or revision == _UNSURE:
                    self._fill(self._shared.read_changes(connection, _UNSURE))
                else:
                    self._apply(changes)
                self._note_state(_UNSURE, changes.store)
                answer = change()
                numbers = changed(answer)
                written = changes.revision
                if numbers:
                    rows = self._read_rows(numbers, given_names, forget_names)
                    written = self._shared.write(connection, rows)
            self._note_state(written, changes.store)
            return answer

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Let no other process or thread of this node use the cache between two states."""
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
    """Facts of a file as a server stores them; one that is gone was removed."""
    statement = f"SELECT {', '.join(_NAMES)} FROM facts WHERE fact_id = ?"
    return [SharedFact(number, connection.execute(statement, (number,)).fetchone()) for number in fact_ids]


def forget_state(connection: Connection) -> None:
    """Make a cache a file of its own."""
    connection.execute("DELETE FROM state_meta WHERE key IN (?, ?)", (_REVISION, _STORE))


def read_state(connection: Connection) -> tuple[int, str]:
    """The last change that a cache has, and of which store; 0 and "" for a new one."""
    found = dict(
        connection.execute("SELECT key, value FROM state_meta WHERE key IN (?, ?)", (_REVISION, _STORE)).fetchall()
    )
    return int(found.get(_REVISION, 0)), str(found.get(_STORE, ""))


def _write_state(connection: Connection, revision: int, store: str) -> None:
    for key, value in ((_REVISION, str(revision)), (_STORE, store)):
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )


def _raise_counter(connection: Connection, highest: int) -> None:
    """Let the next fact get a higher number."""
    changed = connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'facts'", (highest,))
    if changed.rowcount == 0:
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('facts', ?)", (highest,))
