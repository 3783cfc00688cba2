"""The tables of the parts of a home, in `home.db` or on a server, and databases that other programs keep in a home.

Texts in their rows get a mark where the passage was. A text that identifies a row, such as the path of a file, stays,
because the row could not be found any more; a checkpoint of an import is deleted, which costs only time.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from memoranda.storage.engine import Engine
from memoranda.storage.home_database import FILE_NAME
from memoranda.storage.salvage.rebuild import is_database
from memoranda.storage.schema import Column, Schema, Table
from memoranda.storage.sqlite.stored_texts import StoredText, read_texts, replace_texts
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.byte_search import walk
from memoranda.upkeep.forgetting.home_files import COMPANIONS, WORK_DIRECTORY
from memoranda.upkeep.forgetting.report import Action, ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope
from memoranda.upkeep.home_tables import opened_parts

_BUSY_TIMEOUT = 10.0
_USER = "user_id"
_IDENTIFIER = "an identifier, which other rows refer to"
# Databases with a store of their own, those of profiles, and what an interrupted run unpacked, perhaps in part.
_ELSEWHERE = ("state.", FILE_NAME, "checkpoints.db", "holographic", "profiles/", f"{WORK_DIRECTORY}/")

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
                        counts[text.is_key] += 1
            name = path.relative_to(self._scope.home.root).as_posix()
            found += [ForgetPlace("databases", name, counts[False], "redact")] if counts[False] else []
            found += [ForgetPlace("databases", name, counts[True], "keep", _IDENTIFIER)] if counts[True] else []
        return found

    def forget(self, matcher: TextMatcher) -> list[str]:
        """Remove the text from the rows; returns why a database could not be changed."""
        problems = []
        for path in self._files():
            try:
                with closing(_connect(path)) as connection:
                    self._forget(connection, matcher)
            except sqlite3.Error as error:
                problems.append(f"{path}: {error}")
        return problems

    def _forget(self, connection: sqlite3.Connection, matcher: TextMatcher) -> None:
        connection.execute("PRAGMA secure_delete=1")
        connection.execute("BEGIN IMMEDIATE")

        def replace(text: str) -> tuple[str, int]:
            replaced = matcher.replace_value(text)
            return str(replaced.value), replaced.count

        changed = replace_texts(connection, replace, self._owns)
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
            if name.startswith(_ELSEWHERE) or name.endswith(COMPANIONS) or ".damaged-" in name:
                continue
            shared = self._scope.user is not None or self._scope.owns(path)
            if shared and path.stat().st_size and is_database(path):
                yield path


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)


class _Row(NamedTuple):
    key: object
    texts: dict[str, str]


class PartTables:
    """The tables of one scope in `home.db` and on its servers."""

    def __init__(self, scope: ForgetScope) -> None:
        self._scope = scope

    def find(self, matcher: TextMatcher) -> list[ForgetPlace]:
        """The tables with rows that have a text."""
        found = []
        for engine, schema in self._parts():
            for table in schema.tables:
                keys = {column.name for column in table.columns if _identifies(column)}
                matches = [name for row in self._rows(engine, schema, table) for name, text in row.texts.items()
                           if matcher.found_in(text)]  # fmt: skip
                changed, kept = len([name for name in matches if name not in keys]), len(keys & set(matches))
                action: Action = "redact" if schema.forgetting.delete_rows is None else "remove"
                found += [ForgetPlace(schema.name, table.name, changed, action)] if changed else []
                found += [ForgetPlace(schema.name, table.name, kept, "keep", _IDENTIFIER)] if kept else []
        return found

    def others_have(self, matcher: TextMatcher, users: Collection[str | None]) -> bool:
        """Whether rows of anyone but these users have the text; None is the owner."""
        for engine, schema in self._parts():
            for table in schema.tables:
                names = [column.name for column in table.columns if column.kind == "text"]
                if table.name in schema.user_tables:
                    with engine.reading() as connection:
                        rows = connection.execute(
                            f"SELECT {schema.user_tables[table.name]}, {', '.join(names)} FROM {table.name}"
                        ).fetchall()
                    texts = (text for user, *row in rows if (user or None) not in users for text in row if text)
                    if any(map(matcher.found_in, texts)):
                        return True
        return False

    def forget(self, matcher: TextMatcher) -> None:
        """Replace a text by a mark; delete the rows that it identifies, where that costs only time."""
        for engine, schema in self._parts():
            changed = 0
            delete_rows = schema.forgetting.delete_rows
            if delete_rows is not None:
                with engine.writing() as connection:
                    changed += delete_rows(connection, matcher.found_in, self._scope.user or "")
            changed += sum(self._replace(engine, schema, table, matcher) for table in schema.tables)
            if changed:
                _erase(engine)

    def find_rows_of_user(self) -> list[ForgetPlace]:
        """The tables with rows of the user of the scope, who is not the owner."""
        found = []
        for engine, schema in self._parts():
            for table, user in _user_tables(schema).items():
                with engine.reading() as connection:
                    (count,) = connection.execute(
                        f"SELECT count(*) FROM {table} WHERE {user} = ?", (self._scope.user,)
                    ).fetchone()
                found += [ForgetPlace(schema.name, table, int(count), "remove")] if count else []
        return found

    def remove_user(self) -> None:
        """Delete the rows of the user of the scope, or what they say about the user."""
        assert self._scope.user is not None
        for engine, schema in self._parts():
            with engine.writing() as connection:
                if schema.forgetting.remove_user is not None:
                    schema.forgetting.remove_user(connection, self._scope.user)
                else:
                    for table, user in _user_tables(schema).items():
                        connection.execute(f"DELETE FROM {table} WHERE {user} = ?", (self._scope.user,))
            _erase(engine)

    def _parts(self) -> Iterator[tuple[Engine, Schema]]:
        return opened_parts(self._scope.home.root, (self._scope.server_url, self._scope.shared_url))

    def _rows(self, engine: Engine, schema: Schema, table: Table) -> list[_Row]:
        """The rows of the scope; those that belong to no user are the owner's."""
        names = _text_columns(schema, table)
        user = schema.user_tables.get(table.name, "''")
        if not names or (self._scope.user is not None and table.name not in schema.user_tables):
            return []
        with engine.reading() as connection:
            rows = connection.execute(
                f"SELECT {_key_of(table)}, {', '.join(names)} FROM {table.name} WHERE COALESCE({user}, '') = ?",
                (self._scope.user or "",),
            ).fetchall()
        return [_Row(key, {name: text for name, text in zip(names, row, strict=True) if text}) for key, *row in rows]

    def _replace(self, engine: Engine, schema: Schema, table: Table, matcher: TextMatcher) -> int:
        keys = {column.name for column in table.columns if _identifies(column)}
        changes = [
            (name, str(matcher.replace_value(text).value), row.key)
            for row in self._rows(engine, schema, table)
            for name, text in row.texts.items()
            if name not in keys and matcher.found_in(text)
        ]
        if changes:
            with engine.writing() as connection:
                for name, text, key in changes:
                    connection.execute(f"UPDATE {table.name} SET {name} = ? WHERE {_key_of(table)} = ?", (text, key))
        return len(changes)


def _erase(engine: Engine) -> None:
    """Remove from the file what was deleted in it."""
    engine.release_space()
    engine.shrink_log()


def _text_columns(schema: Schema, table: Table) -> list[str]:
    texts = schema.forgetting.texts
    names = [column.name for column in table.columns if column.kind == "text" and column.name != _USER]
    return [name for name in names if texts is None or name in texts]


def _user_tables(schema: Schema) -> dict[str, str]:
    return {name: user for name, user in schema.user_tables.items() if name not in schema.forgetting.own_users}


def _identifies(column: Column) -> bool:
    return column.name.endswith("_id") or "PRIMARY KEY" in column.rules or "UNIQUE" in column.rules


def _key_of(table: Table) -> str:
    return next(column.name for column in table.columns if column.kind == "numbered" or "PRIMARY KEY" in column.rules)
