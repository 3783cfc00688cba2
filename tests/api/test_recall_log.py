"""Everything that memory gives to a prompt is in the log of recalls, and goes when it is forgotten."""

from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.api.memory import Memory
from memoranda.home import config
from memoranda.integrations.frameworks import prompt_recall
from memoranda.integrations.hooks.log import HookLog
from memoranda.search.recall_log import hook_calls_path, read_calls, recalls_path
from memoranda.support.home import Home
from tests.external.plugins import add_plugin, plain
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

QUESTION = "How did we fix the deadlock in the heron queue?"
ANSWER = "We took the lock before reading the heron queue; the deadlock is gone."


def _calls(home: Path, user: str | None = None) -> list[dict[str, Any]]:
    return read_calls(recalls_path(home, user))


def _home(tmp_path: Path, *methods: str, settings: str = "") -> Path:
    add_plugin(tmp_path, "oracle", plain("oracle", *methods))
    (tmp_path / "config.yaml").write_text(f"memory:\n  provider: oracle\n{settings}")
    return tmp_path


def _record_past(memory: Memory) -> int:
    db = memory.sessions
    db.create_session("past", "cli", title="The deadlock")
    return [db.append_message("past", role, text) for role, text in (("user", QUESTION), ("assistant", ANSWER))][1]


def test_a_turn_logs_what_was_recalled_into_its_prompt(tmp_path: Path) -> None:
    """With the session and the message in the record, and the text that the model got."""
    home = _home(tmp_path, 'def prefetch(self, query, **facts):\n    return "The zebra is called Otto."')
    with memoranda.open(home) as memory, memory.session(source="cli") as session:
        with session.turn("What is the zebra called?") as turn:
            turn.done("Otto.")
        (call,) = _calls(home)
    assert (call["session_id"], call["message_id"]) == (session.id, turn.message_id)
    assert (call["outcome"], call["host"], "prompt" in call) == ("given", "cli", False)
    assert call["text"] == "oracle> The zebra is called Otto."


def test_a_turn_logs_why_nothing_was_recalled(tmp_path: Path) -> None:
    """A provider that knows nothing, one that fails, and one that is too slow are told apart."""
    source = (
        "def prefetch(self, query, **facts):\n"
        "    if 'fail' in query: raise RuntimeError('no')\n"
        "    if 'slow' in query: time.sleep(200)\n"
        "    return ''"
    )
    home = _home(tmp_path, source, settings="provider:\n  shutdown_seconds: 0.1\n")
    for seconds, texts in ((GIVE_UP, ("an empty answer", "please fail")), (0.2, ("a slow one", "another one"))):
        config.set_value(Home.at(home), "provider.recall_seconds", str(seconds))
        with memoranda.open(home) as memory, memory.session() as session:
            for text in texts:
                with session.turn(text) as turn:
                    turn.done("Fine.")
    assert [call["reason"] for call in reversed(_calls(home))] == [
        "oracle: it recalled nothing",
        "oracle: it failed",
        "oracle: no answer within 0.2 s",
        "oracle: it has not answered an earlier prompt yet",
    ]


def test_a_turn_without_external_memory_logs_only_changes(tmp_path: Path) -> None:
    """And not their words: an entry that is forgotten later would stay in the log."""
    with memoranda.open(tmp_path) as memory, memory.session() as session:
        with session.turn("first question") as turn:
            turn.done("Fine.")
        assert _calls(tmp_path) == []
        memory.remember("Ana makes the bookings.")
        with session.turn("second question") as turn:
            turn.done("Fine.")
    (call,) = _calls(tmp_path)
    assert call["reason"] == "what changed in memory since the conversation began"
    assert call["outcome"] == "given" and "Ana" not in str(call)


def test_a_question_to_memory_is_logged_for_its_conversation(tmp_path: Path) -> None:
    """`Memory.recall` names the messages that it found, and each user has the own log."""
    with memoranda.open(tmp_path, user="ana") as memory:
        answer = _record_past(memory)
        memory.recall(QUESTION, source="http", session_id="mine")
        memory.recall("zebras on stilts")
    nothing, given = _calls(tmp_path, "ana")
    assert (given["session_id"], given["host"], given["user"]) == ("mine", "http", "ana")
    assert given["given"][0]["session_id"] == "past" and abs(given["given"][0]["message_id"] - answer) <= 1
    assert (nothing["outcome"], nothing["reason"]) == ("nothing", "no part of memory knows about it")
    assert _calls(tmp_path) == []


def test_the_prompt_of_a_framework_is_logged(tmp_path: Path) -> None:
    """With what was given, or with the measures that nothing reached."""
    with memoranda.open(tmp_path) as memory:
        _record_past(memory)
        assert prompt_recall.recall(memory, QUESTION, "mine")
        assert not prompt_recall.recall(memory, "Write a poem about spring", "mine")
        assert not prompt_recall.recall(memory, "hi", "mine")
    short, poem, given = _calls(tmp_path)
    assert (given["outcome"], given["given"][0]["session_id"], given["session_id"]) == ("given", "past", "mine")
    assert poem["outcome"] == "nothing" and "floor" in poem
    assert "fewer than 8 characters" in short["reason"]


def test_deleting_a_conversation_erases_its_recalls(tmp_path: Path) -> None:
    """Those of our own agent and those of hooks; recalls of other conversations stay."""
    with memoranda.open(tmp_path) as memory:
        _record_past(memory)
        memory.sessions.create_session("codex-0a", "codex")
        for session in ("past", "other"):
            memory.recall("the heron plans", session_id=session)
        for host_id in ("0a", "0b"):
            log = HookLog(tmp_path, 1_700_000_000.0 + int(host_id, 16))
            log.begin("codex", "UserPromptSubmit", host_id, f"plans of {host_id}")
            log.end("nothing", "nothing cleared the floor")
        for session in ("past", "codex-0a"):
            assert memory.forget(session=session).complete
    assert [call["session_id"] for call in _calls(tmp_path)] == ["other"]
    assert [call["session_id"] for call in read_calls(hook_calls_path(tmp_path))] == ["0b"]


def test_a_forgotten_user_leaves_no_recalls(tmp_path: Path) -> None:
    """The user's own file is removed, and the user's calls of hooks are erased; others keep theirs."""
    for user in ("ana", "bo"):
        with memoranda.open(tmp_path, user=user) as memory:
            memory.remember("Likes tea.")
            memory.recall("the heron plans")
        HookLog(tmp_path, 1_700_000_000.0 + len(user)).begin("codex", "UserPromptSubmit", "0a", f"of {user}", user)
    with memoranda.open(tmp_path) as memory:
        report = memory.forget(user="ana")
    assert report.complete, report
    assert not recalls_path(tmp_path, "ana").exists()
    assert len(_calls(tmp_path, "bo")) == 1
    assert [call["user"] for call in read_calls(hook_calls_path(tmp_path))] == ["bo"]
