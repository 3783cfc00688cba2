"""Sessions of OpenCode: from its database, also while it is running, and from the files of every older version."""

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.importers import source_files
from memoranda.importers.coding_agents.opencode import OpenCode
from tests.importers import opencode_sessions as sessions
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

NAME = f"opencode-{sessions.SESSION}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _words(home: Home, session_id: str = NAME) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in home.messages(session_id)]


@pytest.mark.parametrize("write", [sessions.write_database, sessions.write_files, sessions.write_early_files])
def test_every_format_has_the_same_session(home: Home, tmp_path: Path, write: Callable[[Path], Path]) -> None:
    """Words, reasoning, calls, results, times, model and title, whichever version wrote them."""
    summary = home.take(OpenCode(), write(tmp_path / "opencode"))
    assert _words(home) == sessions.WORDS
    asked, _, thought, _, call, result, *_, last = home.messages(NAME)
    assert asked["timestamp"] == pytest.approx(1772445601.0)
    assert thought["reasoning"] == "Their order may differ."
    assert call["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "rg -n lock src"}'}
    assert (result["tool_call_id"], result["tool_name"]) == ("call_5", "bash")
    assert last["timestamp"] == pytest.approx(1772445604.0)
    session = home.everything()[NAME]
    assert (session["model"], session["title"]) == ("claude-sonnet-4-5", "Deadlock in checkout")
    assert session["directory"] == sessions.DIRECTORY
    assert summary.problems == []
    assert summary.skipped["text added by the program"] == 1


def test_the_first_form_has_everything_inside_the_messages(home: Home, tmp_path: Path) -> None:
    """Versions before 0.3 had no files for parts."""
    home.take(OpenCode(), sessions.write_first_files(tmp_path / "opencode"))
    assert _words(home) == [
        ("user", "Why does checkout deadlock?"),
        ("assistant", ""),
        ("tool", "order.py"),
        ("assistant", "现在好了."),
    ]
    session = home.everything()[NAME]
    assert (session["model"], session["directory"]) == ("claude-sonnet-4", sessions.DIRECTORY)


def test_messages_in_separate_rows_are_read(home: Home, tmp_path: Path) -> None:
    """The format that version 1.18 introduced."""
    with closing(sessions.begin_database(tmp_path / "opencode")) as connection:
        sessions.add_newer(connection)
    home.take(OpenCode(), tmp_path / "opencode")
    assert _words(home) == [
        ("user", "Why does checkout deadlock?"),
        ("assistant", ""),
        ("assistant", "I look at the locks."),
        ("assistant", ""),
        ("tool", "order.py"),
        ("assistant", ""),
        ("tool", "clean"),
        ("user", "The locks."),
    ]
    assert home.messages(NAME)[-1]["is_summary"]
    assert home.everything()[NAME]["model"] == "claude-sonnet-5"


def test_a_command_is_the_user_s_as_it_was_typed(home: Home, tmp_path: Path) -> None:
    """The plugin adds that to the part; what it expands to is of the system, and no turn is lost without the plugin."""
    expanded = {"type": "text", "text": "Greet the person Ana."}
    parts = [
        {**expanded, "metadata": {"memoranda_typed": "/greet Ana"}},
        {"type": "subtask", "command": "look", "prompt": "Look.", "metadata": {"memoranda_typed": "/look"}},
        {**expanded, "metadata": {"memoranda_typed": ["/greet"]}},
        {"type": "text", "text": "<hello> there", "metadata": {"other": "/no"}},
    ]
    answer = {**expanded, "metadata": {"memoranda_typed": "/greet Bo"}}
    asked, answered = sessions.ASKED[0], sessions.LAST[0]
    home.take(OpenCode(), sessions.write_database(tmp_path / "opencode", [(asked, parts), (answered, [answer])]))
    assert _words(home) == [
        ("user", "/greet Ana"),
        ("system", "Greet the person Ana."),
        ("user", "/look"),
        ("user", "Greet the person Ana."),
        ("user", "<hello> there"),
        ("assistant", "Greet the person Ana."),
    ]


def test_a_session_in_files_and_database_is_imported_once(home: Home, tmp_path: Path) -> None:
    """The files stay where they are when a new version takes them over."""
    source = sessions.write_files(tmp_path / "opencode")
    home.take(OpenCode(), source)
    sessions.write_database(source)
    assert home.take(OpenCode(), source).messages == 0


def test_what_is_in_the_log_of_a_running_program_is_read(home: Home, tmp_path: Path) -> None:
    """The database is not changed, and the writer does not wait."""
    with closing(sessions.begin_database(tmp_path / "opencode")) as connection:
        sessions.add_session(connection, sessions.TALK)
        before = (tmp_path / "opencode" / "opencode.db").read_bytes()
        log = (tmp_path / "opencode" / "opencode.db-wal").read_bytes()
        assert log
        home.take(OpenCode(), tmp_path / "opencode")
        assert _words(home) == sessions.WORDS
        assert (tmp_path / "opencode" / "opencode.db").read_bytes() == before
        assert (tmp_path / "opencode" / "opencode.db-wal").read_bytes() == log


def test_the_directory_of_a_program_that_has_ended_is_not_changed(home: Home, tmp_path: Path) -> None:
    """Not even a lock file is created beside its database."""
    source = sessions.write_database(tmp_path / "opencode")
    before = {file: file.read_bytes() for file in source.iterdir()}
    home.take(OpenCode(), source)
    assert {file: file.read_bytes() for file in source.iterdir()} == before


def test_an_unfinished_message_is_left_for_the_next_import(home: Home, tmp_path: Path) -> None:
    """Half an answer is never imported while the program writes."""
    now = int(time.time() * 1000)
    with closing(sessions.begin_database(tmp_path / "opencode")) as connection:
        sessions.add_session(connection, [*sessions.TALK, sessions.UNFINISHED], updated=now)
        summary = home.take(OpenCode(), tmp_path / "opencode")
        assert _words(home) == sessions.WORDS
        assert summary.skipped["still being written"] == 2
        info, parts = sessions.UNFINISHED
        whole = {**parts[0], "text": "It is also faster.", "time": {"start": now, "end": now}}
        sessions.add_session(connection, [*sessions.TALK, (info, [whole, parts[1]])], updated=now)
        home.take(OpenCode(), tmp_path / "opencode")
    assert _words(home)[len(sessions.WORDS) :] == [("assistant", "It is also faster.")]


def test_a_message_that_stays_unfinished_is_imported(home: Home, tmp_path: Path) -> None:
    """When its session has not changed for a while."""
    home.take(OpenCode(), sessions.write_database(tmp_path / "opencode", [*sessions.TALK, sessions.UNFINISHED]))
    assert [role for role, _ in _words(home)[len(sessions.WORDS) :]] == ["assistant", "assistant"]
    assert _words(home)[len(sessions.WORDS)] == ("assistant", "It is also")


def test_an_answer_that_a_kill_interrupted_is_imported_later(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program was killed in the middle of an answer, so nothing changes, and the half is not lost."""
    with closing(sessions.begin_database(tmp_path / "opencode")) as connection:
        now = int(time.time() * 1000)
        sessions.add_session(connection, [*sessions.TALK, sessions.UNFINISHED], updated=now)
    home.take(OpenCode(), tmp_path / "opencode")
    assert _words(home) == sessions.WORDS
    monkeypatch.setattr(source_files, "_SETTLED_AFTER", 0.0)
    home.take(OpenCode(), tmp_path / "opencode")
    assert _words(home)[len(sessions.WORDS)] == ("assistant", "It is also")
    assert home.take(OpenCode(), tmp_path / "opencode").items_unchanged == 1


def test_only_a_session_that_changed_is_read_again(home: Home, tmp_path: Path) -> None:
    """A database with thousands of sessions costs what is new in it."""
    with closing(sessions.begin_database(tmp_path / "opencode")) as connection:
        sessions.add_session(connection, sessions.TALK)
        sessions.add_session(connection, [sessions.ASKED], session=sessions.AGENT, parent=sessions.SESSION)
        assert home.take(OpenCode(), tmp_path / "opencode").items == 2
        agent = home.everything()[f"opencode-{sessions.AGENT}"]
        assert (agent["parent_session_id"], agent["relation"]) == (NAME, "delegation")
        sessions.add_session(connection, [*sessions.TALK, sessions.LAST], updated=sessions.NOW + 9000)
        summary = home.take(OpenCode(), tmp_path / "opencode")
    assert (summary.items, summary.items_unchanged, summary.messages) == (2, 1, 1)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + bytes(200), b"words, not a database"])
def test_a_file_that_is_not_a_database_is_reported(home: Home, tmp_path: Path, content: bytes) -> None:
    """Nothing raises, and nothing is skipped silently."""
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode" / "opencode.db").write_bytes(content)
    assert home.take(OpenCode(), tmp_path / "opencode").problem_count == 1


def test_broken_rows_and_files_are_named_and_the_others_are_read(home: Home, tmp_path: Path) -> None:
    """A part that is not JSON loses only itself, in a database as in a file."""
    source = tmp_path / "opencode"
    with closing(sessions.begin_database(source)) as connection:
        sessions.add_session(connection, sessions.TALK)
        connection.execute("UPDATE part SET data = '{cut' WHERE id = ?", (sessions.names(0, [{}])[1][0],))
    summary = home.take(OpenCode(), source)
    assert _words(home) == sessions.WORDS[1:]
    assert ["is not a JSON object" in problem.text for problem in summary.problems] == [True]
    another = Home(tmp_path / "another")
    files = sessions.write_files(tmp_path / "files")
    next(files.rglob("prt_0000000*.json")).write_text("[]", "utf-8")
    summary = another.take(OpenCode(), files)
    assert summary.problem_count == 1
    assert summary.messages == len(sessions.WORDS) - 1


def test_a_session_is_resumed_in_its_directory() -> None:
    """Names are quoted for the shell."""
    command = OpenCode().resume_command("ses_1", "/home/ann/shop")
    assert command == "cd /home/ann/shop && opencode --session ses_1"
