"""What a home knows about its synchronisation beside the record's stamps, in tables of `home.db`.

There is no text in them but in the log of what a synchronisation has replaced, where `memoranda forget` finds it. A run
reads these tables once and writes what it has changed in short transactions, so that no other part of the home waits
for it; a lock file lets one run at a time.
"""

from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.schema import Column, Migration, Schema, Table

_STATE = Table(
    "sync_state",
    "Single values of the synchronisation: the last time, positions in bundles, what a run waits for.",
    (Column("name", "text", "PRIMARY KEY", "Its name."), Column("value", "text", "NOT NULL", "Its value.")),
)
_LOG = Table(
    "sync_log",
    "What was changed on two machines without knowledge of each other, and replaced by the later change.",
    (
        Column("number", "integer", "PRIMARY KEY", "Its number."),
        Column("kind", "text", "NOT NULL", "session, label, entry, skill, proposal or fact."),
        Column("name", "text", "NOT NULL", "Its name; of a session, its id here."),
        Column("lost", "text", "NOT NULL", "What was replaced, as JSON; null if it had been removed."),
        Column("stamp", "text", "NOT NULL", "The stamp of what was replaced."),
        Column("machine", "text", "NOT NULL", "The name of the other machine."),
        Column("at", "text", "NOT NULL", "When it was replaced, in ISO 8601."),
        Column("undecided", "integer", "NOT NULL", "1: an entry of curated memory, of which a person may decide."),
    ),
)


def _drop_first_form(connection: Connection) -> None:
    """Drop the tables of the first form of synchronisation, which had many bundles for each machine."""
    for table in ("sync_bundles", "sync_things", "sync_conflicts", "sync_forgets"):
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    connection.execute("DELETE FROM sync_state")


SCHEMA = Schema(
    version=2,
    name="sync",
    tables=(_STATE, _LOG),
    indexes=(),
    migrations=(Migration("one-bundle-for-each-machine", _drop_first_form),),
)


class Replaced(NamedTuple):
    """Something that a synchronisation has replaced, or not taken over; `lost` is JSON."""

    number: int
    kind: str
    name: str
    lost: str
    stamp: str
    machine: str
    at: str
    undecided: int


class SyncState:
    """The tables of one home."""

    def __init__(self, root: Path) -> None:
        self._file = HomeDatabase(root, SCHEMA)

    def exists(self) -> bool:
        """Return whether this home was ever synchronised."""
        return bool(self._file.fetch_all("SELECT 1 FROM sync_state LIMIT 1"))

    def read(self) -> "SyncTables":
        """Return all rows."""
        return SyncTables(self._file.open())

    def drop_log(self, names: Collection[str]) -> None:
        """Remove what the log has of sessions, by their ids."""
        if self.exists():
            with self._file.open().writing() as connection:
                for name in names:
                    connection.execute("DELETE FROM sync_log WHERE name = ? AND kind IN ('session', 'label')", (name,))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def is_synchronised(root: Path) -> bool:
    """Return whether a home was ever synchronised."""
    with closing(SyncState(root)) as state:
        return state.exists()


class SyncTables:
    """All rows, in memory until `save`; each is known by its first column."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with engine.reading() as connection:
            self._stored: dict[str, dict[Any, tuple[Any, ...]]] = {
                table.name: {row[0]: tuple(row[1:]) for row in connection.execute(_select(table))}
                for table in SCHEMA.tables
            }
        rows = {name: dict(found) for name, found in self._stored.items()}
        self._values, self._log = (rows[table.name] for table in SCHEMA.tables)
        self._rows = rows

    def save(self) -> None:
        """Make all changes durable together."""
        if self._rows == self._stored:
            return
        with self._engine.writing() as connection:
            for table in SCHEMA.tables:
                rows, stored = self._rows[table.name], self._stored[table.name]
                names = [column.name for column in table.columns]
                gone = [(key,) for key in stored if rows.get(key) != stored[key]]
                new = [(key, *row) for key, row in rows.items() if stored.get(key) != row]
                connection.executemany(f"DELETE FROM {table.name} WHERE {names[0]} = ?", gone)
                marks = ", ".join("?" * len(names))
                connection.executemany(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", new)
        self._stored = {name: dict(rows) for name, rows in self._rows.items()}

    def value(self, name: str, default: str = "") -> str:
        """Return a single value."""
        found: str = self._values.get(name, (default,))[0]
        return found

    def set_value(self, name: str, value: str) -> None:
        """Set a single value."""
        self._values[name] = (value,)

    def names(self, prefix: str) -> list[str]:
        """Return the names of values that begin with a prefix, without it."""
        return sorted(name.removeprefix(prefix) for name in self._values if name.startswith(prefix))

    def drop_values(self, prefix: str) -> None:
        """Remove the values with names that begin with a prefix."""
        for name in self.names(prefix):
            del self._values[f"{prefix}{name}"]

    def log(self) -> list[Replaced]:
        """Return what was replaced, in the order of the numbers."""
        return [Replaced(number, *row) for number, row in sorted(self._log.items())]

    def add_log(self, replaced: Replaced) -> None:
        """Note what was replaced under the next number, unless it is there."""
        known = [each for each in self.log() if (each.kind, each.name) == (replaced.kind, replaced.name)]
        if not any(each.stamp == replaced.stamp and each.lost == replaced.lost for each in known):
            number = int(self.value("log", "0")) + 1
            self.set_value("log", str(number))
            self._log[number] = tuple(replaced[1:])

    def decide(self, name: str, stamp: str) -> None:
        """Note that an entry needs no decision about what is not later than a stamp."""
        for each in self.log():
            if each.undecided and each.name == name and each.stamp <= stamp:
                self._log[each.number] = tuple(each._replace(undecided=0)[1:])


def _select(table: Table) -> str:
    return f"SELECT {', '.join(column.name for column in table.columns)} FROM {table.name}"
