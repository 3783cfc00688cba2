"""Hermes's sessions are read from any version: every message once, with lineage, even while Hermes is running."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.importers.hermes.reader import Hermes
from memoranda.memory.record.store import open_store
from tests.examples import examples
from tests.importers.hermes.homes import HermesHome
from tests.importers.import_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def hermes(tmp_path: Path) -> HermesHome:
    return HermesHome(tmp_path / ".hermes")


def contents(home: Home, session_id: str) -> list[Any]:
    return [message.get("content") for message in home.messages(session_id)]


def test_a_session_comes_with_everything_that_matters(home: Home, hermes: HermesHome) -> None:
    """Title, model, directory, calls, reasoning, structure; not what was sent to the model with memories in it."""
    hermes.session("s1", title="Locks", model="opus", cwd="/code", git_branch="main", input_tokens=7, source="telegram")
    hermes.message("s1", "user", [{"type": "text", "text": "look"}], platform_message_id="tg-1", api_content="SECRET")
    hermes.message("s1", "assistant", None, tool_calls='[{"id": "c1", "function": {"name": "ls"}}]', reasoning="hm",
                   reasoning_details='[{"type": "x"}]', finish_reason="tool_calls")  # fmt: skip
    hermes.message("s1", "tool", "a.py", tool_call_id="c1", tool_name="ls", effect_disposition="read")
    summary = home.take(Hermes(), hermes.root)
    row = home.everything()["hermes-s1"]
    assert (row["source"], row["title"], row["model"], row["directory"]) == ("telegram", "Locks", "opus", "/code")
    assert (row["host_session_id"], row["input_tokens"], row["hermes_git_branch"]) == ("s1", 7, "main")
    asked, called, answered = home.messages("hermes-s1")
    assert (asked["content"], asked["platform_message_id"]) == ([{"type": "text", "text": "look"}], "tg-1")
    assert "SECRET" not in str(row)
    assert called["tool_calls"] == [{"id": "c1", "function": {"name": "ls"}}]
    assert (called["reasoning"], called["reasoning_details"]) == ("hm", [{"type": "x"}])
    assert (answered["tool_name"], answered["tool_call_id"], answered["effect_disposition"]) == ("ls", "c1", "read")
    assert (summary.messages, summary.problem_count) == (3, 0)


def test_the_first_versions_had_fewer_columns(home: Home, tmp_path: Path) -> None:
    """Their sessions are imported too, with lineage."""
    early = HermesHome(tmp_path / "early", early=True)
    early.session("s1", end_reason="compression")
    early.say("s1", "hello", "hi")
    early.session("s2", parent_session_id="s1")
    early.say("s2", "and then?")
    home.take(Hermes(), early.root)
    assert contents(home, "hermes-s1") == ["hello", "hi"]
    assert home.everything()["hermes-s2"]["relation"] == "compression"


def test_future_versions_may_have_more_columns(home: Home, tmp_path: Path) -> None:
    """Their values are kept by name."""
    later = HermesHome(tmp_path / "later", columns=", mood TEXT")
    later.session("s1")
    later.message("s1", "user", "hello", mood="curious")
    home.take(Hermes(), later.root)
    assert home.messages("hermes-s1")[0]["mood"] == "curious"


def test_lineage_is_kept(home: Home, hermes: HermesHome) -> None:
    """Continuations, branches and delegations, whatever the order of their rows and the length of their names."""
    hermes.session("root", end_reason="compression")
    hermes.session("next", parent_session_id="root")
    hermes.session("helper", parent_session_id="next", model_config='{"_delegate_from": "next"}')
    hermes.session("other", parent_session_id="next", model_config='{"_branched_from": "next"}')
    hermes.session("tool", parent_session_id="root", source="subagent")
    hermes.execute("UPDATE sessions SET started_at = 1 WHERE id = 'next'")
    for name in ("root", "next", "helper", "other", "tool"):
        hermes.say(name, f"in {name}")
    summary = home.take(Hermes(), hermes.root)
    relations = {name: (row["parent_session_id"], row["relation"]) for name, row in home.everything().items()}
    assert relations == {
        "hermes-root": (None, None),
        "hermes-next": ("hermes-root", "compression"),
        "hermes-helper": ("hermes-next", "delegation"),
        "hermes-other": ("hermes-next", "branch"),
        "hermes-tool": ("hermes-root", "delegation"),
    }
    assert summary.detached == []


def test_compression_in_place_adds_nothing_twice(home: Home, hermes: HermesHome) -> None:
    """Compacted rows stay in the record, repeated rows are copies of them, and the summary is marked as one."""
    hermes.session("s1")
    hermes.say("s1", "one", "two", "three", "yes")
    hermes.execute("UPDATE messages SET active = 0, compacted = 1")
    hermes.write_again("s1", ("user", "one"), ("assistant", "[CONTEXT COMPACTION] two and three"), ("assistant", "yes"))
    hermes.say("s1", "four", "yes")
    summary = home.take(Hermes(), hermes.root)
    found = home.store.messages.get_messages("hermes-s1", include_inactive=True)
    assert [(each["content"], each["active"], each["is_summary"], each["copy_of"]) for each in found] == [
        ("one", 0, None, None), ("two", 0, None, None), ("three", 0, None, None), ("yes", 0, None, None),
        ("one", 1, None, found[0]["id"]), ("[CONTEXT COMPACTION] two and three", 1, 1, None),
        ("yes", 1, None, found[3]["id"]), ("four", 1, None, None), ("yes", 1, None, None),
    ]  # fmt: skip
    row = home.everything()["hermes-s1"]
    assert (summary.messages, row["message_count"], row["own_message_count"]) == (9, 5, 6)
    assert home.take(Hermes(), hermes.root, rescan=True).messages == 0


def test_a_continuation_has_only_its_own_messages(home: Home, hermes: HermesHome) -> None:
    """The copied beginning refers to the parent, whether or not it kept its times."""
    hermes.session("s1", end_reason="compression", title="Work")
    hermes.say("s1", "one", "two", "three", "four")
    hermes.session("s2", parent_session_id="s1", title="Work #2")
    hermes.write_again("s2", ("user", "one"), ("assistant", "a summary in other words"), ("assistant", "four"))
    hermes.execute("INSERT INTO messages (session_id, role, content, timestamp)"
                   " SELECT 's2', role, content, timestamp FROM messages WHERE content = 'three'")  # fmt: skip
    hermes.say("s2", "five", "four")
    home.take(Hermes(), hermes.root)
    said = [each for each in home.messages("hermes-s2") if "copy_of" not in each]
    assert [each["content"] for each in said] == ["a summary in other words", "five", "four"]
    assert contents(home, "hermes-s2") == ["one", "a summary in other words", "four", "three", "five", "four"]
    assert home.everything()["hermes-s2"]["title"] == "Work #2"


def test_equal_messages_are_not_taken_for_repetitions(home: Home, hermes: HermesHome) -> None:
    """Not even those of a chat platform that records whole seconds."""
    hermes.session("s1", source="telegram")
    hermes.say("s1", "yes", "yes", "yes", "yes")
    for _ in range(3):
        hermes.message("s1", "user", "ok", timestamp=1_800_000_000.0)
    assert home.take(Hermes(), hermes.root).messages == 7


def test_rewound_messages_are_recorded_as_rewound(home: Home, hermes: HermesHome) -> None:
    """No view shows them, whether they were rewound before the import or after it; a restored one is shown again."""
    hermes.session("s1")
    hermes.say("s1", "one", "two", "three")
    hermes.execute("UPDATE messages SET active = 0 WHERE content = 'three'")
    assert home.take(Hermes(), hermes.root).messages == 3
    assert contents(home, "hermes-s1") == ["one", "two"]
    hermes.execute("UPDATE messages SET active = 0 WHERE content = 'two'")
    assert home.take(Hermes(), hermes.root).messages == 0
    assert contents(home, "hermes-s1") == ["one"]
    hermes.execute("UPDATE messages SET active = 1")
    home.take(Hermes(), hermes.root)
    assert contents(home, "hermes-s1") == ["one", "two", "three"]


def test_only_what_is_new_is_read_the_next_time(home: Home, hermes: HermesHome) -> None:
    """New messages, new sessions, and a title that came later."""
    hermes.session("s1")
    hermes.say("s1", "one", "two")
    home.take(Hermes(), hermes.root)
    assert home.take(Hermes(), hermes.root).items_unchanged == 1
    hermes.say("s1", "three")
    hermes.execute("UPDATE sessions SET title = 'Numbers'")
    hermes.session("s2")
    hermes.say("s2", "else")
    summary = home.take(Hermes(), hermes.root)
    assert (summary.messages, summary.messages_known) == (2, 0)
    assert contents(home, "hermes-s1") == ["one", "two", "three"]
    assert home.everything()["hermes-s1"]["title"] == "Numbers"


def test_rewritten_rows_are_recognized_by_content_and_time(home: Home, hermes: HermesHome) -> None:
    """Some versions delete the rows of a session and write them again."""
    hermes.session("s1")
    hermes.say("s1", "one", "two")
    home.take(Hermes(), hermes.root)
    hermes.execute("UPDATE messages SET id = id + 100")
    hermes.say("s1", "three")
    assert home.take(Hermes(), hermes.root).messages == 1


def test_hermes_may_be_running(home: Home, hermes: HermesHome) -> None:
    """Its connection is open in the middle of a write; committed rows are read, and nothing waits or changes."""
    with closing(hermes.connect()) as theirs:
        theirs.execute("INSERT INTO sessions (id, source, started_at) VALUES ('s1', 'cli', 5.0)")
        theirs.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'done', 6.0)")
        theirs.execute("BEGIN IMMEDIATE")
        theirs.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'half', 7.0)")
        assert home.take(Hermes(), hermes.root).messages == 1
        theirs.execute("COMMIT")
        assert home.take(Hermes(), hermes.root).messages == 1
    assert contents(home, "hermes-s1") == ["done", "half"]


def test_a_home_that_is_not_in_use_is_not_changed(home: Home, hermes: HermesHome) -> None:
    """Not a byte of it changes, and no file is added."""
    hermes.session("s1")
    hermes.say("s1", "one")
    before = {path.name: path.read_bytes() for path in hermes.root.iterdir()}
    home.take(Hermes(), hermes.root)
    assert {path.name: path.read_bytes() for path in hermes.root.iterdir()} == before
    assert list(before) == ["state.db"]


def test_profiles_are_found_and_a_database_can_be_named(hermes: HermesHome, tmp_path: Path) -> None:
    """By the home, by HERMES_HOME's value, or by the file; the default is ~/.hermes."""
    work = HermesHome(hermes.root / "profiles" / "work")
    assert [item.file for item in Hermes().scan(hermes.root)] == [hermes.database, work.database]
    assert [item.file for item in Hermes().scan(work.database)] == [work.database]
    assert Hermes().scan(None) == []
    mine = HermesHome(Path.home() / ".hermes")
    assert [item.file for item in Hermes().scan(None)] == [mine.database]


def test_messages_without_a_session_are_not_lost(home: Home, hermes: HermesHome) -> None:
    """They become a session with the id that they name."""
    hermes.execute("PRAGMA foreign_keys = 0")
    hermes.say("vanished", "still here")
    home.take(Hermes(), hermes.root)
    assert contents(home, "hermes-vanished") == ["still here"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 200])
def test_a_file_that_is_not_a_database_of_hermes_is_reported(home: Home, tmp_path: Path, content: bytes) -> None:
    """And nothing raises."""
    file = tmp_path / "state.db"
    file.write_bytes(content)
    summary = home.take(Hermes(), file)
    assert (summary.messages, summary.problem_count) == (0, 1)


def test_our_own_record_is_not_imported_into_itself(home: Home, tmp_path: Path) -> None:
    """It looks similar, but is not from Hermes."""
    own = open_store(tmp_path / "own" / "state.db")
    own.sessions.create_session("s", "cli")
    own.messages.append_message("s", "user", "hello")
    own.close()
    summary = home.take(Hermes(), tmp_path / "own")
    assert "Memoranda's own" in summary.problems[0].text


def test_the_command_names_the_session() -> None:
    """Hermes itself changes to the session's directory."""
    assert Hermes().resume_command("20260101_1 x", "/code") == "hermes --resume '20260101_1 x'"


_stored = st.none() | st.text(max_size=8) | st.integers(-5, 5) | st.floats(allow_nan=False) | st.binary(max_size=6)
_structured = st.sampled_from(['\x00json:{"a"', '\x00json:[{"type": "text", "text": "x"}]', "[]", '{"a": 1}', "[["])
_row = st.tuples(
    st.sampled_from(["s1", "s2", "s3"]),
    st.sampled_from(["user", "assistant", "tool", ""]),
    _stored | _structured,
    _stored | _structured,
    st.sampled_from([1.5, 2.25, 2.250001, 2.250002, 3.0, 1e300, -1.0]) | st.floats(allow_nan=False),
    st.sampled_from([(1, 0), (0, 1), (0, 0)]),
)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(rows=st.lists(_row, max_size=12))
def test_a_second_import_adds_nothing_and_nothing_is_lost_silently(rows: list[Any]) -> None:
    """For any rows, each is new, skipped or a problem; and reading in two passes gives the same."""
    with TemporaryDirectory() as scratch:
        hermes, home = HermesHome(Path(scratch) / "hermes"), Home(Path(scratch) / "home")
        hermes.session("s1", end_reason="compression")
        hermes.session("s2", parent_session_id="s1")
        with closing(hermes.connect()) as connection:
            connection.executemany(
                "INSERT INTO messages (session_id, role, content, tool_calls, timestamp, active, compacted)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(*row, *flags) for *row, flags in rows],
            )
        planned = home.plan(Hermes(), hermes.root)
        summary = home.take(Hermes(), hermes.root)
        assert planned.skipped == summary.skipped
        assert summary.messages + summary.skipped.total() + summary.problem_count == len(rows)
        once = home.everything()
        assert home.take(Hermes(), hermes.root, rescan=True).messages == 0
        assert home.everything() == once
        home.store.close()
