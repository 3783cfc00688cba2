"""Hermes homes made up for these tests: databases with the tables of several schema versions."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

# The columns that matter, as version 22 (Hermes 0.19) and one of the first versions have them.
_PRESENT = {
    "sessions": "id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, chat_id TEXT, model TEXT, model_config TEXT,"
    " system_prompt TEXT, parent_session_id TEXT REFERENCES sessions(id), started_at REAL NOT NULL, ended_at REAL,"
    " end_reason TEXT, message_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, cwd TEXT, git_branch TEXT,"
    " title TEXT, archived INTEGER NOT NULL DEFAULT 0",
    "messages": "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),"
    " role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, effect_disposition TEXT,"
    " timestamp REAL NOT NULL, token_count INTEGER, finish_reason TEXT, reasoning TEXT, reasoning_content TEXT,"
    " reasoning_details TEXT, codex_reasoning_items TEXT, codex_message_items TEXT, platform_message_id TEXT,"
    " observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1, compacted INTEGER NOT NULL DEFAULT 0,"
    " api_content TEXT",
}
_EARLY = {
    "sessions": "id TEXT PRIMARY KEY, source TEXT NOT NULL, model TEXT, parent_session_id TEXT,"
    " started_at REAL NOT NULL, ended_at REAL, end_reason TEXT",
    "messages": "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,"
    " tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL",
}


class HermesHome:
    """A home with a database that can be written to as Hermes does."""

    def __init__(self, root: Path, *, early: bool = False, columns: str = "") -> None:
        self.root = root
        self.database = root / "state.db"
        root.mkdir(parents=True, exist_ok=True)
        self._clock = 1_794_734_056.707_950
        tables = _EARLY if early else _PRESENT
        with closing(self.connect()) as connection:
            connection.execute("CREATE TABLE schema_version (version INTEGER NOT NULL)")
            connection.execute("INSERT INTO schema_version VALUES (?)", (1 if early else 22,))
            connection.execute(f"CREATE TABLE sessions ({tables['sessions']})")
            connection.execute(f"CREATE TABLE messages ({tables['messages']}{columns})")

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.database, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        return connection

    def session(self, name: str, **columns: Any) -> str:
        self._clock += 1.25
        self._insert("sessions", {"id": name, "source": "cli", "started_at": self._clock, **columns})
        return name

    def say(self, session: str, *texts: str) -> None:
        """Write messages of a user and an assistant in turn."""
        for number, text in enumerate(texts):
            self.message(session, "assistant" if number % 2 else "user", text)

    def message(self, session: str, role: str, content: Any = None, **columns: Any) -> None:
        self._clock += 0.337
        stored = content if isinstance(content, str | bytes | None) else "\x00json:" + json.dumps(content)
        row = {"session_id": session, "role": role, "content": stored, "timestamp": self._clock}
        self._insert("messages", row | columns)

    def write_again(self, session: str, *rows: tuple[str, str]) -> None:
        """Write rows as compression does: together, a microsecond apart."""
        self._clock += 0.337
        for number, (role, content) in enumerate(rows):
            at = self._clock + number * 1e-6
            self._insert("messages", {"session_id": session, "role": role, "content": content, "timestamp": at})

    def execute(self, statement: str, *values: Any) -> None:
        with closing(self.connect()) as connection:
            connection.execute(statement, values)

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        session_nodes = ", ".join("?" * len(row))
        self.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({session_nodes})", *row.values())
