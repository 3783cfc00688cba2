"""The directory of a fleet: which store has which shard, kept in the first store and read by every node.

Every store also has a table of the users who have moved away from it.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from threading import Lock

from memoranda.errors import ConfigError
from memoranda.home.shards.fences import install_fences
from memoranda.home.shards.placement import MAX_STORES, SHARDS, are_separate, last_ids, separate_ids, shard_of
from memoranda.storage.lazy_database import open_server_engine
from memoranda.storage.postgres.engine import PostgresEngine
from memoranda.storage.schema import Column, Schema, Table
from memoranda.storage.state_meta import read_meta
from memoranda.support.lazy_dataclass import dataclass

_STORES = Table(
    "stores",
    "The stores of a fleet; only the first store has rows here.",
    (
        Column("number", "integer", "NOT NULL UNIQUE", "The number of the store, from 0."),
        Column("store_id", "text", "NOT NULL", "The random id of its record, so that no other store gets its number."),
        Column("added_at", "real", "NOT NULL", "When it was added."),
    ),
)
_SHARDS = Table(
    "shards",
    "Which store has which shard; only the first store has rows here.",
    (
        Column("shard", "integer", "NOT NULL UNIQUE", "The number of the shard, 0 to 63."),
        Column("store", "integer", "NOT NULL", "The number of its store."),
        Column("moving_to", "integer", "", "The number of the store that it is moving to, if it is."),
    ),
)
_MOVED_USERS = Table(
    "moved_users",
    "Users whose rows here are only a copy from before they moved: writing them is refused.",
    (
        Column("user_id", "text", "NOT NULL UNIQUE", "The user; '' is the owner of the home."),
        Column("store", "integer", "NOT NULL", "The number of the store that has the user now."),
    ),
)
_MOVED_SHARDS = Table(
    "moved_shards",
    "Shards that have moved away completely: no user of theirs may be created here.",
    (
        Column("shard", "integer", "NOT NULL UNIQUE", "The number of the shard."),
        Column("store", "integer", "NOT NULL", "The number of the store that has it now."),
    ),
)

SCHEMA = Schema(1, (_STORES, _SHARDS, _MOVED_USERS, _MOVED_SHARDS), (), name="shards")


MAP_SECONDS = 1.0
"""How old the map of a node may be. A move waits longer than this before it relies on what nodes know."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a shard is, and where it is moving to, if it is."""

    shard: int
    store: int
    moving_to: int | None = None


class Directory:
    """The stores of a fleet, all open, and the map of shards; every thread may use it."""

    def __init__(
        self, urls: Sequence[str], components: Sequence[Schema] = (), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`urls` are the stores by number, of which the first has the map; ConfigError if the numbers have changed.

        The tables of `components` are created in every store, so that users can move there.
        """
        if len(urls) > MAX_STORES:
            raise ConfigError(f"A fleet has at most {MAX_STORES:,} stores.")
        self._clock = clock
        self._lock = Lock()
        self._map: dict[int, Placement] = {}
        self._read_at = float("-inf")
        with ExitStack() as opened:
            self.engines: list[PostgresEngine] = []
            for url in urls:
                engine = open_server_engine(url, SCHEMA)
                opened.callback(engine.close)
                self.engines.append(engine)
                for component in components:
                    engine.create_tables(component)
            self._require_known_stores()
            self._opened = opened.pop_all()

    def store_of(self, user: str | None) -> int:
        """The number of the store that has a user now."""
        placement = self._current_map()[shard_of(user)]
        if placement.moving_to is None:
            return placement.store
        # Some users of the shard have moved already, and only their old store knows which.
        return self.moved_to(placement.store, user) or placement.store

    def moved_to(self, store: int, user: str | None) -> int | None:
        """The store to which a user has moved from another one; None if the user has not."""
        with self.engines[store].reading() as connection:
            row = connection.execute(
                "SELECT store FROM moved_users WHERE user_id = ?"
                " UNION ALL SELECT store FROM moved_shards WHERE shard = ? LIMIT 1",
                (user or "", shard_of(user)),
            ).fetchone()
        return None if row is None else int(row[0])

    def refresh(self) -> None:
        """Read the map again with the next question, after a store has refused to write for a user who has moved."""
        with self._lock:
            self._read_at = float("-inf")

    def placements(self) -> list[Placement]:
        """The map as the first store has it."""
        with self.engines[0].reading() as connection:
            rows = connection.execute("SELECT shard, store, moving_to FROM shards ORDER BY shard").fetchall()
        return [Placement(*row) for row in rows]

    def place(self, placement: Placement) -> None:
        """Change where a shard is."""
        with self.engines[0].writing() as connection:
            connection.execute(
                "UPDATE shards SET store = ?, moving_to = ? WHERE shard = ?",
                (placement.store, placement.moving_to, placement.shard),
            )
        self.refresh()

    def close(self) -> None:
        self._opened.close()

    def _current_map(self) -> dict[int, Placement]:
        with self._lock:
            if self._clock() - self._read_at >= MAP_SECONDS:
                started = self._clock()
                self._map = {placement.shard: placement for placement in self.placements()}
                self._read_at = started
                for placement in self._map.values():
                    self._require_configured(placement)
            return self._map

    def _require_configured(self, placement: Placement) -> None:
        for number in (placement.store, placement.moving_to or 0):
            if number >= len(self.engines):
                raise ConfigError(
                    f"Shard {placement.shard} is in store {number}, and store.servers names only "
                    f"{len(self.engines) - 1} further servers. Add its URL, in the same order on every node."
                )

    def _require_known_stores(self) -> None:
        """Enter new stores in the directory, and raise ConfigError if a number now belongs to another store."""
        names = [_store_id(engine) for engine in self.engines]
        if len(set(names)) < len(names):
            raise ConfigError("store.url and store.servers name the same store twice.")
        with self.engines[0].writing() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' stores', 13))")
            known = dict(connection.execute("SELECT number, store_id FROM stores").fetchall())
            for number, name in enumerate(names):
                if known.setdefault(number, name) != name:
                    raise ConfigError(
                        f"Store {number} of this fleet is {known[number]}, and the URL with that number leads to "
                        f"{name}. store.servers must name the same servers in the same order on every node."
                    )
                connection.execute(
                    "INSERT INTO stores (number, store_id, added_at) VALUES (?, ?, ?) ON CONFLICT (number) DO NOTHING",
                    (number, name, time.time()),
                )
            for shard in range(SHARDS):
                connection.execute(
                    "INSERT INTO shards (shard, store) VALUES (?, 0) ON CONFLICT (shard) DO NOTHING", (shard,)
                )
        for number, engine in enumerate(self.engines):
            with engine.writing() as connection:
                install_fences(connection)
            if not are_separate(engine):
                separate_ids(engine, number, self._highest_ids())

    def _highest_ids(self) -> dict[tuple[str, str], int]:
        highest: dict[tuple[str, str], int] = {}
        for engine in self.engines:
            for column, last in last_ids(engine).items():
                highest[column] = max(last, highest.get(column, 0))
        return highest


def _store_id(engine: PostgresEngine) -> str:
    with engine.reading() as connection:
        store_id = read_meta(connection, "store_id")
    if store_id is None:
        raise ConfigError(f"{engine.location} has no record yet. Open it once with store.url, then add it.")
    return store_id
