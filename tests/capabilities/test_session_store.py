"""The record (L2): every message of every session in one SQLite file, readable by its documented tables."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import SessionError
from memoranda.support.home import Home
from tests.capabilities.conversations import fill_context, take_turn
from tests.timing import GIVE_UP

SESSION_COLUMNS = [
    "id",
    "source",
    "user_id",
    "model",
    "model_config",
    "system_prompt",
    "parent_session_id",
    "started_at",
    "ended_at",
    "end_reason",
    "message_count",
    "tool_call_count",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "billing_provider",
    "billing_base_url",
    "billing_mode",
    "estimated_cost_usd",
    "actual_cost_usd",
    "cost_status",
    "cost_source",
    "pricing_version",
    "title",
    "api_call_count",
]
MESSAGE_COLUMNS = [
    "id",
    "session_id",
    "role",
    "content",
    "tool_call_id",
    "tool_calls",
    "tool_name",
    "timestamp",
    "token_count",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "codex_reasoning_items",
    "codex_message_items",
]
PREVIEWS = """
    SELECT s.id,
      COALESCE((SELECT SUBSTR(m.content, 1, 63) FROM messages m WHERE m.session_id = s.id AND m.role = 'user'
                AND m.content IS NOT NULL ORDER BY m.timestamp, m.id LIMIT 1), '') AS preview,
      COALESCE((SELECT MAX(m2.timestamp) FROM messages m2 WHERE m2.session_id = s.id), s.started_at) AS last_active
    FROM sessions s ORDER BY s.started_at DESC LIMIT 20
"""
ANCESTORS = """
    WITH RECURSIVE lineage AS (SELECT * FROM sessions WHERE id = ?
      UNION ALL SELECT s.* FROM sessions s JOIN lineage l ON s.id = l.parent_session_id)
    SELECT id FROM lineage
"""
DESCENDANTS = """
    WITH RECURSIVE descendants AS (SELECT * FROM sessions WHERE id = ?
      UNION ALL SELECT s.* FROM sessions s JOIN descendants d ON s.parent_session_id = d.id)
    SELECT id FROM descendants
"""
TOKENS = """
    SELECT model, COUNT(*), SUM(input_tokens), SUM(output_tokens), SUM(estimated_cost_usd) FROM sessions
    WHERE model IS NOT NULL GROUP BY model
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[memoranda.SessionDB]:
    with memoranda.SessionDB(tmp_path / "state.db") as opened:
        yield opened


def test_the_store_opens_by_default_in_the_default_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As documented: SessionDB() and SessionDB(db_path=...)."""
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    with memoranda.SessionDB() as opened:
        opened.create_session("s1", source="cli")
    with memoranda.SessionDB(db_path=Home.at(tmp_path / "home").state_db) as opened:
        assert opened.get_session("s1") is not None


def test_the_documented_columns_and_queries_work(db: memoranda.SessionDB) -> None:
    """Another program reads previews, lineage and tokens with plain SQL."""
    db.create_session("s1", source="cli", model="m/1", user_id="user_1", parent_session_id=None)
    calls = [{"id": "call_1", "function": {"name": "terminal", "arguments": "{}"}}]
    db.append_message("s1", "user", content="How do I deploy?")
    db.append_message(
        "s1", role="assistant", content="Like this.", tool_calls=calls, token_count=150, finish_reason="stop",
        reasoning="Let me think.",
    )  # fmt: skip
    db.update_token_counts("s1", input_tokens=100, output_tokens=20, estimated_cost_usd=0.5)
    assert db.end_session("s1", end_reason="compression")
    db.create_session("s2", source="cli", parent_session_id="s1")
    with closing(sqlite3.connect(db.path)) as connection:
        for table, columns in (("sessions", SESSION_COLUMNS), ("messages", MESSAGE_COLUMNS)):
            found = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            assert [name for name in columns if name not in found] == []
        assert connection.execute("SELECT count(*) FROM schema_version").fetchone() == (1,)
        assert {row[0]: row[1] for row in connection.execute(PREVIEWS)} == {"s1": "How do I deploy?", "s2": ""}
        assert [row[0] for row in connection.execute(ANCESTORS, ("s2",))] == ["s2", "s1"]
        assert [row[0] for row in connection.execute(DESCENDANTS, ("s1",))] == ["s1", "s2"]
        assert connection.execute(TOKENS).fetchall() == [("m/1", 1, 100, 20, 0.5)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert [message["reasoning"] for message in db.get_messages("s1")] == [None, "Let me think."]
    conversation = db.get_messages_as_conversation("s1")
    assert [message["role"] for message in conversation] == ["user", "assistant"]
    assert db.reopen_session("s1") is False


@pytest.mark.slow
def test_several_processes_write_at_once(tmp_path: Path) -> None:
    """Contention makes a writer wait; it loses nothing."""
    code = (
        "import sys, memoranda\n"
        "with memoranda.SessionDB(sys.argv[1]) as db:\n"
        "    db.create_session(sys.argv[2], source='cli')\n"
        "    for number in range(30):\n"
        "        db.append_message(sys.argv[2], 'user', content=f'message {number}')\n"
    )
    path = tmp_path / "state.db"
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), f"s{number}"]) for number in range(3)]
    assert [writer.wait(GIVE_UP) for writer in writers] == [0, 0, 0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM messages").fetchone() == (90,)


def test_a_title_names_one_conversation_and_is_numbered(db: memoranda.SessionDB) -> None:
    """Titles are unique, resolve to the latest of their lineage, and have a next one."""
    for name in ("s1", "s2"):
        db.create_session(name, source="cli")
    db.set_session_title("s1", "Fix Docker Build")
    with pytest.raises(SessionError):
        db.set_session_title("s2", "Fix Docker Build")
    assert db.get_next_title_in_lineage("Fix Docker Build") == "Fix Docker Build #2"
    db.set_session_title("s2", "Fix Docker Build #2")
    assert db.resolve_session_by_title("Fix Docker Build") == "s2"
    assert db.resolve_session_id("s1") == "s1"


def test_a_child_is_a_delegation_unless_its_parent_was_compressed(db: memoranda.SessionDB) -> None:
    """Delegations are hidden in lists and deleted with their parent; a compressed conversation is one entry."""
    db.create_session("parent", source="cli")
    db.append_message("parent", "user", content="Hello.")
    db.create_session("child", source="cli", parent_session_id="parent")
    db.end_session("parent", "compression")
    db.create_session("tip", source="cli", parent_session_id="parent")
    db.append_message("tip", "user", content="Hello again.")
    assert db.get_compression_tip("parent") == "tip"
    assert [row["id"] for row in db.list_sessions_rich()] == ["tip"]
    assert db.delete_session("parent")
    assert db.get_session("child") is None


def test_sessions_are_exported_pruned_cleared_and_deleted(tmp_path: Path) -> None:
    """Only ended sessions are pruned; clearing keeps the session; an export can be imported elsewhere."""
    with memoranda.SessionDB(tmp_path / "a.db") as db, memoranda.SessionDB(tmp_path / "b.db") as other:
        for name, source in (("old", "cli"), ("old-telegram", "telegram"), ("open", "cli")):
            db.create_session(name, source=source, started_at=1_000_000_000)
            db.append_message(name, "user", content=f"Words of {name}.", timestamp=1_000_000_000)
        for name in ("old", "old-telegram"):
            db.end_session(name, "user_exit")
        exported = db.export_session("old")
        assert exported is not None and exported["messages"][0]["content"] == "Words of old."
        assert [session["id"] for session in db.export_all(source="cli")] == ["old", "open"]
        assert other.import_sessions(db.export_all()).ok
        assert other.get_messages_as_conversation("open") == db.get_messages_as_conversation("open")
        assert db.prune_sessions(older_than_days=30, source="telegram") == 1
        assert db.get_session("old-telegram") is None
        assert db.prune_sessions(older_than_days=90) == 1
        assert db.get_session("open") is not None
        db.clear_messages("open")
        assert db.get_session("open") is not None and db.get_messages("open") == []
        assert db.delete_session("open") and db.get_session("open") is None


def test_a_long_conversation_is_one_entry_of_the_list(tmp_path: Path) -> None:
    """Its latest session, with the first words and the number of messages of all of it."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session(source="cli")
        session.rename("My Session")
        take_turn(session, "The first words.")
        fill_context(session)
        assert session.compress(force=True).done
        (row,) = memory.sessions.list_sessions_rich()
        assert (row["id"], row["title"]) == (session.id, "My Session #2")
        assert row["preview"].startswith("The first words.")
        session.end()


def test_another_user_sees_nothing_of_it(tmp_path: Path) -> None:
    """Lists, ids, titles and search are those of one user."""
    with memoranda.open(tmp_path, user="ana") as memory, memory.session() as session:
        take_turn(session, "The zebra is mine.")
        session.rename("Zebra")
    with memoranda.open(tmp_path, user="bob") as memory:
        db = memory.sessions
        assert db.list_sessions_rich() == [] and db.get_session(session.id) is None
        assert db.resolve_session_by_title("Zebra") is None and db.search_messages("zebra") == []
