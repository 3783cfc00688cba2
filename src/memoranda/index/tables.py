"""The tables of an index file.

`words` and `pairs` are contentless full-text tables: tokens, no text. Words have positions, so that phrases can
be found. Pairs of characters of unspaced scripts do not: two that overlap are nearly a phrase, and their positions
would take more room than everything else. Rows are only added to both tables. `docs` says which rows are alive: a
message that is changed or deleted loses its row in `docs`, so its tokens match nothing; a rebuild removes them. A
message that is indexed again gets a new number; numbers are never reused.
"""

import sqlite3

from memoranda.index.tokenizer import VERSION as SEGMENTATION

# Changes with these tables, or with what is indexed of a message.
LAYOUT = 5
FORMAT = f"{LAYOUT}.{SEGMENTATION}"

PAGE_SIZE = 8192
# A leaf of a full-text table fills a page of the file and never overflows into a second one: SQLite then notices damage
# to any page, and there are fewer leaves to merge than with the default of half this size.
_LEAF_SIZE = 8000
# A batch is collected in memory as one segment: segments must be merged later, and each repeats words of the others.
_MAX_SEGMENT_BYTES = 32_000_000

_TABLES = """
CREATE TABLE state (
    store TEXT NOT NULL,             -- the store whose messages are indexed
    format TEXT NOT NULL,
    message INTEGER NOT NULL,        -- a position: every message up to it is indexed
    change INTEGER NOT NULL,         -- a position: every change up to it is applied
    next_doc INTEGER NOT NULL,
    messages INTEGER NOT NULL,       -- alive, without titles
    tokens INTEGER NOT NULL,         -- of these
    dead INTEGER NOT NULL,           -- docs that lost their row
    mark TEXT NOT NULL               -- the last message indexed, to recognise the store again
);
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    user TEXT,
    source TEXT NOT NULL,
    project TEXT,
    id TEXT NOT NULL UNIQUE,
    conversation TEXT NOT NULL,
    title TEXT,
    started REAL NOT NULL,
    title_doc INTEGER,               -- the doc of its title, if that has words
    first_doc INTEGER,               -- its messages' docs lie between these two
    last_doc INTEGER,
    places INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE docs (
    doc INTEGER PRIMARY KEY,         -- the rowid in words and pairs
    message INTEGER NOT NULL,        -- 0 for a title
    session INTEGER NOT NULL,
    place INTEGER NOT NULL,
    role INTEGER NOT NULL,           -- a kind of message_text.py
    length INTEGER NOT NULL,
    time REAL NOT NULL,
    mark INTEGER NOT NULL            -- tells whether the text has changed
);
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', columnsize = 0, tokenize = 'ascii');
CREATE VIRTUAL TABLE pairs USING fts5 (text, content = '', columnsize = 0, tokenize = 'ascii', detail = none);
"""


def create(connection: sqlite3.Connection, store: str) -> None:
    """Create the tables in an empty file, within the caller's transaction."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    for table in ("words", "pairs"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('pgsz', ?)", (_LEAF_SIZE,))
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('hashsize', ?)", (_MAX_SEGMENT_BYTES,))
    connection.execute("INSERT INTO state VALUES (?, ?, 0, 0, 1, 0, 0, 0, '')", (store, FORMAT))
