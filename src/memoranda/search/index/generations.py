"""The files of an index, one per generation: their names, their tables, and which SQLite errors mean damage.

The files of `index.db` are named `index.db.<number>`, and the newest one is used. SQLite finds a database's log by
name, and removes it by name when the last connection closes. If a new file had the name of an old one that another
process still has open, that process would mix the two. So a damaged or replaced file is deleted, and the next
generation has a higher number.

`postings` says which documents have a token. A document is a message or a title, and its row in `docs` says which. New
documents are written as a new segment, so that an update touches few pages; small segments are merged into larger
ones, up to a whole block of `doc_sets`. Sources, projects, users and kinds of messages are tokens, too: a filter is
one more set (`message_text.filter_token`).

A message that is changed or deleted loses its row in `docs` and is listed in `dead` until its number has been removed
from every posting (`segments.purge`). A message that is indexed again gets a new number; numbers are never reused.
"""

import os
import re
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from memoranda.memory.record.schema import FILTERED_COLUMNS
from memoranda.search.index.sequences import CHUNK
from memoranda.search.index.tokenizer import VERSION as SEGMENTATION
from memoranda.storage.forks import refuse_inherited
from memoranda.storage.sqlite.forked_connection import Connection
from memoranda.storage.sqlite.write_ahead_log import supports_log
from memoranda.support.durable_files import PRIVATE_FILE, sync

# Changes with these tables, or with what is indexed of a message. Lists of offsets have the byte order of the machine.
LAYOUT = 1
FORMAT = f"{LAYOUT}.{SEGMENTATION}.{CHUNK}.{sys.byteorder}.{'.'.join(FILTERED_COLUMNS)}"

PAGE_SIZE = 8192

_TABLES = """
CREATE TABLE state (
    store TEXT NOT NULL,             -- the store whose messages are indexed
    format TEXT NOT NULL,
    message INTEGER NOT NULL,        -- a position: every message up to it is indexed
    change INTEGER NOT NULL,         -- a position: every change up to it is applied
    next_doc INTEGER NOT NULL,
    messages INTEGER NOT NULL,       -- alive, without titles
    tokens INTEGER NOT NULL,         -- of these
    sessions INTEGER NOT NULL,
    mark TEXT NOT NULL,              -- the last message indexed, to recognise the store again
    checked INTEGER NOT NULL         -- when the whole file was last read without finding damage; 0 for never
);
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    user TEXT,
    FILTERED_COLUMNS
    id TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL,
    title TEXT,
    started REAL NOT NULL,
    places INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE docs (
    doc INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,        -- 0 for a title
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    role INTEGER NOT NULL,           -- a kind of message_text.py
    length INTEGER NOT NULL,
    time REAL NOT NULL,
    mark INTEGER NOT NULL            -- tells whether the text has changed
);
CREATE INDEX docs_by_session ON docs (session);
CREATE TABLE dead (doc INTEGER PRIMARY KEY);
CREATE TABLE segments (
    number INTEGER PRIMARY KEY,      -- rises, so that new segments are written at the end of the table
    first INTEGER NOT NULL,          -- its documents, all in one block
    end INTEGER NOT NULL,
    oldest REAL NOT NULL,            -- when they were written
    newest REAL NOT NULL
);
CREATE TABLE postings (
    segment INTEGER NOT NULL,
    token TEXT NOT NULL,
    piece INTEGER NOT NULL,          -- a large set is in several rows, because SQLite would give it pages of its own
    count INTEGER NOT NULL,          -- of the whole set
    docs BLOB NOT NULL,              -- see doc_sets.encode
    PRIMARY KEY (segment, token, piece)
) WITHOUT ROWID;
CREATE TABLE words (
    segment INTEGER PRIMARY KEY,
    list BLOB NOT NULL               -- see vocabulary.py
);
CREATE TABLE sequences (
    chunk INTEGER PRIMARY KEY,       -- the number of a document divided by the size of a chunk
    words BLOB NOT NULL              -- see sequences.py
);
""".replace("FILTERED_COLUMNS", "".join(f"{column} TEXT, " for column in FILTERED_COLUMNS))


def create(connection: sqlite3.Connection, store: str) -> None:
    """Create the tables in an empty file, within the caller's transaction."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO state VALUES (?, ?, 0, 0, 0, 0, 0, 0, '', 0)", (store, FORMAT))


_COMPANIONS = ("", "-wal", "-shm", "-journal")
_ABANDONED_AFTER = 3600.0


def generations(path: Path) -> list[Path]:
    """The existing files, newest first."""
    pattern = re.compile(rf"{re.escape(path.name)}\.(\d{{1,19}})")
    try:
        names = os.listdir(path.parent)
    except FileNotFoundError:
        return []
    numbered = [(int(match[1]), path.with_name(name)) for name in names if (match := pattern.fullmatch(name))]
    return [file for _, file in sorted(numbered, reverse=True) if not file.is_dir()]


def next_generation(path: Path) -> Path:
    """A name with a higher number than every existing file."""
    number = time.time_ns()
    for file in generations(path)[:1]:
        number = max(number, int(file.suffix[1:]) + 1)
    return path.with_name(f"{path.name}.{number}")


@contextmanager
def create_generation(file: Path) -> Iterator[sqlite3.Connection]:
    """Build a generation under a hidden name; it gets its own name when the block ends, and is deleted if it raises."""
    hidden = file.with_name(f"{file.name}.building")
    # Only its owner may read it; SQLite gives its other files the same mode.
    os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    try:
        with closing(connect(hidden, 0.0)) as connection:
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            # After a crash it is rebuilt, so it needs no journal.
            connection.execute("PRAGMA journal_mode=OFF")
            connection.execute("PRAGMA synchronous=OFF")
            yield connection
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(f"PRAGMA journal_mode={'WAL' if supports_log(file) else 'DELETE'}")
        # Without a journal, part of the file could be missing after a power cut.
        with hidden.open("rb+") as whole:
            sync(whole.fileno())
        os.rename(hidden, file)
    except BaseException:
        remove(hidden)
        raise


def remove(file: Path) -> None:
    """Delete a file and SQLite's other files for it."""
    for companion in _COMPANIONS:
        with suppress(FileNotFoundError):
            os.unlink(f"{file}{companion}")


def remove_older(path: Path, newest: Path) -> None:
    """Delete older generations, and files of abandoned builds."""
    files = generations(path)
    if newest in files:
        for file in files[files.index(newest) + 1 :]:
            remove(file)
    for file in path.parent.glob(f"{path.name}.*.building"):
        with suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > _ABANDONED_AFTER:
                remove(file)
    left_behind = re.compile(rf"({re.escape(path.name)}\.\d{{1,19}})-(?:wal|shm|journal)")
    for name in os.listdir(path.parent):
        # A process that had a deleted file open may leave these, and they contain words of messages.
        if (match := left_behind.fullmatch(name)) and not path.with_name(match[1]).exists():
            path.with_name(name).unlink(missing_ok=True)


def connect(file: Path, wait: float, mode: str = "rw") -> sqlite3.Connection:
    """Open an existing file."""
    refuse_inherited(file)
    return sqlite3.connect(
        f"file:{quote(str(file))}?mode={mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
        factory=Connection,
    )


_DAMAGED = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_SCHEMA,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    # Our statements are correct, so a table or column that they do not find is lost.
    sqlite3.SQLITE_ERROR,
}
_DAMAGED_READING = {
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
    sqlite3.SQLITE_READONLY_DBMOVED,
    # It has a log, and this file system has no shared memory for one; the next generation has none.
    sqlite3.SQLITE_IOERR_SHMMAP,
}
_DESCRIPTIONS = {
    sqlite3.SQLITE_BUSY: "another process is using it",
    sqlite3.SQLITE_LOCKED: "another process is using it",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_PERM: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk reports an error",
}


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file must be deleted. An error without a code comes from our code, or from invalid UTF-8."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return not isinstance(error, sqlite3.ProgrammingError)
    return code & 0xFF in _DAMAGED or code in _DAMAGED_READING


def describe_error(error: sqlite3.Error | OSError) -> str:
    """Why a file cannot be used now, in words for the user."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}"
    code = getattr(error, "sqlite_errorcode", 0)
    return _DESCRIPTIONS.get(code & 0xFF, str(error))
