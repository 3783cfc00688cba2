"""The index follows what another program does to state.db with SQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.api.memory import Memory

pytestmark = pytest.mark.slow


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        opened.sessions.create_session("s", "cli")
        for number, animal in enumerate(("walrus", "penguin", "kangaroo")):
            opened.sessions.append_message("s", "user", f"A {animal} walks by.", timestamp=float(number))
        assert _found(opened, "walrus") == 1
        yield opened


def _execute(memory: Memory, statement: str) -> None:
    with closing(sqlite3.connect(memory.home.state_db)) as connection, connection:
        connection.execute(statement)


def _found(memory: Memory, word: str) -> int:
    return len(memory.search(word)["results"])


def test_an_updated_text_is_found_by_its_new_words_only(memory: Memory) -> None:
    """In the same process that had indexed the old ones."""
    _execute(memory, "UPDATE messages SET content = 'An ostrich runs.' WHERE content LIKE '%walrus%'")
    assert (_found(memory, "ostrich"), _found(memory, "walrus"), _found(memory, "penguin")) == (1, 0, 1)


def test_updated_tool_calls_are_found(memory: Memory) -> None:
    """By the names and arguments of the tools."""
    calls = '[{"id": "1", "function": {"name": "terraform_plan", "arguments": "{}"}}]'
    _execute(memory, f"UPDATE messages SET tool_calls = '{calls}' WHERE content LIKE '%walrus%'")
    assert _found(memory, "terraform_plan") == 1


def test_deleted_messages_are_gone_and_their_ids_may_come_back(memory: Memory) -> None:
    """SQLite gives the id of the newest message to the next one that another program inserts."""
    _execute(memory, "DELETE FROM messages WHERE content LIKE '%kangaroo%'")
    assert _found(memory, "kangaroo") == 0
    _execute(memory, "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s', 'user', 'A koala.', 9)")
    assert _found(memory, "koala") == 1


def test_a_message_that_is_hidden_by_its_flags_is_found_no_more(memory: Memory) -> None:
    """And found again when they are set."""
    _execute(memory, "UPDATE messages SET active = 0 WHERE content LIKE '%penguin%'")
    assert _found(memory, "penguin") == 0
    _execute(memory, "UPDATE messages SET active = 1 WHERE content LIKE '%penguin%'")
    assert _found(memory, "penguin") == 1


def test_a_new_title_is_found(memory: Memory) -> None:
    """Titles are searched too."""
    _execute(memory, "UPDATE sessions SET title = 'Safari' WHERE id = 's'")
    assert _found(memory, "safari") == 1


def test_deleting_a_session_notes_it_once(memory: Memory) -> None:
    """Not once for every message."""
    memory.sessions.delete_session("s")
    with closing(sqlite3.connect(memory.home.state_db)) as connection:
        assert connection.execute("SELECT count(*) FROM changes").fetchone() == (1,)
