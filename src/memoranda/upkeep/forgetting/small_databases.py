"""The smaller databases of a home, and the smaller tables of a server: imports, reviews, spending, vendors, keys.

Texts in their rows get a mark where the passage was. A text that identifies a row, such as the path of a file, stays,
because the row could not be found any more; a checkpoint of an import is deleted, which costs only time.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from memoranda.importers.state.schema import FILE_NAME, ITEMS
from memoranda.importers.state.store import delete_items_with
from memoranda.storage.engine import Engine
from memoranda.storage.lazy_database import open_server_engine
from memoranda.storage.salvage.rebuild import is_database
from memoranda.storage.schema import Column, Schema, Table
from memoranda.storage.sqlite.stored_texts import StoredText, read_texts, replace_texts
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.byte_search import walk
from memoranda.upkeep.forgetting.home_files import COMPANIONS
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope
from memoranda.upkeep.home_tables import small_component_schemas

_BUSY_TIMEOUT = 10.0
_AREAS = {"imports.db": "imports", "reviews.db": "reviews", "usage.db": "usage"}
_IDENTIFIER = "an identifier, which other rows refer to"
_STORES = ("state.", "outbox.db", "checkpoints.db", "holographic")

IsOurSession = Callable[[str], bool]
"""Whether a session belongs to the scope, as far as that is known."""


class HomeDatabases:
    """The databases of one scope that have no store of their own here."""

    def __init__(self, scope: ForgetScope, is_our_session: IsOurSession) -> None:
        self._scope = scope
        self._is_our_session = is_our_session

    def find(self, matcher: TextMatcher) -> list[ForgetPlace]:
        found: list[ForgetPlace] = []
        for path in self._files():
            counts = {False: 0, True: 0}
            with closing(_connect(path)) as connection:
                for text in read_texts(connection):
                    if matcher.found_in(text.text) and self._owns(text):
                        counts[_stays(path, text)] += 1
            name = path.relative_to(self._scope.home.root).as_posix()
            area = _AREAS.get(path.name, "databases")
            found += [ForgetPlace(area, name, counts[False], "redact")] if counts[False] else []
            found += [ForgetPlace(area, name, counts[True], "keep", _IDENTIFIER)] if counts[True] else []
        return found

    def forget(self, matcher: TextMatcher) -> list[str]:
        """Remove the text from the rows; returns why a database could not be changed."""
        problems = []
        for path in self._files():
            try:
                with closing(_connect(path)) as connection:
                    self._forget(path, connection, matcher)
            except sqlite3.Error as error:
                problems.append(f"{path}: {error}")
        return problems

    def _forget(self, path: Path, connection: sqlite3.Connection, matcher: TextMatcher) -> None:
        connection.execute("PRAGMA secure_delete=1")
        connection.execute("BEGIN IMMEDIATE")

        def replace(text: str) -> tuple[str, int]:
            replaced = matcher.replace_value(text)
            return str(replaced.value), replaced.count

        changed = replace_texts(connection, replace, self._owns)
        if path.name == FILE_NAME:
            changed += delete_items_with(connection, matcher.found_in)
        connection.execute("COMMIT")
        if changed:
            connection.execute("PRAGMA incremental_vacuum").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _owns(self, text: StoredText) -> bool:
        user, session = text.row.get("user_id"), text.row.get("session_id")
        if isinstance(user, str):
            return user == (self._scope.user or "")
        if isinstance(session, str):
            return self._is_our_session(session)
        return self._scope.user is None

    def _files(self) -> Iterator[Path]:
        root = self._scope.home.root
        for path in walk(root):
            name = path.relative_to(root).as_posix()
            if name.startswith(("profiles/", *_STORES)) or name.endswith(COMPANIONS) or ".damaged-" in name:
                continue
            shared = self._scope.user is not None or self._scope.owns(path)
            if shared and path.stat().st_size and is_database(path):
                yield path


def _stays(path: Path, text: StoredText) -> bool:
    return text.is_key and not (path.name == FILE_NAME and text.table == ITEMS)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)


_USER = "user_id"
# The outbox drops deliveries itself, a provider removes what its vendor has deleted, and keys are removed with grants.
_REMOVED_ELSEWHERE = ("jobs", "sent", "api_keys", "audit_log")
# The ledger keeps what calls cost, without saying for whom.
_LEDGER = "calls"


class _Row(NamedTuple):
    key: object
    texts: dict[str, str]


class ServerTables:
    """The smaller tables of one scope; without a server there are none."""

    def __init__(self, scope: ForgetScope) -> None:
        self._scope = scope

    def find(self, matcher: TextMatcher) -> list[ForgetPlace]:
        """The tables with rows that have a text."""
        found = []
        for engine, schema in self._components():
            for table in _text_tables(schema):
                keys = {column.name for column in table.columns if _identifies(column)}
                matches = [name for row in self._rows(engine, table) for name, text in row.texts.items()
                           if matcher.found_in(text)]  # fmt: skip
                changed, kept = len([name for name in matches if name not in keys]), len(keys & set(matches))
                found += [ForgetPlace(schema.name, table.name, changed, "redact")] if changed else []
                found += [ForgetPlace(schema.name, table.name, kept, "keep", _IDENTIFIER)] if kept else []
        return found

    def forget(self, matcher: TextMatcher) -> None:
        """Replace a text by a mark."""

        def replace(text: str) -> str:
            return str(matcher.replace_value(text).value)

        for engine, schema in self._components():
            if schema.name == "imports":
                # The path of a file identifies a row; without the row the file is read from its start again.
                with engine.writing() as connection:
                    delete_items_with(connection, matcher.found_in, on_server=True, user=self._scope.user or "")
            for table in _text_tables(schema):
                self._replace(engine, table, matcher.found_in, replace)

    def count_rows_of_user(self) -> dict[str, int]:
        """How many rows each table has of the user of the scope, who is not the owner."""
        counts = {}
        for engine, schema in self._components():
            for table in _user_tables(schema):
                with engine.reading() as connection:
                    (count,) = connection.execute(
                        f"SELECT count(*) FROM {table.name} WHERE {_USER} = ?", (self._scope.user,)
                    ).fetchone()
                if count:
                    counts[table.name] = int(count)
        return counts

    def delete_rows_of_user(self) -> None:
        """Delete the rows of the user of the scope; the ledger only loses the name."""
        for engine, schema in self._components():
            for table in _user_tables(schema):
                change = f"UPDATE {_LEDGER} SET {_USER} = '', session_id = ''"
                statement = change if table.name == _LEDGER else f"DELETE FROM {table.name}"
                with engine.writing() as connection:
                    connection.execute(f"{statement} WHERE {_USER} = ?", (self._scope.user,))

    def _components(self) -> Iterator[tuple[Engine, Schema]]:
        for url in dict.fromkeys(filter(None, (self._scope.server_url, self._scope.shared_url))):
            for schema in small_component_schemas():
                with _opened(url, schema) as engine:
                    yield engine, schema

    def _rows(self, engine: Engine, table: Table) -> list[_Row]:
        """The rows of the scope; those that belong to no user are the owner's."""
        names = [column.name for column in table.columns if column.kind == "text" and column.name != _USER]
        if not names:
            return []
        condition, values = "", list[str]()
        if any(column.name == _USER for column in table.columns):
            condition, values = f" WHERE COALESCE({_USER}, '') = ?", [self._scope.user or ""]
        elif self._scope.user is not None:
            return []
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {_key_of(table)}, {', '.join(names)} FROM {table.name}{condition}", values
            ).fetchall()
        return [_Row(key, {name: text for name, text in zip(names, row, strict=True) if text}) for key, *row in rows]

    def _replace(
        self, engine: Engine, table: Table, matches: Callable[[str], bool], replace: Callable[[str], str]
    ) -> None:
        keys = {column.name for column in table.columns if _identifies(column)}
        changes = [
            (name, replace(text), row.key)
            for row in self._rows(engine, table)
            for name, text in row.texts.items()
            if name not in keys and matches(text)
        ]
        if changes:
            with engine.writing() as connection:
                for name, text, key in changes:
                    connection.execute(f"UPDATE {table.name} SET {name} = ? WHERE {_key_of(table)} = ?", (text, key))


@contextmanager
def _opened(url: str, schema: Schema) -> Iterator[Engine]:
    with closing(open_server_engine(url, schema)) as engine:
        yield engine.acting_for(None, everyone=True)


def _text_tables(schema: Schema) -> list[Table]:
    """The tables whose texts are replaced here; the outbox and the provider of facts change their own."""
    return [] if schema.name in ("outbox", "facts") else list(schema.tables)


def _user_tables(schema: Schema) -> list[Table]:
    return [
        table
        for table in schema.tables
        if table.name not in _REMOVED_ELSEWHERE and any(column.name == _USER for column in table.columns)
    ]


def _identifies(column: Column) -> bool:
    return column.name.endswith("_id") or "PRIMARY KEY" in column.rules or "UNIQUE" in column.rules


def _key_of(table: Table) -> str:
    return next(column.name for column in table.columns if column.kind == "numbered" or "PRIMARY KEY" in column.rules)
