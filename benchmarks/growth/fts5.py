"""The worker for plain SQLite FTS5: a table of messages, an index with porter stems, OR of the words, bm25.

It is as durable as Memoranda (WAL, synchronous FULL, a commit per session) and leaves stop words out of a query, as a
caller would who cares about speed.
"""

import re
import sqlite3
from pathlib import Path

from benchmarks.growth.conversation import Conversation
from benchmarks.growth.tasks import serve

_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, title TEXT, source TEXT, system_prompt TEXT);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_name TEXT, tool_calls TEXT, timestamp REAL);
CREATE INDEX IF NOT EXISTS by_session ON messages (session_id);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
  content, content='messages', content_rowid='id', tokenize='porter unicode61');
"""
_WORD = re.compile(r"\w+")
_STOP_WORDS = """
a about after all also an and are as at be because been before but by can could did do does for from had has have
how i if in into is it its of on or our should so than that the their them then there these they this to was we were
what when where which who why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class Fts5Store:
    """One database file."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(_SCHEMA)

    def contains(self, conversation: Conversation) -> bool:
        return self._db.execute("SELECT 1 FROM sessions WHERE id = ?", (conversation.id,)).fetchone() is not None

    def create(self, conversation: Conversation) -> None:
        """Nothing yet: the session is stored with its messages."""

    def append_all(self, conversation: Conversation) -> None:
        with self._db:
            self._db.execute(
                "INSERT INTO sessions VALUES (?, ?, ?, ?)",
                (conversation.id, conversation.title, conversation.source, conversation.system_prompt),
            )
            for message in conversation.messages:
                calls = "" if message.tool_calls is None else str(message.tool_calls)
                added = self._db.execute(
                    "INSERT INTO messages (session_id, role, content, tool_name, tool_calls, timestamp)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    (conversation.id, message.role, message.content, message.tool_name, calls, message.timestamp),
                )
                self._db.execute("INSERT INTO words (rowid, content) VALUES (?, ?)", (added.lastrowid, message.content))

    def end(self, conversation: Conversation) -> None:
        """Nothing: sessions do not end here."""

    def settle(self) -> None:
        """Nothing to wait for: a commit includes the index."""

    def search(self, text: str) -> list[str]:
        words = [word for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]
        joined = f'"{" ".join(words)}"' if text.startswith('"') else " OR ".join(f'"{word}"' for word in words)
        rows = self._db.execute(
            "SELECT messages.session_id, messages.content FROM words JOIN messages ON messages.id = words.rowid"
            " WHERE words MATCH ? ORDER BY rank LIMIT 30",
            (joined or '""',),
        )
        return list(dict.fromkeys(session for session, _ in rows))[:3]

    def close(self) -> None:
        self._db.close()


class Fts5:
    """SQLite of this interpreter."""

    def open(self, home: Path) -> Fts5Store:
        home.mkdir(parents=True, exist_ok=True)
        return Fts5Store(home / "messages.db")

    def index_files(self, home: Path) -> list[Path]:
        """None: the index is in the file of the messages."""
        return []


if __name__ == "__main__":
    serve(Fts5())
