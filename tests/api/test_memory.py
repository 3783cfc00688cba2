"""The public face: open a home, begin a session, remember."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.agent.model_messages import INTERRUPTED_ANSWER
from memoranda.errors import ConfigError, ForeignHomeError
from tests.conftest import OWN_TOOLS, mode, tree


def test_the_public_names_are_there() -> None:
    """Every name in __all__ can be used."""
    assert all(getattr(memoranda, name) is not None for name in memoranda.__all__)
    with pytest.raises(AttributeError):
        _ = memoranda.nonsense


def test_opening_an_empty_home_works_and_writes_nothing(tmp_path: Path) -> None:
    """A home comes into being with the first write."""
    with memoranda.open(tmp_path / "home") as memory, memory.session() as session:
        assert "session_search" in session.prompt
        assert [tool.name for tool in session.tools] == OWN_TOOLS
    assert not (tmp_path / "home").exists()


def test_a_fact_saved_in_one_session_is_in_the_prompt_of_the_next(tmp_path: Path) -> None:
    """And not in the prompt of the session that saved it."""
    memory = memoranda.open(tmp_path)
    with memory.session(source="test", model="m") as session:
        before = session.prompt
        result = session.call("memory", {"target": "user", "action": "add", "content": "Prefers tea."})
        assert result["success"]
        assert session.prompt == before
        assert "Prefers tea." not in before
    with memory.session() as session:
        assert "Prefers tea." in session.prompt


def test_remember_gives_a_receipt(tmp_path: Path) -> None:
    """Where it is stored and from when it is visible."""
    memory = memoranda.open(tmp_path)
    receipt = memory.remember("Project uses pytest.")
    assert receipt["success"]
    assert Path(receipt["stored_in"]).read_text() == "Project uses pytest."
    assert receipt["visible_from"] == "next session"
    assert memory.entries("memory") == ("Project uses pytest.",)


def test_the_journal_tells_agent_person_and_session_apart(tmp_path: Path) -> None:
    """Who saved what, in which session."""
    memory = memoranda.open(tmp_path)
    session = memory.session(session_id="s-1")
    session.call("memory", {"action": "add", "content": "by the agent"})
    session.remember("asked for")
    memory.remember("outside any session")
    changes = memory.curated.journal.changes()
    assert [(change.actor, change.session) for change in changes] == [
        ("agent", "s-1"),
        ("person", "s-1"),
        ("person", ""),
    ]


def test_home_and_files_are_private(tmp_path: Path) -> None:
    """Directories 0700, files 0600, also under a generous umask."""
    old = os.umask(0)
    try:
        memoranda.open(tmp_path / "home", profile="work", user="ana").remember("x")
    finally:
        os.umask(old)
    made = [path for path in (tmp_path / "home").rglob("*")] + [tmp_path / "home"]
    assert {mode(path) for path in made if path.is_dir()} == {0o700}
    assert {mode(path) for path in made if path.is_file()} == {0o600}


def test_the_home_comes_from_the_environment_else_from_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MEMORANDA_HOME, else ~/.memoranda; MEMORANDA_PROFILE chooses a profile."""
    assert memoranda.open().home.root == (tmp_path / "user" / ".memoranda").resolve()
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "h"))
    monkeypatch.setenv("MEMORANDA_PROFILE", "work")
    assert memoranda.open().home.root == (tmp_path / "h" / "profiles" / "work").resolve()


def test_an_opened_memory_keeps_its_home_when_the_environment_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is pinned when it is opened."""
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "one"))
    memory = memoranda.open()
    session = memory.session()
    monkeypatch.setenv("MEMORANDA_HOME", str(tmp_path / "two"))
    session.call("memory", {"action": "add", "content": "x"})
    memory.session().remember("y")
    assert not (tmp_path / "two").exists()
    assert memory.entries() == ("x", "y")


def test_users_and_profiles_never_see_each_others_memory(tmp_path: Path) -> None:
    """Neither in entries nor in prompts, whatever their ids look like."""
    ids = ["ana", "Ana", "../ana", "users/ana", "ana/../../MEMORY.md", "."]
    memory = memoranda.open(tmp_path)
    memory.remember("of the home itself")
    memoranda.open(tmp_path, profile="work").remember("of the profile")
    for number, user in enumerate(ids):
        memory.session(user=user).remember(f"secret number {number}")
    for number, user in enumerate(ids):
        assert memoranda.open(tmp_path, user=user).entries() == (f"secret number {number}",)
        assert memory.session(user=user).prompt.count("secret number") == 1
    assert memory.entries() == ("of the home itself",)
    assert all(path.is_relative_to(tmp_path) for path in tmp_path.rglob("*"))


def test_a_hermes_home_is_never_written(tmp_path: Path) -> None:
    """Opening it is refused, with a pointer to importing, and not a byte changes."""
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "MEMORY.md").write_text("theirs")
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("CREATE TABLE sessions (id TEXT)")
    connection.close()
    before = tree(tmp_path)
    with pytest.raises(ForeignHomeError, match="import"):
        memoranda.open(tmp_path)
    assert tree(tmp_path) == before


def test_a_broken_configuration_opens_nothing(tmp_path: Path) -> None:
    """A guess could switch an approval gate off."""
    (tmp_path / "config.yaml").write_text("memory:\n  write_approval: perhaps\n")
    with pytest.raises(ConfigError):
        memoranda.open(tmp_path)


def test_what_is_switched_off_offers_no_tool(tmp_path: Path) -> None:
    """And a call is still answered in JSON."""
    switched_off = "memory:\n  memory_enabled: false\n  user_profile_enabled: false\nskills:\n  enabled: false\n"
    (tmp_path / "config.yaml").write_text(switched_off)
    session = memoranda.open(tmp_path).session()
    assert [tool.name for tool in session.tools] == ["session_search"]
    assert session.call("memory", {"action": "add", "content": "x"})["reason"] == "unavailable"


def test_an_unknown_tool_is_answered(tmp_path: Path) -> None:
    """With the names of those there are."""
    answer = memoranda.open(tmp_path).call("nonsense", {})
    assert not answer["success"]
    assert "memory, session_search" in answer["error"]


def test_failures_are_counted_per_turn(tmp_path: Path) -> None:
    """begin_turn makes the tool patient again."""
    session = memoranda.open(tmp_path).session()
    wrong: dict[str, Any] = {"action": "remove", "old_text": "zebra"}
    assert "done" in [session.call("memory", wrong) for _ in range(4)][-1]
    session.begin_turn()
    assert "done" not in session.call("memory", wrong)


def test_tools_speak_the_schemas_of_both_families(tmp_path: Path) -> None:
    """OpenAI's function form and Anthropic's input_schema."""
    tool, search = memoranda.open(tmp_path).tools
    assert search.anthropic_schema()["name"] == "session_search"
    assert tool.openai_schema()["function"]["parameters"]["required"] == ["target"]
    assert tool.anthropic_schema()["input_schema"] == tool.parameters


@pytest.mark.slow
def test_importing_the_package_does_no_work() -> None:
    """No heavy module is loaded by the import, nor by listing entries in a home without a config file."""
    code = """
import sys, memoranda
light = set(sys.modules)
memory = memoranda.open(sys.argv[1]); memory.entries()
heavy = {"ruamel", "dotenv", "asyncio", "sqlite3", "click", "rich", "yaml"}
print(sorted(name for name in light if name.startswith("memoranda.")), sorted(heavy & set(sys.modules)))
"""
    result = subprocess.run(
        [sys.executable, "-c", code, "/nonexistent/home"], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[] []"


def test_a_turn_is_recorded_before_the_model_is_asked(tmp_path: Path) -> None:
    """Another process sees the user's words while the turn is still open."""
    with memoranda.open(tmp_path) as memory, memory.session(source="test", model="m/1") as session:
        with session.turn("What is it?") as turn:
            with memoranda.open(tmp_path) as other:
                (message,) = other.sessions.get_messages(session.id)
            assert (message["role"], message["content"]) == ("user", "What is it?")
            assert turn.messages == [{"role": "user", "content": "What is it?"}]
            turn.record("assistant", tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{}"}}])
            turn.record("tool", "a zebra", tool_name="look", tool_call_id="c")
            turn.done("A zebra.")
            assert not turn.interrupted
        assert [message["role"] for message in session.conversation()] == ["user", "assistant", "tool", "assistant"]
        stored = memory.sessions.get_session(session.id)
    assert stored is not None
    assert (stored["source"], stored["model"], stored["message_count"]) == ("test", "m/1", 4)


def test_an_interrupted_turn_keeps_what_was_recorded(tmp_path: Path) -> None:
    """And the session continues."""
    with memoranda.open(tmp_path) as memory, memory.session() as session:
        with pytest.raises(KeyboardInterrupt), session.turn("first") as turn:
            raise KeyboardInterrupt
        assert turn.interrupted
        with session.turn("second") as turn:
            turn.done([{"role": "assistant", "content": "yes"}])
        said = [message["content"] for message in session.conversation()]
        assert said == ["first", INTERRUPTED_ANSWER, "second", "yes"]


def test_a_session_can_be_taken_up_again(tmp_path: Path) -> None:
    """By its id; it is ended when it is left, and open again when something is said."""
    with memoranda.open(tmp_path) as memory:
        with memory.session(session_id="s") as session, session.turn("hello") as turn:
            turn.done("hi")
        ended = memory.sessions.get_session("s")
        assert ended is not None
        assert ended["end_reason"] == "session_end"
        again = memory.session(session_id="s")
        with again.turn("still there?") as turn:
            assert len(turn.messages) == 3
            reopened = memory.sessions.get_session("s")
            assert reopened is not None
            assert reopened["ended_at"] is None


def test_search_finds_what_was_said_in_another_session(tmp_path: Path) -> None:
    """Through the face, through the tool of a session, and not for another user."""
    with memoranda.open(tmp_path) as memory:
        with memory.session(user="ana") as session, session.turn("The zebra is called Otto.") as turn:
            turn.done("Noted.")
        assert memory.search("zebra")["results"] == []
        answer = memory.session(user="ana").call("session_search", {"query": "what is the zebra called?"})
        assert answer["results"][0]["snippet"].startswith("The >>>zebra<<< is >>>called<<<")
        with pytest.raises(memoranda.MemorandaError, match="sort"):
            memory.search("zebra", sort="sideways")  # type: ignore[call-overload]


def test_a_secret_of_the_environment_never_reaches_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one of .env; the model's context is not touched, and the switch switches it off."""
    from memoranda.home import config
    from memoranda.support.home import Home

    monkeypatch.setenv("ACME_API_KEY", "correct-horse-battery")
    config.set_secret(Home.at(tmp_path), "OTHER", "staple-staple-staple")
    text = "keys: correct-horse-battery and staple-staple-staple"
    with memoranda.open(tmp_path) as memory, memory.session() as session, session.turn(text) as turn:
        turn.done(text)
        assert "horse" not in str(session.conversation())
        assert memory.sessions.statistics()["redacted_secrets"] == 4
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("state*"))
    assert b"horse" not in stored
    assert b"staple" not in stored
    config.set_value(Home.at(tmp_path), "sessions.redact_secrets", "false")
    with memoranda.open(tmp_path) as memory, memory.session() as session, session.turn(text) as turn:
        assert turn.messages[0]["content"] == text
