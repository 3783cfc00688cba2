"""Recordings of Gemini CLI: as it writes them today and in 2025, sub-agents, and saved checkpoints."""

from pathlib import Path

import pytest

from memoranda.importers.coding_agents.gemini_cli import GeminiCli
from tests.importers import gemini_recordings as recordings
from tests.importers.import_home import Home, write_lines

pytestmark = pytest.mark.slow

NAME = f"gemini-cli-{recordings.SESSION}"
WORDS = [
    ("user", "Why does checkout deadlock?"),
    ("assistant", ""),
    ("assistant", "I look at the locks."),
    ("assistant", ""),
    ("tool", "src/order.py:12: with lock:"),
    ("assistant", "现在好了."),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _words(home: Home, session_id: str = NAME) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in home.messages(session_id)]


def test_a_session_comes_with_its_words_tools_thoughts_model_title_and_place(home: Home, tmp_path: Path) -> None:
    """A record that takes the place of an earlier one adds what is new in it, and nothing twice."""
    summary = home.take(GeminiCli(), recordings.write(tmp_path / "gemini", recordings.PRESENT))
    assert _words(home) == WORDS
    _, thought, answer, call, result, _ = home.messages(NAME)
    assert thought["reasoning"] == "Locks: Their order may differ."
    assert answer["timestamp"] == pytest.approx(1772445602.0)
    assert call["tool_calls"][0]["function"] == {
        "name": "run_shell_command",
        "arguments": '{"command": "rg -n lock src"}',
    }
    assert (result["tool_call_id"], result["tool_name"]) == ("run_shell_command__1", "run_shell_command")
    session = home.everything()[NAME]
    assert (session["model"], session["directory"]) == ("gemini-3.8-flash", recordings.DIRECTORY)
    assert session["title"] == "A deadlock in checkout"
    assert summary.problems == []
    assert summary.skipped["context given by the program"] == 1
    assert summary.skipped["rewind"] == 1


def test_the_form_of_2025_holds_the_same_words(home: Home, tmp_path: Path) -> None:
    """One object for a session, in a folder that is named by a digest of the directory."""
    summary = home.take(GeminiCli(), recordings.write_earlier(tmp_path / "gemini"))
    assert _words(home) == WORDS
    session = home.everything()[NAME]
    assert (session["directory"], session["title"]) == (recordings.DIRECTORY, "A deadlock in checkout")
    assert summary.problems == []


def test_a_session_that_was_taken_over_into_the_new_form_is_taken_in_once(home: Home, tmp_path: Path) -> None:
    """Resuming an old session makes the program write it again, with the same ids."""
    source = recordings.write_earlier(tmp_path / "gemini")
    home.take(GeminiCli(), source)
    folder = next(source.rglob("chats"))
    write_lines(folder / "session-2026-03-02T10-00-7550e3cb.jsonl", recordings.PRESENT)
    assert home.take(GeminiCli(), source).messages == 0


def test_results_that_come_later_are_added(home: Home, tmp_path: Path) -> None:
    """A session read while a tool was running gets the result when there is one."""
    source = recordings.write(tmp_path / "gemini", recordings.PRESENT[:5])
    home.take(GeminiCli(), source)
    assert _words(home) == WORDS[:3]
    recordings.write(source, recordings.PRESENT)
    home.take(GeminiCli(), source)
    assert _words(home) == WORDS


def test_what_a_compression_writes_is_not_said_again(home: Home, tmp_path: Path) -> None:
    """Version 0.61 writes a summary and the latest turns with new ids into a list; also when it is read later."""

    def record(name: str, kind: str, words: str, second: int) -> dict[str, object]:
        at = f"2026-11-20T01:12:{second:02}.000Z"
        return {"id": name, "timestamp": at, "type": kind, "content": [{"text": words}]}

    begun = {"sessionId": recordings.SESSION, "startTime": "2026-11-20T01:12:00.000Z", "kind": "main"}
    first = [record("u1", "user", "Which port?", 1), record("g1", "gemini", "5433.", 2)]
    copies = [record("u2", "user", "Which port?", 9), record("g2", "gemini", "5433.", 9)]
    listed = [first[0], record("s", "user", "<state_snapshot>", 9), *copies]
    file = tmp_path / "gemini" / "tmp" / "shop" / "chats" / "session-2026-11-20T01-12-11111111.jsonl"
    write_lines(file, [begun, *first])
    home.take(GeminiCli(), tmp_path / "gemini")
    write_lines(file, [begun, *first, {"$set": {"messages": listed}}, record("u3", "user", "And the host?", 12)])
    home.take(GeminiCli(), tmp_path / "gemini")
    assert [(each["content"], each.get("is_summary", False)) for each in home.messages(NAME)] == [
        ("Which port?", False), ("5433.", False), ("<state_snapshot>", True), ("Which port?", True), ("5433.", True),
        ("And the host?", False),
    ]  # fmt: skip


def test_a_sub_agent_is_delegated_by_its_session(home: Home, tmp_path: Path) -> None:
    """Its file lies in a folder that is named for the session."""
    source = recordings.write(tmp_path / "gemini", recordings.PRESENT)
    folder = source / "tmp" / "shop" / "chats" / recordings.SESSION
    write_lines(folder / f"{recordings.AGENT}.jsonl", recordings.SPAWNED)
    home.take(GeminiCli(), source)
    agent = home.everything()[f"gemini-cli-{recordings.AGENT}"]
    assert (agent["parent_session_id"], agent["relation"]) == (NAME, "delegation")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_checkpoint_is_a_conversation_under_its_tag(home: Home, tmp_path: Path, wrapped: bool) -> None:
    """Saved again when it is longer, it grows; words said twice are two messages."""
    full = recordings.CHECKPOINT
    source = recordings.write_checkpoint(tmp_path / "gemini", {"history": full[:6]} if wrapped else full[:6])
    home.take(GeminiCli(), source)
    recordings.write_checkpoint(source, {"history": full} if wrapped else full)
    home.take(GeminiCli(), source)
    (session,) = home.everything().values()
    assert session["title"] == "deadlock hunt"
    assert _words(home, session["id"]) == [
        ("user", "Why does checkout deadlock?"),
        ("assistant", ""),
        ("tool", "src/order.py:12"),
        ("assistant", "现在好了."),
        ("user", "continue"),
        ("user", "continue"),
    ]


@pytest.mark.parametrize(
    "content", ["", "[1, 2]", "{}", '{"sessionId": 3}', "{broken", '{"sessionId": "x", "messages": [1]}']
)
def test_a_file_that_is_no_recording_is_named(home: Home, tmp_path: Path, content: str) -> None:
    """Nothing is raised, and nothing is passed over."""
    file = tmp_path / "gemini" / "tmp" / "shop" / "chats" / "session-x.json"
    file.parent.mkdir(parents=True)
    file.write_text(content, "utf-8")
    assert home.take(GeminiCli(), tmp_path / "gemini").problem_count == 1


def test_a_directory_above_or_below_may_be_named(tmp_path: Path) -> None:
    """The program's directory can be moved, and people point to what they see."""
    recordings.write(tmp_path / ".gemini", recordings.PRESENT)
    for where in (tmp_path, tmp_path / ".gemini", tmp_path / ".gemini" / "tmp" / "shop"):
        assert len(GeminiCli().scan(where)) == 1
    assert GeminiCli().scan(tmp_path / "nowhere") == []


def test_a_session_is_resumed_in_its_directory() -> None:
    """A checkpoint has no command outside of the program."""
    assert GeminiCli().resume_command("7550", "/home/ann/shop") == "cd /home/ann/shop && gemini --resume 7550"
    assert GeminiCli().resume_command("checkpoint-shop-x", "/home/ann/shop") == ""
