"""Rollouts of Codex: three generations of them, forks, sub-agents, names, and compressed files."""

import json
from pathlib import Path

import pytest

from memoranda.importers import zstandard
from memoranda.importers.coding_agents.codex import Codex
from tests.importers import codex_rollouts as rollouts
from tests.importers.import_home import Home, write_lines

pytestmark = pytest.mark.slow

NAME = f"codex-{rollouts.SESSION}"
WORDS = [
    ("user", "Why does checkout deadlock?"),
    ("assistant", ""),
    ("assistant", "I look at the locks."),
    ("assistant", ""),
    ("tool", "src/order.py:12: with lock:"),
    ("assistant", ""),
    ("tool", "Success. Updated src/order.py\n"),
    ("assistant", "Checkout took the locks in another order; 现在好了."),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def _words(home: Home, session_id: str) -> list[tuple[str, str]]:
    return [(each["role"], each["content"]) for each in home.messages(session_id)]


def test_a_session_is_imported_with_text_tools_reasoning_times_model_and_directory(home: Home, tmp_path: Path) -> None:
    """What the program wrote by itself is only counted."""
    summary = home.take(Codex(), rollouts.write(tmp_path / "codex", rollouts.PRESENT))
    assert _words(home, NAME) == WORDS
    _, thought, _, call, result, patch, _, last = home.messages(NAME)
    assert thought["reasoning"] == "Look at the locks first."
    assert call["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "exec_command", "arguments": '{"cmd": "rg -n lock src"}'},
    }
    assert (result["tool_call_id"], result["tool_name"]) == ("call_1", "exec_command")
    assert patch["tool_calls"][0]["function"]["arguments"].startswith("*** Begin Patch")
    assert last["timestamp"] == pytest.approx(1772445604.0)
    session = home.everything()[NAME]
    assert (session["source"], session["model"], session["directory"]) == ("codex", "gpt-5.2-codex", "/home/ann/shop")
    assert session["started_at"] == pytest.approx(1772445600.0)
    assert (session["host_session_id"], session["git_branch"]) == (rollouts.SESSION, "main")
    assert summary.problems == []
    assert summary.skipped["context given by the program"] == 2
    assert summary.skipped["reasoning (encrypted)"] == 1


@pytest.mark.parametrize("form", ["before envelopes", "one object"])
def test_older_formats_contain_the_same_messages(home: Home, tmp_path: Path, form: str) -> None:
    """Rollouts of 2025 are read like those of today."""
    source = tmp_path / "codex"
    if form == "one object":
        rollouts.write_first(source)
    else:
        rollouts.write(source, rollouts.EARLIER)
    summary = home.take(Codex(), source)
    assert _words(home, NAME) == WORDS
    assert summary.problems == []
    if form == "before envelopes":
        assert home.everything()[NAME]["directory"] == "/home/ann/shop"


def test_a_fork_that_is_a_copy_adds_only_what_is_new_in_it(home: Home, tmp_path: Path) -> None:
    """The copied messages stay where they were said; the fork is a branch of that session."""
    summary = home.take(Codex(), rollouts.write(tmp_path / "codex", rollouts.PRESENT, rollouts.FORKED))
    fork = home.everything()[f"codex-{rollouts.FORK}"]
    assert (fork["parent_session_id"], fork["relation"]) == (NAME, "branch")
    assert _words(home, f"codex-{rollouts.FORK}") == [("user", "And refunds?"), ("assistant", "They are safe.")]
    assert summary.messages == len(WORDS) + 2


def test_a_sub_agent_is_delegated_by_its_session(home: Home, tmp_path: Path) -> None:
    """The session that started it is its parent."""
    home.take(Codex(), rollouts.write(tmp_path / "codex", rollouts.PRESENT, rollouts.SPAWNED))
    agent = home.everything()[f"codex-{rollouts.AGENT}"]
    assert (agent["parent_session_id"], agent["relation"]) == (NAME, "delegation")


def test_the_notice_that_a_sub_agent_has_finished_is_not_a_message_of_the_user(home: Home, tmp_path: Path) -> None:
    """Codex 0.166 writes it in the user's role and names the tool as its author."""
    author = {"content_item_metadata": [{"provenance": {"type": "tool", "namespace": "multi_agent_v1"}}]}
    notice = rollouts.message(
        "user",
        '<subagent_notification>\n{"status": "completed"}\n</subagent_notification>',
        "20.000",
        internal_chat_message_metadata_passthrough=author,
    )
    home.take(Codex(), rollouts.write(tmp_path / "codex", [*rollouts.PRESENT, notice]))
    assert _words(home, NAME) == WORDS


def test_a_repeated_text_is_two_messages(home: Home, tmp_path: Path) -> None:
    """Messages have no ids, and still none is taken for another."""
    twice = [rollouts.message("user", "continue", "30.000")] * 3
    home.take(Codex(), rollouts.write(tmp_path / "codex", [*rollouts.PRESENT, *twice]))
    assert _words(home, NAME)[-3:] == [("user", "continue")] * 3


def test_a_growing_session_is_read_from_its_checkpoint(home: Home, tmp_path: Path) -> None:
    """Messages that come later continue the ones before, as if all had been read at once."""
    source = rollouts.write(tmp_path / "codex", rollouts.PRESENT[:10])
    home.take(Codex(), source)
    rollouts.write(source, [*rollouts.PRESENT, rollouts.SUMMARY])
    summary = home.take(Codex(), source)
    assert _words(home, NAME)[: len(WORDS)] == WORDS
    assert home.messages(NAME)[4]["tool_name"] == "exec_command"
    assert summary.bytes < sum(file.stat().st_size for file in source.rglob("*.jsonl"))
    whole = Home(tmp_path / "another")
    whole.take(Codex(), source)
    names = [each["external_id"] for each in home.messages(NAME)]
    assert names == [each["external_id"] for each in whole.messages(NAME)]


def test_a_summary_is_kept_as_one(home: Home, tmp_path: Path) -> None:
    """What compaction wrote is not a message of the user."""
    home.take(Codex(), rollouts.write(tmp_path / "codex", [*rollouts.PRESENT, rollouts.SUMMARY]))
    assert home.messages(NAME)[-1]["is_summary"]


def test_the_name_that_a_person_gave_is_the_title(home: Home, tmp_path: Path) -> None:
    """The latest line of the index counts; a broken one costs nothing."""
    source = rollouts.write(tmp_path / "codex", rollouts.PRESENT)
    named = [{"id": rollouts.SESSION, "thread_name": name} for name in ("Locks", "Deadlock in checkout")]
    index = write_lines(source / "session_index.jsonl", named)
    index.write_text(index.read_text("utf-8") + "{broken\n", "utf-8")
    home.take(Codex(), source)
    assert home.everything()[NAME]["title"] == "Deadlock in checkout"


def test_archived_sessions_are_found_too(home: Home, tmp_path: Path) -> None:
    """Archiving moves a rollout to another folder."""
    source = rollouts.write(tmp_path / "codex", rollouts.PRESENT)
    (source / "archived_sessions").mkdir()
    next(source.rglob("*.jsonl")).rename(source / "archived_sessions" / f"rollout-x-{rollouts.SESSION}.jsonl")
    assert home.take(Codex(), source).messages == len(WORDS)


def test_a_compressed_rollout_without_a_library_says_what_to_install(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is skipped silently."""
    monkeypatch.setattr(zstandard, "_load_library", lambda: None)
    folder = tmp_path / "codex" / "sessions"
    folder.mkdir(parents=True)
    (folder / f"rollout-x-{rollouts.SESSION}.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    summary = home.take(Codex(), folder.parent)
    (problem,) = summary.problems
    assert "pip install 'memoranda[zstd]'" in problem.text
    assert "`zstd -d`" in problem.text


def test_a_compressed_rollout_is_read_with_a_library(home: Home, tmp_path: Path) -> None:
    """With Python 3.14 or the package zstandard; a truncated one ends in a problem."""
    library = pytest.importorskip("zstandard")
    text = "".join(json.dumps(line) + "\n" for line in rollouts.PRESENT).encode()
    folder = tmp_path / "codex" / "sessions"
    folder.mkdir(parents=True)
    file = folder / f"rollout-x-{rollouts.SESSION}.jsonl.zst"
    file.write_bytes(library.ZstdCompressor().compress(text))
    assert home.take(Codex(), folder.parent).messages == len(WORDS)
    file.write_bytes(b"no frame at all")
    assert home.take(Codex(), folder.parent).problem_count == 1


def test_lines_that_are_not_from_codex_are_reported_by_number(home: Home, tmp_path: Path) -> None:
    """A broken line loses only itself."""
    source = rollouts.write(tmp_path / "codex", [*rollouts.PRESENT, {"payload": 3}, {"type": "event_msg"}])
    file = next(source.rglob("*.jsonl"))
    file.write_bytes(file.read_bytes() + b"{cut\n\xff\xfe\n")
    summary = home.take(Codex(), source)
    first = len(rollouts.PRESENT) + 1
    assert [problem.line for problem in summary.problems] == [first, first + 1, first + 2, first + 3]
    assert summary.messages == len(WORDS)


def test_a_session_is_resumed_by_its_id() -> None:
    """Names are quoted for the shell."""
    assert Codex().resume_command("019a", None) == "codex resume 019a"
    assert Codex().resume_command("019a", "/home/ann/my shop") == "cd '/home/ann/my shop' && codex resume 019a"
