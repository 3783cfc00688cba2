"""Hermes and Memoranda use the same file: each reads what the other wrote.

The first tests execute the statements that Hermes 0.19.0 executes; the last one runs Hermes itself.
"""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memoranda.api.memory import open_memory
from memoranda.errors import NewerStoreError
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.memory.record.store import SessionStore, open_store

pytestmark = pytest.mark.slow

PYTHON = Path(__file__).parents[3] / ".hermes-venv" / "bin" / "python"
_OPENED = (
    "ALTER TABLE sessions ADD COLUMN session_key TEXT",
    "ALTER TABLE messages ADD COLUMN api_content TEXT",
    "CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL)",
    "DELETE FROM schema_version",
    "INSERT INTO schema_version (version) VALUES (22)",
)
_AS_HERMES = """
import json, pathlib, sys
from hermes_state import SessionDB
db = SessionDB(pathlib.Path(sys.argv[1]))
before = {row["id"]: row["message_count"] for row in db.list_sessions_rich(include_children=True)}
texts = [message["content"] for message in db.get_messages("next")]
found = sorted({row["session_id"] for row in db.search_messages("deadlock")})
db.end_session("next", "user_exit")
empty = db.delete_empty_sessions()
db.append_message("next", "user", "the zebra came later")
db.create_session("theirs", "cli")
db.append_message("theirs", "user", [{"type": "text", "text": "an okapi in a list"}])
db.close()
print(json.dumps({"counts": before, "texts": texts, "found": found, "empty": empty}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with a compressed conversation: two messages, of which the second was kept."""
    with open_memory(tmp_path / "home") as memory:
        store = memory.sessions
        store.create_session("first", "cli")
        store.append_message("first", "user", "How do I fix the deadlock?")
        kept = store.append_message("first", "assistant", "Take both locks in one order.")
        store.rotation.rotate_session("first", "next", [Summary("In short."), KeptMessage(kept)], last_seen=kept)
    yield tmp_path / "home"


def change(home: Path, *statements: str) -> None:
    with closing(sqlite3.connect(home / "state.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def texts(store: SessionStore, session_id: str) -> list[Any]:
    return [message["content"] for message in store.messages.get_messages(session_id)]


def test_plain_sql_reads_kept_messages(home: Path) -> None:
    """Messages that compression kept have their content in the new session, too."""
    with closing(sqlite3.connect(home / "state.db")) as connection:
        rows = connection.execute("SELECT content FROM messages WHERE session_id = 'next' ORDER BY id").fetchall()
    assert rows[1] == ("Take both locks in one order.",)


def test_the_context_of_a_session_is_counted_as_hermes_counts_it(home: Path) -> None:
    """Hermes deletes an ended session whose count is 0; what was said is counted apart."""
    with open_store(home / "state.db") as store:
        rows = {name: store.sessions.get_session(name) or {} for name in ("first", "next")}
        counts = {name: (row["message_count"], row["own_message_count"]) for name, row in rows.items()}
        assert counts == {"first": (2, 2), "next": (2, 0)}
        assert [row["message_count"] for row in store.listing.list_sessions_rich()] == [2]
        assert store.usage.statistics()["messages"] == 2
        assert store.maintenance.miscounted_sessions() == []


def test_a_store_that_hermes_has_opened_is_not_from_a_newer_memoranda(home: Path) -> None:
    """Hermes records its own version in the table; ours stays known, and Hermes's stays in the table."""
    change(home, *_OPENED)
    for _ in range(2):
        with open_store(home / "state.db") as store:
            assert len(texts(store, "next")) == 2
    change(home, "DELETE FROM state_meta WHERE key = 'memoranda_schema_version'")
    with open_store(home / "state.db") as store:
        store.messages.append_message("next", "user", "and then?")
    with closing(sqlite3.connect(home / "state.db")) as connection:
        assert connection.execute("SELECT version FROM schema_version").fetchall() == [(22,)]


def test_a_newer_memoranda_is_recognized_beside_hermes(home: Path) -> None:
    """Its version is in a place that Hermes does not change."""
    change(home, *_OPENED, "UPDATE state_meta SET value = '99' WHERE key = 'memoranda_schema_version'")
    with pytest.raises(NewerStoreError, match="version 99"):
        open_store(home / "state.db")


def test_what_hermes_writes_is_listed_and_found(home: Path) -> None:
    """New messages and new sessions, with structured content, in the order of activity."""
    change(
        home,
        *_OPENED,
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('next', 'user', 'a zebra', 4e9)",
        "UPDATE sessions SET message_count = message_count + 1 WHERE id = 'next'",
        "INSERT INTO sessions (id, source, started_at) VALUES ('theirs', 'cli', 1e9)",
        "INSERT INTO messages (session_id, role, content, timestamp)"
        ' VALUES (\'theirs\', \'user\', char(0) || \'json:[{"type": "text", "text": "an okapi"}]\', 1e9)',
        "INSERT INTO sessions (id, source, parent_session_id, started_at) VALUES ('sub', 'subagent', 'theirs', 1e9)",
        "UPDATE sessions SET end_reason = 'compression', ended_at = 1e9 WHERE id = 'theirs'",
        "INSERT INTO sessions (id, source, parent_session_id, started_at) VALUES ('later', 'cli', 'theirs', 1e9)",
    )
    with open_memory(home) as memory:
        store = memory.sessions
        assert texts(store, "theirs") == [[{"type": "text", "text": "an okapi"}]]
        for word, session in (("zebra", "next"), ("okapi", "theirs")):
            assert [hit["session_id"] for hit in memory.search(word)["results"]] == [session]
        rows = {name: store.get_session(name) or {} for name in ("next", "theirs", "sub", "later")}
        assert rows["next"]["last_active"] == 4e9
        assert (rows["next"]["message_count"], rows["next"]["own_message_count"]) == (3, 1)
        assert [rows[name]["relation"] for name in ("theirs", "sub", "later")] == [None, "delegation", "compression"]
        assert rows["later"]["conversation_id"] == "theirs"


def test_text_that_starts_like_structured_content_of_hermes_stays_text(home: Path) -> None:
    """It is stored with a mark of ours."""
    with open_store(home / "state.db") as store:
        store.messages.append_message("next", "user", "\x00json:[1]")
        assert texts(store, "next")[-1] == "\x00json:[1]"


@pytest.mark.skipif(not PYTHON.exists(), reason="Hermes is not installed in .hermes-venv")
def test_hermes_itself_reads_and_writes_the_store(home: Path) -> None:
    """It sees the texts and counts of a compressed conversation, does not call it empty, and we find what it wrote."""
    done = subprocess.run(
        [PYTHON, "-c", _AS_HERMES, home / "state.db"],
        env={**os.environ, "HERMES_HOME": str(home)}, capture_output=True, text=True, check=True, cwd=home,
    )  # fmt: skip
    assert '"texts": ["In short.", "Take both locks in one order."]' in done.stdout
    assert '"found": ["first"' in done.stdout
    assert '"counts": {"next": 2, "first": 2}' in done.stdout
    assert '"empty": 0' in done.stdout
    with open_memory(home) as memory:
        assert texts(memory.sessions, "next")[-1] == "the zebra came later"
        assert texts(memory.sessions, "theirs") == [[{"type": "text", "text": "an okapi in a list"}]]
        for word, session in (("zebra", "next"), ("okapi", "theirs")):
            assert [hit["session_id"] for hit in memory.search(word)["results"]] == [session]
