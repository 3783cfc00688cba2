"""The tables of an index file.

`postings` says which documents have a token. A document is a message or a title, and its row in `docs` says which. New
documents are written as a new segment, so that an update touches few pages; small segments are merged into larger
ones, up to a whole block of `doc_sets`. Sources, projects, users and kinds of messages are tokens, too: a filter is
one more set (`message_text.filter_token`).

A message that is changed or deleted loses its row in `docs` and is listed in `dead` until its number has been removed
from every posting (`segments.purge`). A message that is indexed again gets a new number; numbers are never reused.
"""

import sqlite3
import sys

from memoranda.search.index.tokenizer import VERSION as SEGMENTATION

# Changes with these tables, or with what is indexed of a message. Lists of offsets have the byte order of the machine.
LAYOUT = 7
FORMAT = f"{LAYOUT}.{SEGMENTATION}.{sys.byteorder}"

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
    source TEXT NOT NULL,
    project TEXT,
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
"""


def create(connection: sqlite3.Connection, store: str) -> None:
    """Create the tables in an empty file, within the caller's transaction."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("INSERT INTO state VALUES (?, ?, 0, 0, 0, 0, 0, 0, '', 0)", (store, FORMAT))
