"""Equal system prompts are stored once: other programs, damage and concurrent sessions."""

import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.health import check, salvage
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.memory.record.system_prompts import SharedPrompts, prompt_id
from memoranda.support.text_matcher import TextMatcher
from tests.memory.record.conftest import ask, file_bytes

pytestmark = pytest.mark.slow

PROMPT = "You are the assistant of a bakery. " * 200
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "schema.md"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def prompt_of(store: SessionStore, session_id: str) -> str | None:
    row = store.sessions.get_session(session_id)
    assert row is not None
    prompt: str | None = row["system_prompt"]
    return prompt


def test_plain_sql_reads_the_prompts(path: Path, store: SessionStore) -> None:
    """With the statement that the reference page shows; no session has a copy of the text."""
    statement = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    for number in range(3):
        store.sessions.create_session(f"s{number}", "cli", system_prompt=PROMPT)
    assert ask(path, statement) == [{"id": f"s{number}", "prompt": PROMPT} for number in range(3)]
    assert ask(path, "SELECT count(*) AS n, max(system_prompt) AS text FROM sessions") == [{"n": 3, "text": None}]


def test_hermes_finds_the_prompts_in_the_rows(path: Path) -> None:
    """Once Hermes has opened the file, sessions have their prompts in their own rows again, and new ones too."""
    with open_store(path) as store:
        for name in "ab":
            store.sessions.create_session(name, "cli", system_prompt=PROMPT)
    change(path, "CREATE TABLE compression_locks (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL)")
    with open_store(path) as store:
        store.sessions.create_session("c", "cli", system_prompt=PROMPT)
        prompts = SharedPrompts(store.engine, store.scope, None)
        assert [prompts.fill_rows_for_hermes(), prompts.fill_rows_for_hermes()] == [2, 0]
        store.sessions.update_session("b", system_prompt="new")
        change(path, "UPDATE sessions SET system_prompt = 'by Hermes' WHERE id = 'c'")
        assert [prompt_of(store, name) for name in "abc"] == [PROMPT, "new", "by Hermes"]
    rows = ask(path, "SELECT id, system_prompt FROM sessions ORDER BY id")
    assert [row["system_prompt"] for row in rows] == [PROMPT, "new", "by Hermes"]
    assert ask(path, "SELECT * FROM system_prompts") == []


def test_another_program_that_sets_a_prompt_is_right(path: Path, store: SessionStore) -> None:
    """A text in the row of a session counts, and deleting a session with SQL removes its prompt."""
    for name in "ab":
        store.sessions.create_session(name, "cli", system_prompt=PROMPT)
    change(path, "UPDATE sessions SET system_prompt = 'mine' WHERE id = 'a'")
    assert [prompt_of(store, name) for name in "ab"] == ["mine", PROMPT]
    change(path, "DELETE FROM sessions")
    assert ask(path, "SELECT * FROM system_prompts") == []


def test_a_forgotten_text_is_in_no_byte_of_the_file(path: Path) -> None:
    """The old prompt is overwritten, however many sessions had it."""
    with open_store(path) as store:
        for name in "abc":
            store.sessions.create_session(name, "cli", system_prompt=f"{PROMPT} The zebra is Otto.")
        store.passages.replace(TextMatcher(["Otto"]))
        assert "zebra" in (prompt_of(store, "c") or "")
    assert b"Otto" not in file_bytes(path)


def test_a_damaged_prompt_is_noticed_and_removed(path: Path) -> None:
    """A prompt is used as it was or not at all; the doctor names it, and the sessions stay."""
    with open_store(path) as store:
        store.sessions.create_session("damaged", "cli", system_prompt=PROMPT)
        store.sessions.create_session("whole", "cli", system_prompt="whole")
    change(path, "UPDATE system_prompts SET text = replace(text, 'bakery', 'bakerx') WHERE length(text) > 10")
    (issue,) = [each for each in check(path) if "prompts" in each.problem]
    assert "1 system prompts" in issue.problem and issue.repair is not None
    issue.repair()
    assert not [each for each in check(path) if "prompts" in each.problem]
    with open_store(path) as store:
        assert [prompt_of(store, name) for name in ("damaged", "whole")] == [None, "whole"]


def test_salvage_saves_whole_prompts(path: Path) -> None:
    """A prompt that is damaged is lost, and no session refers to it any more."""
    with open_store(path) as store:
        store.sessions.create_session("a", "cli", system_prompt=PROMPT)
        store.sessions.create_session("b", "cli", system_prompt=PROMPT)
        store.sessions.create_session("c", "cli", user_id="anna", system_prompt="short")
    change(path, "UPDATE system_prompts SET text = 'sort' WHERE text = 'short'")
    salvage(path, path.with_name("kept"))
    with open_store(path) as store:
        assert [prompt_of(store, name) for name in "abc"] == [PROMPT, PROMPT, None]
        assert SharedPrompts(store.engine, store.scope, None).check().sessions_without == []


def test_a_user_and_a_text_have_one_id() -> None:
    """No other user and text together look the same."""
    pairs = [("a", "b"), ("ab", ""), (None, "ab"), ("", "1 ab"), ("a", "\ud800"), (None, "0 1 ab")]
    assert len({prompt_id(user, text) for user, text in pairs}) == len(pairs)
    assert prompt_id(None, "x") == prompt_id("", "x")


def test_sessions_begin_and_end_with_one_prompt_at_the_same_time(location: str | Path) -> None:
    """Whichever transaction comes first, no session loses its prompt and no prompt stays behind."""

    def work(number: int) -> None:
        with open_store(location) as store:
            for turn in range(12):
                store.sessions.create_session(f"{number}-{turn}", "cli", system_prompt=PROMPT)
                assert prompt_of(store, f"{number}-{turn}") == PROMPT
                store.deletion.delete_session(f"{number}-{turn}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    with open_store(location) as store, store.engine.reading() as connection:
        assert connection.execute("SELECT count(*) FROM system_prompts").fetchone()[0] == 0


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """The location of a store: a file, then a server."""
    if request.param == "server":
        return str(request.getfixturevalue("postgres_url"))
    return tmp_path / "state.db"
