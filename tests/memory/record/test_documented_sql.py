"""The tables have the documented columns, and the documented statements run on the file unchanged."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.store import SessionStore
from tests.contracts.store.assertions import chain
from tests.memory.record.conftest import ask

pytestmark = pytest.mark.slow

CREATE = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, model_config TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, message_count INTEGER DEFAULT 0,
    tool_call_count INTEGER DEFAULT 0, input_tokens INTEGER DEFAULT 0, output_tokens INTEGER DEFAULT 0,
    cache_read_tokens INTEGER DEFAULT 0, cache_write_tokens INTEGER DEFAULT 0, reasoning_tokens INTEGER DEFAULT 0,
    billing_provider TEXT, billing_base_url TEXT, billing_mode TEXT, estimated_cost_usd REAL, actual_cost_usd REAL,
    cost_status TEXT, cost_source TEXT, pricing_version TEXT, title TEXT, api_call_count INTEGER DEFAULT 0,
    FOREIGN KEY (parent_session_id) REFERENCES sessions(id)
);
CREATE INDEX IF NOT EXISTS idx_sessions_source ON sessions(source);
CREATE INDEX IF NOT EXISTS idx_sessions_parent ON sessions(parent_session_id);
CREATE INDEX IF NOT EXISTS idx_sessions_started ON sessions(started_at DESC);
CREATE UNIQUE INDEX IF NOT EXISTS idx_sessions_title_unique ON sessions(title) WHERE title IS NOT NULL;
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
    content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, token_count INTEGER,
    finish_reason TEXT, reasoning TEXT, reasoning_content TEXT, reasoning_details TEXT, codex_reasoning_items TEXT,
    codex_message_items TEXT
);
CREATE INDEX IF NOT EXISTS idx_messages_session ON messages(session_id, timestamp);
"""

FULL_TEXT = """
CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(content, content=messages, content_rowid=id);
CREATE TRIGGER IF NOT EXISTS messages_fts_insert AFTER INSERT ON messages BEGIN
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER IF NOT EXISTS messages_fts_delete AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
END;
CREATE TRIGGER IF NOT EXISTS messages_fts_update AFTER UPDATE ON messages BEGIN
    INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
    INSERT INTO messages_fts(rowid, content) VALUES (new.id, new.content);
END;
"""

ANCESTORS = """
WITH RECURSIVE lineage AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s JOIN lineage l ON s.id = l.parent_session_id
)
SELECT id, title, started_at, parent_session_id FROM lineage;
"""

DESCENDANTS = """
WITH RECURSIVE descendants AS (
    SELECT * FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.* FROM sessions s JOIN descendants d ON s.parent_session_id = d.id
)
SELECT id, title, started_at FROM descendants;
"""

RECENT = """
SELECT s.*,
    COALESCE(
        (SELECT SUBSTR(m.content, 1, 63) FROM messages m
         WHERE m.session_id = s.id AND m.role = 'user' AND m.content IS NOT NULL
         ORDER BY m.timestamp, m.id LIMIT 1), ''
    ) AS preview,
    COALESCE(
        (SELECT MAX(m2.timestamp) FROM messages m2 WHERE m2.session_id = s.id), s.started_at
    ) AS last_active
FROM sessions s
ORDER BY s.started_at DESC
LIMIT 20;
"""

TOKENS_BY_MODEL = """
SELECT model, COUNT(*) as session_count, SUM(input_tokens) as total_input, SUM(output_tokens) as total_output,
    SUM(estimated_cost_usd) as total_cost
FROM sessions WHERE model IS NOT NULL GROUP BY model ORDER BY total_cost DESC;
"""

HIGHEST = """
SELECT id, title, model, input_tokens + output_tokens AS total_tokens, estimated_cost_usd
FROM sessions ORDER BY total_tokens DESC LIMIT 10;
"""


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, tuple[str, object, object]]:
    return {row[1]: (row[2], row[4], row[5]) for row in connection.execute(f"PRAGMA table_info({table})")}


@pytest.mark.parametrize("table", ["sessions", "messages"])
def test_every_documented_column_exists(store: SessionStore, path: Path, table: str) -> None:
    """It has the documented type, default, key and order."""
    with closing(sqlite3.connect(":memory:")) as documented, closing(sqlite3.connect(path)) as ours:
        documented.executescript(CREATE)
        expected, found = _columns(documented, table), _columns(ours, table)
        assert {name: found[name] for name in expected} == expected
        assert list(found)[: len(expected)] == list(expected)


def test_the_documented_tables_can_be_created_again(store: SessionStore, path: Path) -> None:
    """Creating them changes nothing, and the store continues to work."""
    store.sessions.create_session("s", "cli", title="T")
    before = ask(path, "SELECT sql FROM sqlite_master ORDER BY name")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(CREATE)
    assert ask(path, "SELECT sql FROM sqlite_master ORDER BY name") == before
    assert store.messages.append_message("s", "user", "hello") == 1


def test_the_documented_full_text_table_can_be_added(store: SessionStore, path: Path) -> None:
    """Its triggers follow the writes of the store and do not disturb it."""
    store.sessions.create_session("s", "cli")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FULL_TEXT)
    number = store.messages.append_message("s", "user", "docker deployment")
    store.messages.append_message("s", "user", "something else")
    found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'docker'"
    assert ask(path, found) == [{"rowid": number}]
    store.edits.redact_message(number)
    assert ask(path, found) == []
    assert store.deletion.delete_session("s")


def test_ancestors_and_descendants_are_selected_as_documented(store: SessionStore, path: Path) -> None:
    """The recursive examples give what the methods give."""
    chain(store, "a", "b", "c")
    store.sessions.create_session("x", "cli", parent_session_id="b", relation="branch")
    assert [row["id"] for row in ask(path, ANCESTORS, ("c",))] == ["c", "b", "a"]
    assert {row["id"] for row in ask(path, DESCENDANTS, ("a",))} == {"a", "b", "c", "x"}
    for name in "abcx":
        ours = {row["id"] for row in store.lineage.get_descendants(name)}
        assert {row["id"] for row in ask(path, DESCENDANTS, (name,))} == ours


def test_recent_sessions_are_selected_as_documented(store: SessionStore, path: Path) -> None:
    """Preview and last activity agree with the list of the store, for messages older than the session too."""
    store.sessions.create_session("empty", "cli", started_at=5.0)
    store.sessions.create_session("now", "cli")
    store.messages.append_message("now", "user", "An old message", timestamp=1000.0)
    store.sessions.create_session("long", "cli", started_at=7.0)
    store.messages.append_message("long", "assistant", "Hello", timestamp=8.0)
    store.messages.append_message("long", "user", "x" * 100, timestamp=9.0)
    rows = ask(path, RECENT)
    assert [row["id"] for row in rows] == ["now", "long", "empty"]
    assert {row["id"]: row["preview"] for row in rows} == {"now": "An old message", "long": "x" * 63, "empty": ""}
    # The statement names last_active twice; the last one is the computed one.
    assert {row["id"]: row["last_active"] for row in rows} == {"now": 1000.0, "long": 9.0, "empty": 5.0}
    listed = {row["id"]: row["last_active"] for row in store.listing.list_sessions_rich()}
    assert listed == {row["id"]: row["last_active"] for row in rows}
    stored = {row["id"]: row["last_active"] for row in ask(path, "SELECT id, last_active FROM sessions")}
    assert stored == listed


def test_tokens_are_selected_as_documented(store: SessionStore, path: Path) -> None:
    """Sums by model, and the sessions that used most."""
    for name, model, tokens in (("a", "m", 10), ("b", "m", 20), ("c", "n", 5), ("d", None, 1)):
        store.sessions.create_session(name, "cli", model=model)
        store.usage.update_token_counts(name, input_tokens=tokens, output_tokens=1, estimated_cost_usd=tokens / 10)
    assert ask(path, TOKENS_BY_MODEL) == [
        {"model": "m", "session_count": 2, "total_input": 30, "total_output": 2, "total_cost": 3.0},
        {"model": "n", "session_count": 1, "total_input": 5, "total_output": 1, "total_cost": 0.5},
    ]
    assert [(row["id"], row["total_tokens"]) for row in ask(path, HIGHEST)] == [
        ("b", 21),
        ("a", 11),
        ("c", 6),
        ("d", 2),
    ]


def test_what_is_stored_can_be_read_without_us(store: SessionStore, path: Path) -> None:
    """Text as text, structures as JSON, no character escaped that need not be."""
    store.sessions.create_session("s", "cli", model_config={"é": "部署"})
    calls = [{"id": "c", "function": {"name": "ls", "arguments": '{"pfad": "Übung 部署 👀"}'}}]
    store.messages.append_message("s", "user", "Grüße 部署 👀")
    store.messages.append_message("s", "assistant", [{"type": "text", "text": "部署"}], tool_calls=calls, own="Übung")
    rows = ask(path, "SELECT * FROM messages ORDER BY id")
    assert rows[0]["content"] == "Grüße 部署 👀"
    assert json.loads(rows[1]["content"]) == [{"type": "text", "text": "部署"}]
    assert json.loads(rows[1]["tool_calls"]) == calls
    assert json.loads(rows[1]["extra"]) == {"own": "Übung"}
    everything = "".join(str(value) for row in [*rows, *ask(path, "SELECT * FROM sessions")] for value in row.values())
    assert "\\u" not in everything
    (half,) = (store.messages.append_message("s", "user", "half \ud800 部署"),)
    (row,) = ask(path, "SELECT content, content_format FROM messages WHERE id = ?", (half,))
    assert row == {"content": '"half \\ud800 部署"', "content_format": "json"}


def test_the_store_has_the_documented_tables(store: SessionStore, path: Path) -> None:
    """There is one version in one row, facts have keys, and foreign keys are valid."""
    assert ask(path, "SELECT count(*) AS rows FROM schema_version") == [{"rows": 1}]
    store.usage.set_meta("k", "v")
    assert ask(path, "SELECT value FROM state_meta WHERE key = 'k'") == [{"value": "v"}]
    assert ask(path, "PRAGMA foreign_key_check") == []
    links = {(row["table"], row["from"], row["to"]) for name in ("sessions", "messages")
             for row in ask(path, f"PRAGMA foreign_key_list({name})")}  # fmt: skip
    assert links == {("sessions", "parent_session_id", "id"), ("sessions", "session_id", "id")}
