"""The smaller databases of a home: imports, reviews, usage, what vendors have received.

Texts in their rows get a mark where the passage was. A text that identifies a row, such as the path of a file, stays,
because the row could not be found any more; a checkpoint of an import is deleted, which costs only time.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from memoranda.importers.state.schema import FILE_NAME, ITEMS
from memoranda.importers.state.store import delete_items_with
from memoranda.storage.sqlite.stored_texts import StoredText, read_texts, replace_texts
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.home_files import COMPANIONS, is_database, walk
from memoranda.upkeep.forgetting.report import ForgetPlace
from memoranda.upkeep.forgetting.scope import ForgetScope

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
            if shared and is_database(path):
                yield path


def _stays(path: Path, text: StoredText) -> bool:
    return text.is_key and not (path.name == FILE_NAME and text.table == ITEMS)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT, isolation_level=None)
