"""Conversations of Cursor: of the editor in every form it kept them, of the command line, and transcripts."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.importers import source_files
from memoranda.importers.coding_agents.cursor import Cursor
from tests.importers import cursor_stores as stores
from tests.importers.import_home import Home

pytestmark = pytest.mark.slow

NAME = f"cursor-composer-{stores.COMPOSER}"
AGENT = f"cursor-{stores.AGENT}"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _words(home: Home, session_id: str = NAME) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in home.messages(session_id)]


@pytest.mark.parametrize("write", [stores.write_editor, stores.write_editor_of_2024, stores.write_first_composers])
def test_every_format_of_the_editor_has_the_same_conversation(
    home: Home, tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    """Words, thoughts, calls, results, times, model, title and directory."""
    summary = home.take(Cursor(), write(tmp_path / "User"))
    assert _words(home) == stores.WORDS
    asked, thought, _, call, result, last = home.messages(NAME)
    assert asked["timestamp"] == pytest.approx(1772445601.0)
    assert thought["reasoning"] == "Their order may differ."
    assert call["tool_calls"][0]["function"] == {"name": "grep_search", "arguments": '{"query":"lock"}'}
    assert (result["tool_call_id"], result["tool_name"]) == ("toolu_1", "grep_search")
    assert last["timestamp"] == pytest.approx(1772445609.0)
    session = home.everything()[NAME]
    assert (session["title"], session["directory"]) == ("Deadlock in checkout", stores.DIRECTORY)
    assert session["model"] == "claude-4.5-sonnet-thinking"
    assert summary.problems == []
    assert summary.skipped["bubble without text"] == 1


def test_the_chat_panel_of_the_first_versions_is_read(home: Home, tmp_path: Path) -> None:
    """Its tabs are conversations."""
    home.take(Cursor(), stores.write_tabs(tmp_path / "User"))
    assert _words(home, f"cursor-chat-{stores.TAB}") == [
        ("user", "Why does checkout deadlock?"),
        ("assistant", "现在好了."),
    ]
    session = home.everything()[f"cursor-chat-{stores.TAB}"]
    assert (session["model"], session["title"], session["directory"]) == ("gpt-4o", "Deadlock", stores.DIRECTORY)


def test_the_editor_is_found_where_its_settings_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Linux, macOS and Windows, below the person's directory; the command line has a place of its own."""
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert Cursor().scan(None) == []
    for place in (".config/Cursor/User", "Library/Application Support/Cursor/User", "AppData/Roaming/Cursor/User"):
        stores.write_editor(tmp_path / place)
    stores.write_agent(tmp_path / ".cursor")
    stores.write_agent(tmp_path / ".config" / "cursor")
    assert len(Cursor().scan(None)) == 5
    assert Cursor(Path("not/absolute")).scan(None) == Cursor().scan(None)


def test_a_conversation_that_grows_is_read_again_and_no_other(home: Home, tmp_path: Path) -> None:
    """Only what is new is added."""
    source = stores.write_editor(tmp_path / "User")
    reader = Cursor()
    home.take(reader, source)
    more = {"type": 1, "bubbleId": "b-7", "text": "And refunds?"}
    stores.put(
        stores.global_database(source),
        "cursorDiskKV",
        {
            f"composerData:{stores.COMPOSER}": stores.composer(
                [*stores.BUBBLES, more], lastUpdatedAt=stores.NOW + 60000
            ),
            f"bubbleId:{stores.COMPOSER}:b-7": more,
            "composerData:other": {**stores.composer([], conversation=[more]), "composerId": "other"},
        },
    )
    summary = home.take(reader, source)
    assert _words(home)[-1] == ("user", "And refunds?")
    assert home.take(reader, source).items_unchanged == summary.items == 2


def test_an_unfinished_bubble_is_left_for_the_next_import(home: Home, tmp_path: Path) -> None:
    """Half an answer is never imported, unless the conversation has not changed for a while."""
    now = int(time.time() * 1000)
    source = stores.write_editor(tmp_path / "User", status="generating", lastUpdatedAt=now)
    assert home.take(Cursor(), source).skipped["still being written"] == 1
    assert _words(home) == stores.WORDS[:-1]
    stores.write_editor(tmp_path / "User", lastUpdatedAt=now)
    home.take(Cursor(), source)
    assert _words(home) == stores.WORDS


def test_a_bubble_that_stays_unfinished_is_imported_later(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor was killed in the middle of an answer, so nothing changes, and the half is not lost."""
    now = int(time.time() * 1000)
    source = stores.write_editor(tmp_path / "User", status="generating", lastUpdatedAt=now)
    home.take(Cursor(), source)
    monkeypatch.setattr(source_files, "_SETTLED_AFTER", 0.0)
    home.take(Cursor(), source)
    assert _words(home) == stores.WORDS


def test_missing_broken_and_rewound_bubbles_are_reported(home: Home, tmp_path: Path) -> None:
    """The rest of the conversation is read."""
    source = stores.write_editor(tmp_path / "User")
    prefix = f"bubbleId:{stores.COMPOSER}:"
    stores.put(stores.global_database(source), "cursorDiskKV", {f"{prefix}b-3": "{cut", f"{prefix}gone": {"type": 1}})
    with closing(sqlite3.connect(stores.global_database(source))) as connection, connection:
        connection.execute("DELETE FROM cursorDiskKV WHERE key = ?", (f"{prefix}b-6",))
    summary = home.take(Cursor(), source)
    assert [("b-3" in each.text, "b-6" in each.text) for each in summary.problems] == [(True, False), (False, True)]
    assert summary.skipped["bubble that was rewound"] == 1
    assert _words(home) == [*stores.WORDS[:2], *stores.WORDS[3:5]]


def test_the_command_line_keeps_its_conversations_in_stores(home: Home, tmp_path: Path) -> None:
    """In the order of its list; the same words said twice are two messages."""
    summary = home.take(Cursor(), stores.write_agent(tmp_path / "cursor"))
    assert _words(home, AGENT) == stores.SAID_TO_AGENT
    session = home.everything()[AGENT]
    assert (session["model"], session["title"], session["directory"]) == ("gpt-5.2", "Deadlock", stores.DIRECTORY)
    assert session["started_at"] == pytest.approx(1772445600.0)
    assert summary.problems == []


def test_messages_that_a_summary_replaced_are_still_read(home: Home, tmp_path: Path) -> None:
    """What the list has forgotten comes first."""
    home.take(Cursor(), stores.write_agent(tmp_path / "cursor", forgotten=4))
    assert _words(home, AGENT) == stores.SAID_TO_AGENT
    another = Home(tmp_path / "another")
    source = stores.write_agent(tmp_path / "later")
    another.take(Cursor(), source)
    stores.write_agent(source, forgotten=4)
    assert another.take(Cursor(), source).messages == 0


def test_conversations_that_begin_alike_are_two(home: Home, tmp_path: Path) -> None:
    """Messages are named by their content; the same text in two conversations stays two messages."""
    home.take(Cursor(), stores.write_agent(tmp_path / "one"))
    home.take(Cursor(), stores.write_agent(tmp_path / "two", "11111111-3e7e"))
    assert _words(home, "cursor-11111111-3e7e") == stores.SAID_TO_AGENT
    assert home.everything()["cursor-11111111-3e7e"]["parent_session_id"] is None


def test_a_transcript_is_read_for_a_conversation_in_no_database(home: Home, tmp_path: Path) -> None:
    """Of a conversation in a database, the transcript is not read."""
    source = stores.write_transcript(tmp_path / "cursor")
    home.take(Cursor(), source)
    assert _words(home, AGENT) == [("user", "Why?"), ("assistant", "I look."), ("assistant", "")]
    stores.write_transcript(source, lines=[*stores.TRANSCRIPT, stores.TRANSCRIPT[0], {"type": "turn_ended"}])
    assert home.take(Cursor(), source).messages == 1
    stores.write_agent(source)
    assert [item.file.name for item in Cursor().scan(source)] == ["store.db"]


def test_transcripts_of_plain_text_and_of_sub_agents_are_read(home: Home, tmp_path: Path) -> None:
    """The speaker is on a separate line."""
    folder = tmp_path / "cursor" / "projects" / "shop" / "agent-transcripts"
    (folder / stores.AGENT / "subagents").mkdir(parents=True)
    (folder / f"{stores.AGENT}.txt").write_text(stores.PLAIN, "utf-8")
    (folder / stores.AGENT / "subagents" / "sub.txt").write_text("user:\nRead it.\n", "utf-8")
    home.take(Cursor(), tmp_path / "cursor")
    assert _words(home, AGENT) == [("user", "Why?"), ("assistant", "[Thinking] Hm.\nI look."), ("user", "Thanks")]
    agent = home.everything()["cursor-sub"]
    assert (agent["parent_session_id"], agent["relation"]) == (AGENT, "delegation")


@pytest.mark.parametrize("name", ["User/globalStorage/state.vscdb", "chats/x/y/store.db"])
@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + bytes(200), b"words"])
def test_a_file_that_is_not_a_database_is_reported(home: Home, tmp_path: Path, name: str, content: bytes) -> None:
    """Nothing raises, and nothing is skipped silently."""
    file = tmp_path / "cursor" / name
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    where = tmp_path / "cursor" / "User" if name.startswith("User") else tmp_path / "cursor"
    assert home.take(Cursor(), where).problem_count == 1


def test_databases_are_not_changed(home: Home, tmp_path: Path) -> None:
    """Not a byte, and no file is created."""
    source = stores.write_agent(stores.write_editor(tmp_path / "cursor"))
    before = {file: file.read_bytes() for file in source.rglob("*") if file.is_file()}
    home.take(Cursor(), source)
    assert {file: file.read_bytes() for file in source.rglob("*") if file.is_file()} == before


def test_only_conversations_of_the_command_line_can_be_resumed_by_a_command() -> None:
    """Those of the editor are found in the editor."""
    assert Cursor().resume_command("ac43", "/home/ann/shop") == "cd /home/ann/shop && cursor-agent --resume ac43"
    assert Cursor().resume_command("composer-95d1", "/home/ann/shop") == ""
