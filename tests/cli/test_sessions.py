"""`memoranda sessions` and `memoranda search`, as a person uses them."""

import json
import os
import sqlite3
import threading
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from tests.cli.terminal import Terminal
from tests.conftest import mode
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


@pytest.fixture
def past(terminal: Terminal) -> Terminal:
    """A home with three conversations, one of them another user's."""
    with memoranda.open(terminal.home) as memory:
        db = memory.sessions
        tell(
            db, "20250615_a", ["How do I fix the zebra build?", "Pin the compiler."], title="Fix the build", model="m/1"
        )
        tell(db, "20250616_b", ["The plum cake needs butter", "How much?"], at=BEGIN + 86_400, source="telegram")
        db.end_session("20250616_b", "user_exit")
        tell(memory.services.sessions_for("ana"), "20250617_c", ["Ana's zebra"], at=BEGIN + 2 * 86_400)
    return terminal


@pytest.mark.parametrize(
    "words",
    [
        ["sessions", "list"],
        ["sessions", "stats"],
        ["sessions", "export"],
        ["sessions", "prune", "--yes"],
        ["search", "x"],
    ],
    ids=" ".join,
)
def test_looking_into_an_empty_home_works_and_leaves_no_trace(terminal: Terminal, words: list[str]) -> None:
    """Also as JSON."""
    terminal.ok(*words)
    if words[1] != "export":
        terminal.json(*words)
    assert not terminal.home.exists()


def test_sessions_are_listed_latest_first(past: Terminal) -> None:
    """With their titles, or their first message."""
    text = past.ok("sessions", "list")
    assert text.index("The plum cake needs butter") < text.index("Fix the build")
    assert "zebra" not in text
    data = past.json("sessions", "list", "--limit", "1")
    assert [row["id"] for row in data["sessions"]] == ["20250616_b"]
    assert data["more"] is True
    assert [row["id"] for row in past.json("sessions", "list", "--source", "cli")["sessions"]] == ["20250615_a"]
    assert len(past.json("sessions", "list", "--all-users")["sessions"]) == 3
    assert len(past.json("sessions", "list", "--user", "ana")["sessions"]) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--offset", "99"], "There are no more than 99: --offset 99 skips all of them."),
        (["--source", "nope"], "There are sessions, but none for this --source."),
        (["--since", "2099-01-01"], "There are sessions, but none for this --since."),
        (
            ["--until", "1999-01-01", "--source", "cli"],
            "There are sessions, but none for this --source and this --until.",
        ),
        (["--source", "subagent"], "There are only archived sessions and delegated work: --everything shows them."),
        (["--user", "bob"], "No sessions of this user yet; --all-users shows those of others."),
    ],
    ids=["offset", "source", "since", "two", "delegated", "user"],
)
def test_an_empty_list_says_what_left_everything_out(past: Terminal, words: list[str], why: str) -> None:
    """As text and as JSON."""
    with memoranda.open(past.home) as memory:
        memory.sessions.create_session("helper", "subagent", parent_session_id="20250615_a")
    assert past.ok("sessions", "list", *words) == f"{why}\n"
    assert past.json("sessions", "list", *words) == {"sessions": [], "more": False, "message": why}


def test_a_list_of_nothing_says_that_there_is_nothing(terminal: Terminal) -> None:
    """Whatever was asked for."""
    for words in ([], ["--offset", "5"], ["--source", "cli", "--everything"], ["--user", "bob"], ["--all-users"]):
        assert terminal.ok("sessions", "list", *words) == "No sessions yet.\n"


@pytest.mark.parametrize("name", ["20250615_a", "20250615", "Fix the build"])
def test_a_session_is_shown_by_id_by_its_beginning_or_by_title(past: Terminal, name: str) -> None:
    """Every message, with its role."""
    text = past.ok("sessions", "show", name)
    assert "How do I fix the zebra build?" in text
    assert text.index("user") < text.index("assistant")
    (session,) = past.json("sessions", "show", name)
    assert [message["role"] for message in session["messages"]] == ["user", "assistant"]


def test_an_exact_title_comes_before_the_beginning_of_an_id(past: Terminal) -> None:
    """So that no other conversation is deleted than the one that was named."""
    past.ok("sessions", "rename", "20250616_b", "20250615")
    assert "plum cake" in past.ok("sessions", "show", "20250615")


def test_a_session_that_is_not_there_is_refused(past: Terminal) -> None:
    """And so is another user's; the beginning of more than one lists them."""
    ambiguous = past.run("sessions", "show", "2025")
    assert ambiguous.exit_code == 1
    assert "20250615_a  Fix the build" in ambiguous.output and "20250617_c" not in ambiguous.output
    for name in ("nonsense", "20250617_c", ""):
        result = past.run("sessions", "show", name)
        assert result.exit_code == 1
        assert "No session has the id or title" in result.output


def test_a_session_can_be_renamed(past: Terminal) -> None:
    """To a title that no other session has."""
    past.ok("sessions", "rename", "20250616_b", "Plum cake")
    assert "Plum cake" in past.ok("sessions", "list")
    assert past.run("sessions", "rename", "20250616_b", "Fix the build").exit_code == 1
    past.ok("sessions", "rename", "Plum cake", "")
    assert "Plum cake" not in past.ok("sessions", "list")


def test_deleting_shows_the_sessions_and_asks(past: Terminal, tmp_path: Path) -> None:
    """No changes nothing; yes removes them from the record, from search, and from the bytes of both files."""
    result = past.run("sessions", "delete", "Fix the build", input="n\n")
    assert result.exit_code == 0
    assert "1 session with 2 messages" in result.output
    assert past.json("search", "zebra")["count"] == 1
    saved = tmp_path / "saved.jsonl"
    past.ok("sessions", "delete", "Fix the build", "--yes", "--export", str(saved))
    assert past.json("search", "zebra")["count"] == 0
    assert past.json("search", "compiler")["count"] == 0
    for file in past.home.iterdir():
        if file.is_file() and file.name.startswith("state"):
            assert b"compiler" not in file.read_bytes().lower()
    assert mode(saved) == 0o600
    past.ok("sessions", "import", str(saved))
    assert past.json("search", "zebra")["count"] == 1


def test_delegated_work_is_shown_and_saved_before_it_is_deleted(past: Terminal, tmp_path: Path) -> None:
    """It goes with the conversation that it was done for, so it is counted and saved with it."""
    with memoranda.open(past.home) as memory:
        memory.sessions.create_session("helper", "subagent", parent_session_id="20250615_a")
        memory.sessions.append_message("helper", "assistant", "What the helper found")
    saved = tmp_path / "saved.jsonl"
    result = past.run("sessions", "delete", "Fix the build", "--export", str(saved), input="y\n")
    shown, _, _ = result.stderr.partition("Delete them for good?")
    assert "2 sessions with 3 messages" in shown and "20250615_a" in shown and "helper" in shown
    assert result.stdout.startswith("Deleted 2 sessions.")
    assert "What the helper found" in saved.read_text()
    assert past.json("search", "helper")["count"] == 0
    past.ok("sessions", "import", str(saved))
    assert "What the helper found" in past.ok("sessions", "show", "helper")


def test_deleting_says_when_text_is_still_in_the_files(past: Terminal) -> None:
    """A program that is reading still sees it; it leaves the files when the last one closes them."""
    with closing(sqlite3.connect(past.home / "state.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        text = past.ok("sessions", "delete", "Fix the build", "--yes")
        assert "is reading state.db, so the deleted text is still in its files" in text
        assert "when the last program that has this home open closes it" in text
        assert _holds(past, b"compiler")
        assert past.json("sessions", "delete", "20250616_b", "--yes")["text_overwritten"] is False
    assert not _holds(past, b"compiler") and not _holds(past, b"butter")
    data = past.json("--user", "ana", "sessions", "delete", "20250617_c", "--yes")
    assert data["text_overwritten"] is True


def test_deleting_waits_a_moment_for_a_reader(past: Terminal) -> None:
    """Most readers are done before the command would have to mention them."""
    with closing(sqlite3.connect(past.home / "state.db", isolation_level=None, check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        timer = threading.Timer(0.4, reader.execute, ("ROLLBACK",))
        timer.start()
        try:
            assert past.json("sessions", "delete", "Fix the build", "--yes")["text_overwritten"] is True
        finally:
            timer.join()
        assert not _holds(past, b"compiler")


def _holds(terminal: Terminal, words: bytes) -> bool:
    return any(words in file.read_bytes() for file in terminal.home.glob("state.db*"))


def test_pruning_takes_ended_sessions_that_are_old(past: Terminal) -> None:
    """Open ones stay, and a dry run takes nothing."""
    assert past.json("sessions", "prune", "--dry-run")["would_delete"] == ["20250616_b"]
    assert len(past.json("sessions", "list")["sessions"]) == 2
    assert past.run("sessions", "prune", input="n\n").exit_code == 0
    assert past.json("sessions", "prune", "--yes")["deleted"] == 1
    assert [row["id"] for row in past.json("sessions", "list")["sessions"]] == ["20250615_a"]
    assert past.ok("sessions", "prune", "--yes") == "There is nothing to prune.\n"


def test_conversations_are_archived_and_put_back(past: Terminal) -> None:
    """By name or by age; nothing is deleted, and searches still find them."""
    assert past.json("sessions", "archive", "--older-than", "1d", "--title", "nothing")["archived"] == 0
    assert "Archived 1 conversation." in past.ok("sessions", "archive", "--older-than", "1d", "--max-messages", "5")
    listed = past.json("sessions", "list", "--archived")["sessions"]
    assert [row["id"] for row in listed] == ["20250616_b"]
    assert "plum" in past.ok("search", "plum cake")
    past.ok("sessions", "unarchive", "20250616_b")
    assert past.json("sessions", "list", "--archived")["sessions"] == []
    past.ok("sessions", "archive", "Fix the build")
    assert [row["id"] for row in past.json("sessions", "list")["sessions"]] == ["20250616_b"]


@pytest.mark.parametrize("words", [[], ["Fix the build", "--older-than", "1d"], ["Fix the build", "--model", "m"]])
def test_archiving_needs_names_or_an_age(past: Terminal, words: list[str]) -> None:
    """Not both, and not neither."""
    assert past.run("sessions", "archive", *words).exit_code == 2


def test_lists_and_pruning_have_filters(past: Terminal) -> None:
    """By title, model and size."""
    assert [row["id"] for row in past.json("sessions", "list", "--model", "M/1")["sessions"]] == ["20250615_a"]
    assert past.json("sessions", "list", "--min-messages", "9")["sessions"] == []
    options = ("--older-than", "1d", "--dry-run", "--title")
    assert past.json("sessions", "prune", *options, "cake")["would_delete"] == []


def test_an_export_is_imported_unchanged(past: Terminal, tmp_path: Path) -> None:
    """Into another home, and a second import adds nothing."""
    file = tmp_path / "past.jsonl"
    assert past.json("sessions", "export", "--all-users", "--output", str(file))["sessions"] == 3
    other = Terminal(tmp_path / "other")
    report = other.json("sessions", "import", "--all-users", str(file))
    assert len(report["imported"]) == 3
    assert other.ok("sessions", "export", "--all-users") == _with_new_ids(past.ok("sessions", "export", "--all-users"))
    assert len(other.json("sessions", "import", "--all-users", str(file))["skipped"]) == 3


def _with_new_ids(exported: str) -> str:
    """A fresh store counts messages from one, in the order of the export."""
    lines, number = [], 0
    for line in exported.splitlines():
        session = json.loads(line)
        for message in session["messages"]:
            number += 1
            message["id"] = number
        lines.append(json.dumps(session, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def test_broken_lines_of_an_import_are_reported_and_the_rest_is_taken(terminal: Terminal, tmp_path: Path) -> None:
    """By their line numbers, with an exit code that says so."""
    file = tmp_path / "broken.jsonl"
    good = {"id": "s", "source": "cli", "messages": [{"role": "user", "content": "hello"}]}
    file.write_text(f"not json\n{json.dumps(good)}\n[1]\n")
    result = terminal.run("sessions", "import", str(file), "--json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert report["imported"] == ["s"]
    assert [error.get("line") for error in report["errors"]] == [1, 3]


def test_statistics_count_what_there_is(past: Terminal) -> None:
    """Per source and model, with the size on disk."""
    data = past.json("sessions", "stats")
    assert (data["sessions"], data["messages"]) == (2, 4)
    assert data["by_source"] == {"cli": {"sessions": 1, "messages": 2}, "telegram": {"sessions": 1, "messages": 2}}
    assert data["bytes"]["state.db"] > 0
    assert past.json("--user", "ana", "sessions", "stats")["messages"] == 1
    assert past.json("--user", "bob", "sessions", "stats")["sessions"] == 0
    assert "1  message in 1 session: (none)" in past.ok("sessions", "stats", "--user", "ana")
    text = past.ok("sessions", "stats")
    assert "2  messages in 1 session: cli" in text
    assert "0  model calls" in text
    assert "search index" in text
    assert "api call" not in text and "state." not in text


def test_search_shows_the_match_and_the_messages_around_it(past: Terminal) -> None:
    """The match is marked, a question comes with its answer, and other users' conversations are not shown."""
    text = past.ok("search", "fixing", "the", "zebra")
    assert "Fix the build" in text
    assert "How do I fix the zebra build?" in text
    assert "▸ assistant Pin the compiler." in text
    assert ">>>compiler<<<" in past.ok("search", "compiler")
    assert "Ana" not in text
    assert "why:" in past.ok("search", "zebra", "--why")
    assert past.ok("search", "nonsense") == "Nothing in past conversations matches.\n"
    assert past.json("search", "zebra", "--user", "ana")["count"] == 1


def test_results_that_have_only_related_words_are_counted_apart(terminal: Terminal) -> None:
    """So that the first line counts what is listed."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "typed", ["The car got new brakes in the workshop on Elm Street.", "Good."])
        tell(memory.sessions, "related", ["The vehicle stood in the rain.", "Good."])
        tell(memory.sessions, "other", ["It rained in the evening.", "Yes."])
    words = ("search", "What happened with my car?")
    answer = terminal.json(*words)
    assert (answer["count"], answer["sessions_matched"]) == (2, 1)
    shown = terminal.ok(*words)
    assert shown.startswith("1 session matches (") and "), and 1 more is related · " in shown


def test_search_behind_the_last_result_says_so(past: Terminal) -> None:
    """An ordinary answer, as text and as JSON."""
    said = "There are no further results: the list of matching conversations ends at 1."
    assert past.ok("search", "zebra", "--offset", "100") == f"{said}\n"
    answer = past.json("search", "zebra", "--offset", "100")
    assert (answer["results"], answer["message"]) == ([], said)


def test_search_says_why_on_a_terminal_too(past: Terminal) -> None:
    """The order, the words and the filters, also when nothing was found; beside each result its signals."""
    text = past.ok("search", "zebra", "--why", "--sort", "newest", "--source", "cli", "--since", "2020-01-01")
    assert "why: by time, newest first; searched for: zebra; filters: sources cli, since 20" in text
    assert "why: order by time, newest first, score" in text
    text = past.ok("search", "butter", "--why", "--source", "cli")
    assert "search without `source` to find it" in text
    assert "why: by relevance, scheduled jobs last; searched for: butter; filters: sources cli\n" in text


def test_search_refuses_a_role_that_there_is_not(past: Terminal) -> None:
    """With those there are."""
    result = past.run("search", "butter", "--role", "robot")
    assert result.exit_code == 2
    assert "'user', 'assistant', 'tool', 'system'" in result.output


def test_search_takes_filters(past: Terminal) -> None:
    """Time, source and role; a wrong one is refused."""
    assert past.json("search", "butter", "--source", "telegram", "--role", "user")["count"] == 1
    assert past.json("search", "butter", "--source", "cli")["count"] == 0
    assert past.json("search", "butter", "--since", "30d")["count"] == 0
    result = past.run("search", "butter", "--since", "sometime")
    assert result.exit_code == 2
    assert "30d" in result.output


def test_control_characters_of_a_conversation_do_not_reach_the_terminal(terminal: Terminal) -> None:
    """In titles, text, tool names and snippets."""
    with memoranda.open(terminal.home) as memory:
        escape = "zebra \x1b]0;owned\x07\x1b[2J end"
        tell(memory.sessions, "s\x1b[2J", [("user", escape), ("tool", escape, {"tool_name": "\x1b[2Jx"})])
    for words in (["sessions", "list"], ["sessions", "show", "s\x1b[2J"], ["search", "zebra"]):
        # With colours, because without them the runner takes every escape away by itself.
        shown = CliRunner().invoke(command, ["--home", str(terminal.home), *words], color=True).output
        assert "zebra" in shown
        assert "\x1b]" not in shown
        assert "\x1b[2J" not in shown


def test_a_search_finds_what_another_process_has_just_recorded(terminal: Terminal) -> None:
    """Without a separate indexing command."""
    with memoranda.open(terminal.home) as memory, memory.session(source="test") as session:
        for number in range(3):
            with session.turn(f"question zebra{number}") as turn:
                turn.done("answer")
            assert terminal.json("search", f"zebra{number}")["count"] == 1


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs tzset")
def test_times_are_shown_in_the_readers_time_zone(past: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are for people; JSON says UTC."""
    past.ok("remember", "one")
    past.ok("config", "set", "memory.write_approval", "propose")
    with memoranda.open(past.home) as memory:
        memory.call("memory", {"action": "add", "content": "two"})
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert "2025-06-16 00:07" in past.ok("sessions", "list")
        assert "2025-06-16 00:07" in past.ok("search", "zebra")
        for name in ("log", "pending"):
            at = datetime.fromisoformat(past.json("memory", name)[0]["at"])
            assert at.utcoffset() == timedelta(0)
            assert f"  {at.astimezone():%Y-%m-%d %H:%M}  MEMORY.md" in past.ok("memory", name)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert os.environ.get("TZ") is None


def test_search_shows_enough_of_the_answer_to_use_it(terminal: Terminal) -> None:
    """Several lines of it on a narrow terminal; asked three times, it is listed once."""
    answer = "Take both locks in one order. " * 5 + "The queue comes first, the ledger second."
    with memoranda.open(terminal.home) as memory:
        for _ in range(3):
            with memory.session(source="test") as session, session.turn("How did we fix the deadlock?") as turn:
                turn.done(answer)
    text = terminal.ok("search", "how did we fix the deadlock")
    assert text.count("▸ assistant ") == 1
    assert answer in " ".join(text.split("▸ assistant ")[1].split())


def test_conversations_are_exported_as_documents(past: Terminal, tmp_path: Path) -> None:
    """One named, several, or all, to the terminal, a file, or one file each in a directory."""
    assert "# Fix the build\n" in past.ok("sessions", "export", "Fix the build", "--format", "md")
    page = tmp_path / "both.html"
    answer = past.json("sessions", "export", "Fix the build", "20250616_b", "--format", "html", "--output", str(page))
    assert answer["conversations"] == 2
    assert page.read_text().count("<section") == 2
    assert mode(page) == 0o600
    folder = tmp_path / "notes"
    folder.mkdir()
    for _ in range(2):
        past.ok("sessions", "export", "--format", "md", "--output", str(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        "2025-06-15-Fix-the-build-2.md", "2025-06-15-Fix-the-build.md",
        "2025-06-16-20250616_b-2.md", "2025-06-16-20250616_b.md",
    ]  # fmt: skip
    late = past.ok("sessions", "export", "--format", "md", "--since", "2025-06-16")
    assert "plum cake" in late and "zebra" not in late


@pytest.mark.parametrize("file_format, files", [("jsonl", 1), ("md", 2), ("html", 2)])
def test_an_export_makes_the_directory_that_a_slash_names(
    past: Terminal, tmp_path: Path, file_format: str, files: int
) -> None:
    """With its parents, and readable only by its owner."""
    folder = tmp_path / file_format / "new"
    assert f"to {folder}" in past.ok("export", "--format", file_format, "--output", f"{folder}/")
    assert [path.suffix for path in folder.iterdir()] == [f".{file_format}"] * files
    assert mode(folder) == 0o700


def test_an_export_says_what_it_cannot_do(past: Terminal, tmp_path: Path) -> None:
    """No conversations, a file where a directory is named, and a name together with a filter."""
    assert "no conversations" in past.run("sessions", "export", "--format", "md", "--source", "nope").output
    past.ok("export", "--output", str(tmp_path))
    lines = str(tmp_path / "conversations.jsonl")
    assert f"'{lines}' already exists" in past.run("export", "--output", str(tmp_path)).output
    assert f"'{lines}' already exists" in past.run("export", "--output", f"{lines}/").output
    assert f"{lines}/new/ cannot be made: Not a directory" in past.run("export", "--output", f"{lines}/new/").output
    assert "Name sessions, or" in past.run("sessions", "export", "x", "--source", "cli").output
