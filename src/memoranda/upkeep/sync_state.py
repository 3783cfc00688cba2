"""What a home knows about its synchronisation, in tables of `home.db`: versions by digest, no text but in conflicts.

The versions of sessions, messages and items are in the record. A run reads these tables once and writes what it has
changed in short transactions, so that no other part of the home waits for it; a lock file lets one run at a time.
"""

import json
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.storage.engine import Engine
from memoranda.storage.home_database import HomeDatabase
from memoranda.storage.schema import Column, Schema, Table
from memoranda.upkeep.sync_versions import Version

_STATE = Table(
    "sync_state",
    "Single values of the synchronisation: the last time, positions in feeds, what a run waits for.",
    (Column("name", "text", "PRIMARY KEY", "Its name."), Column("value", "text", "NOT NULL", "Its value.")),
)
_BUNDLES = Table(
    "sync_bundles",
    "The bundles that were read or written.",
    (Column("name", "text", "PRIMARY KEY", "Machine and file name."),),
)
_THINGS = Table(
    "sync_things",
    "One row per entry, order of entries, file of a skill, proposal and fact, also of removed ones.",
    (
        Column("name", "text", "PRIMARY KEY", "Its kind, a colon, and its name that all machines share."),
        Column("version", "text", "NOT NULL", "The name of its version."),
        Column("digest", "text", "NOT NULL", "A digest of its content; empty if it is gone."),
        Column("replaced", "text", "NOT NULL", "The versions that it replaced, as a JSON list."),
        Column("forgotten", "integer", "NOT NULL", "1: it was not removed but forgotten."),
        Column("run", "integer", "NOT NULL", "The run that noticed or received its last change."),
        Column("bundle", "text", "NOT NULL", "The bundle that it came from; empty if it was changed here."),
    ),
)
_FORGETS = Table(
    "sync_forgets",
    "Texts that another machine has forgotten, until they are removed here.",
    (
        Column("text", "text", "PRIMARY KEY", "The text, encoded."),
        Column("whole_words", "integer", "NOT NULL", "1: only as whole words."),
    ),
)
_CONFLICTS = Table(
    "sync_conflicts",
    "Entries that two machines have changed differently, until a person decides.",
    (
        Column("number", "integer", "PRIMARY KEY", "Its number."),
        Column("target", "text", "NOT NULL", "memory, user, or that of a project."),
        Column("uid", "text", "NOT NULL", "The entry."),
        Column("theirs", "text", "", "The entry on the other machine; null if it was removed there."),
        Column("version", "text", "NOT NULL", "The version there."),
        Column("replaced", "text", "NOT NULL", "The versions that it replaced, as a JSON list."),
        Column("machine", "text", "NOT NULL", "The name of the other machine."),
    ),
)
SCHEMA = Schema(version=1, name="sync", tables=(_STATE, _BUNDLES, _THINGS, _FORGETS, _CONFLICTS), indexes=())


class Thing(NamedTuple):
    """What is known of something that travels: its version, where it came from, and whether it was forgotten."""

    version: Version
    run: int
    bundle: str = ""
    forgotten: bool = False


class ConflictRow(NamedTuple):
    """The entry on the other machine, with its version there; `replaced` is a JSON list."""

    number: int
    target: str
    uid: str
    theirs: str | None
    version: str
    replaced: str
    machine: str


class SyncState:
    """The tables of one home."""

    def __init__(self, root: Path) -> None:
        self._file = HomeDatabase(root, SCHEMA)

    def exists(self) -> bool:
        """Whether this home was ever synchronised."""
        return bool(self._file.fetch_all("SELECT 1 FROM sync_state LIMIT 1"))

    def read(self) -> "SyncTables":
        return SyncTables(self._file.open())

    def close(self) -> None:
        self._file.close()


def is_synchronised(root: Path) -> bool:
    """Whether a home was ever synchronised."""
    with closing(SyncState(root)) as state:
        return state.exists()


class SyncTables:
    """All rows, in memory until `save`; each is known by its first column."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        with engine.reading() as connection:
            self._stored = {
                table.name: {
                    row[0]: tuple(row[1:])
                    for row in connection.execute(f"SELECT {', '.join(_names(table))} FROM {table.name}")
                }
                for table in SCHEMA.tables
            }
        self._rows = {name: dict(rows) for name, rows in self._stored.items()}
        self._things: dict[str, dict[str, Thing]] = {}
        for key, row in self._rows[_THINGS.name].items():
            kind, _, name = key.partition(":")
            self._things.setdefault(kind, {})[name] = _thing(row)

    def save(self) -> None:
        """Make all changes durable together."""
        changes = []
        for table in SCHEMA.tables:
            rows, stored = self._rows[table.name], self._stored[table.name]
            old = [(key,) for key in stored if rows.get(key) != stored[key]]
            new = [(key, *row) for key, row in rows.items() if stored.get(key) != row]
            if old or new:
                changes.append((table, old, new))
        if not changes:
            return
        with self._engine.writing() as connection:
            for table, old, new in changes:
                names = _names(table)
                connection.executemany(f"DELETE FROM {table.name} WHERE {names[0]} = ?", old)
                marks = ", ".join("?" * len(names))
                connection.executemany(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", new)
        self._stored = {name: dict(rows) for name, rows in self._rows.items()}

    def value(self, name: str, default: str = "") -> str:
        found: str = self._rows[_STATE.name].get(name, (default,))[0]
        return found

    def set_value(self, name: str, value: str) -> None:
        self._rows[_STATE.name][name] = (value,)

    def names(self, prefix: str) -> list[str]:
        """The names of values that begin with a prefix, without it."""
        return sorted(name.removeprefix(prefix) for name in self._rows[_STATE.name] if name.startswith(prefix))

    def bundles(self) -> list[str]:
        """The bundles that were read or written."""
        return list(self._rows[_BUNDLES.name])

    def is_known(self, bundle: str) -> bool:
        return bundle in self._rows[_BUNDLES.name]

    def add_bundle(self, bundle: str) -> None:
        self._rows[_BUNDLES.name][bundle] = ()

    def things(self, kind: str) -> dict[str, Thing]:
        """All things of a kind, by name; of a removed one the digest is empty."""
        return self._things.get(kind, {}).copy()

    def set_thing(self, kind: str, name: str, thing: Thing) -> None:
        self._things.setdefault(kind, {})[name] = thing
        version = thing.version
        self._rows[_THINGS.name][f"{kind}:{name}"] = (
            version.name, version.digest, json.dumps(sorted(version.replaced)), int(thing.forgotten), thing.run,
            thing.bundle,
        )  # fmt: skip

    def changed(self, kind: str, after: int, bundles: frozenset[str]) -> dict[str, Thing]:
        """The things of a kind that changed after a run, without those that one of the bundles contains."""
        things = self._things.get(kind, {})
        return {name: each for name, each in things.items() if each.run > after and each.bundle not in bundles}

    def forgets(self) -> dict[str, bool]:
        """Encoded texts to be forgotten, and whether only as whole words."""
        return {text: bool(row[0]) for text, row in self._rows[_FORGETS.name].items()}

    def add_forget(self, text: str, whole_words: bool) -> None:
        self._rows[_FORGETS.name].setdefault(text, (int(whole_words),))

    def drop_forgets(self) -> None:
        self._rows[_FORGETS.name].clear()

    def conflicts(self) -> list[ConflictRow]:
        """What waits for a person, in the order of the numbers."""
        return [ConflictRow(number, *row) for number, row in sorted(self._rows[_CONFLICTS.name].items())]

    def add_conflict(self, target: str, uid: str, theirs: str | None, version: Version, machine: str) -> None:
        """Note a conflict, unless a later version of the entry waits already."""
        known = self._conflict(target, uid)
        if known is not None and known.version >= version.name:
            return
        number = int(self.value("conflicts", "0")) + 1 if known is None else known.number
        self.set_value("conflicts", str(max(number, int(self.value("conflicts", "0")))))
        replaced = json.dumps(sorted(version.replaced))
        self._rows[_CONFLICTS.name][number] = (target, uid, theirs, version.name, replaced, machine)

    def drop_conflict(self, target: str, uid: str) -> None:
        known = self._conflict(target, uid)
        if known is not None:
            del self._rows[_CONFLICTS.name][known.number]

    def _conflict(self, target: str, uid: str) -> ConflictRow | None:
        return next((row for row in self.conflicts() if (row.target, row.uid) == (target, uid)), None)


def _names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def _thing(row: Iterable[Any]) -> Thing:
    version, digest, replaced, forgotten, run, bundle = row
    return Thing(Version(version, digest, frozenset(json.loads(replaced))), run, bundle, bool(forgotten))
