"""Curated memory in the tables of a database, for nodes that share no files.

The lock of a directory becomes a lock in the database, and "journal, then rename" becomes one transaction: everything
that happens under the lock is durable when it is released, or did not happen. The texts are those of the files, byte by
byte, so that a memory can be moved from files to tables and back.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from memoranda.errors import StorageError
from memoranda.memory.curated import memory_file, schema
from memoranda.memory.curated.journal import MemoryChange, MemoryJournal
from memoranda.memory.curated.memory_file import MemoryFileState, MissingMemoryFile, ReadableMemoryFile, WritableState
from memoranda.memory.curated.settings import Target, file_name
from memoranda.memory.curated.storage import ALLOWANCES, FORGOTTEN, MemoryStorage
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.files.journaled_writer import WriteFailure
from memoranda.storage.files.named_texts import Document
from memoranda.storage.schema import Table
from memoranda.support.home import encode_user_id
from memoranda.support.text_file import UnreadableFile

_Decoded = TypeVar("_Decoded")
# How many lines are read at once when the newest ones are damaged.
_NEWEST_LINES = 20


class UserRows:
    """The rows of one user in the tables of curated memory; under the lock, all of them in one transaction."""

    def __init__(self, open_engine: Callable[[], Engine], user: str | None) -> None:
        self._open_engine = open_engine
        self._user = user
        self.user_id = user or ""
        self._local = threading.local()

    @property
    def engine(self) -> Engine:
        """The database, acting for the user; raises StorageError while it cannot be used."""
        return self._open_engine().acting_for(self._user)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the memory of the user until the block ends; its changes are then durable, or none if it raises."""
        if getattr(self._local, "connection", None) is not None:
            raise RuntimeError("The memory of this user is locked by this thread already.")
        engine = self.engine
        with engine.writing() as connection:
            engine.lock_session(connection, f"curated:{self.user_id}")
            self._local.connection = connection
            try:
                yield
            finally:
                self._local.connection = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """The transaction of the lock if this thread holds it, or else a consistent view."""
        if (connection := self._exclusive_connection()) is not None:
            yield connection
            return
        with self.engine.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The transaction of the lock; without the lock, it is taken for this block."""
        if (connection := self._exclusive_connection()) is not None:
            yield connection
            return
        with self.exclusive():
            connection = self._exclusive_connection()
            assert connection is not None
            yield connection

    def _exclusive_connection(self) -> Connection | None:
        connection: Connection | None = getattr(self._local, "connection", None)
        return connection


class TableTexts:
    """The texts of one user in one table, by name."""

    def __init__(self, rows: UserRows, table: Table, directory: Path) -> None:
        self._rows = rows
        self._table = table.name
        self.directory = directory

    def names(self) -> list[str]:
        statement = f"SELECT name FROM {self._table} WHERE user_id = ? ORDER BY name"
        with self._rows.reading() as connection:
            return [name for (name,) in connection.execute(statement, (self._rows.user_id,)).fetchall()]

    def path(self, name: str) -> Path:
        return self.directory / name

    def read(self, name: str) -> bytes:
        return to_bytes(self._value("content", name))

    def modified_at(self, name: str) -> float:
        modified: float = self._value("modified", name)
        return modified

    def _value(self, column: str, name: str) -> Any:
        statement = f"SELECT {column} FROM {self._table} WHERE user_id = ? AND name = ?"
        with self._rows.reading() as connection:
            row = connection.execute(statement, (self._rows.user_id, name)).fetchone()
        if row is None:
            raise FileNotFoundError(f"{self.path(name)} does not exist")
        return row[0]

    def write(self, name: str, content: bytes, modified: float | None = None) -> None:
        with self._rows.writing() as connection:
            connection.execute(
                f"INSERT INTO {self._table} (user_id, name, content, modified) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (user_id, name) DO UPDATE SET content = excluded.content, modified = excluded.modified",
                (self._rows.user_id, name, to_text(content), time.time() if modified is None else modified),
            )

    def rename(self, name: str, new_name: str) -> None:
        with self._rows.writing() as connection:
            self._remove(connection, new_name)
            renamed = connection.execute(
                f"UPDATE {self._table} SET name = ? WHERE user_id = ? AND name = ?",
                (new_name, self._rows.user_id, name),
            )
            if not renamed.rowcount:
                raise FileNotFoundError(f"{self.path(name)} does not exist")

    def remove(self, name: str) -> None:
        with self._rows.writing() as connection:
            self._remove(connection, name)

    def _remove(self, connection: Connection, name: str) -> None:
        connection.execute(f"DELETE FROM {self._table} WHERE user_id = ? AND name = ?", (self._rows.user_id, name))


class TableLines:
    """The lines of one user's journal in a table."""

    def __init__(self, rows: UserRows) -> None:
        self.place = ("curated_journal", rows.user_id)
        self._rows = rows

    def last(self, decode: Callable[[bytes], _Decoded | None]) -> _Decoded | None:
        before: int | None = None
        while True:
            statement = "SELECT id, line FROM curated_journal WHERE user_id = ?"
            values: list[object] = [self._rows.user_id]
            if before is not None:
                statement, values = f"{statement} AND id < ?", [*values, before]
            with self._rows.reading() as connection:
                rows = connection.execute(f"{statement} ORDER BY id DESC LIMIT ?", (*values, _NEWEST_LINES)).fetchall()
            for number, line in rows:
                if (found := decode(to_bytes(line))) is not None:
                    return found
                before = number
            if len(rows) < _NEWEST_LINES:
                return None

    def read(self) -> list[bytes]:
        with self._rows.reading() as connection:
            rows = connection.execute(
                "SELECT line FROM curated_journal WHERE user_id = ? ORDER BY id", (self._rows.user_id,)
            ).fetchall()
        return [to_bytes(line) for (line,) in rows]

    def contains(self, part: bytes) -> bool:
        like = self._rows.engine.dialect.like("line")
        escaped = to_text(part).replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        with self._rows.reading() as connection:
            found = connection.execute(
                f"SELECT 1 FROM curated_journal WHERE user_id = ? AND {like} LIMIT 1",
                (self._rows.user_id, f"%{escaped}%"),
            ).fetchone()
        return found is not None

    def append(self, lines: Sequence[bytes]) -> None:
        with self._rows.writing() as connection:
            self._insert(connection, lines)

    def replace(self, lines: Sequence[bytes]) -> None:
        with self._rows.writing() as connection:
            connection.execute("DELETE FROM curated_journal WHERE user_id = ?", (self._rows.user_id,))
            self._insert(connection, lines)

    def find_loss(self) -> str:
        """Nothing: lines and memory change in one transaction, and a server does not lose single rows."""
        return ""

    def accept(self) -> None: ...

    def _insert(self, connection: Connection, lines: Sequence[bytes]) -> None:
        connection.executemany(
            "INSERT INTO curated_journal (user_id, line) VALUES (?, ?)",
            [(self._rows.user_id, to_text(line)) for line in lines],
        )


class TableStorage(MemoryStorage):
    """The memory of one user in the tables of a database."""

    def __init__(self, open_engine: Callable[[], Engine], user: str | None) -> None:
        """`open_engine` returns a database with the tables of `memoranda.memory.curated.schema`; every use calls it.

        So a memory can be constructed while its server is not available, and works as soon as it is.
        """
        self.rows = UserRows(open_engine, user)
        self.directory = memory_name(user)
        self.lines = TableLines(self.rows)
        self.journal = MemoryJournal(self.lines)
        self.texts = TableTexts(self.rows, schema.MEMORY, self.directory)
        self.proposals = TableTexts(self.rows, schema.PROPOSALS, self.directory / "pending")
        self.backups = TableTexts(self.rows, schema.BACKUPS, self.directory)
        self.allowances = Document(TableTexts(self.rows, schema.ALLOWANCES, self.directory), ALLOWANCES)
        self.forgotten = Document(TableTexts(self.rows, schema.FORGOTTEN, self.directory), FORGOTTEN)

    def exists(self) -> bool:
        statement = " UNION ALL ".join(
            f"SELECT 1 FROM {table.name} WHERE user_id = ?" for table in schema.SCHEMA.tables
        )
        with self.rows.reading() as connection:
            values = (self.rows.user_id,) * len(schema.SCHEMA.tables)
            return connection.execute(f"{statement} LIMIT 1", values).fetchone() is not None

    def read(self, target: Target, known: ReadableMemoryFile | None) -> MemoryFileState:
        path = self.path(target)
        try:
            raw = self.texts.read(file_name(target))
        except FileNotFoundError:
            return MissingMemoryFile(path)
        except StorageError as error:
            return UnreadableFile(path, str(error))
        return memory_file.from_bytes(path, raw, known)

    def exclusive(self, timeout: float | None = None) -> AbstractContextManager[None]:
        """Lock the memory of this user in one transaction; how long to wait is a property of the engine."""
        return self.rows.exclusive()

    def replace_all(
        self,
        writes: Sequence[tuple[WritableState, bytes]],
        lines: Sequence[MemoryChange],
        before_publish: Callable[[], None],
    ) -> WriteFailure | None:
        """Store lines and contents in the transaction of the lock, in which the texts were read."""
        self.journal.append(lines)
        before_publish()
        for found, content in writes:
            self.texts.write(found.path.relative_to(self.texts.path("")).as_posix(), content)
        return None


def delete_user(engine: Engine, user: str) -> None:
    """Delete every row of a user, in one transaction."""
    rows = UserRows(lambda: engine, user)
    with rows.writing() as connection:
        for table in schema.SCHEMA.tables:
            connection.execute(f"DELETE FROM {table.name} WHERE user_id = ?", (user,))


def memory_name(user: str | None) -> Path:
    """The name of a user's memory in messages: where its files would be in a home."""
    return Path("memories") if user is None else Path("memories", "users", encode_user_id(user))


def to_text(content: bytes) -> str:
    """Bytes as a column stores them; bytes that are not UTF-8 become lone surrogates."""
    return content.decode("utf-8", "surrogateescape")


def to_bytes(content: str) -> bytes:
    return content.encode("utf-8", "surrogateescape")
