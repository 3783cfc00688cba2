"""What a gateway knows about a conversation reaches the provider."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import SessionError
from tests.external.diary import diary_home

pytestmark = pytest.mark.slow

# Writes down the facts of every start.
KEEP_FACTS = "facts.pop('secrets'); (Path(facts['hermes_home']) / 'facts.json').write_text(json.dumps(facts))"


def _facts(home: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((home / "facts.json").read_text())
    return facts


def test_the_provider_receives_all_fourteen_facts(tmp_path: Path) -> None:
    """Those that a gateway passes, as text, and those that the home and the session know."""
    home = diary_home(tmp_path, KEEP_FACTS)
    given = {
        "agent_context": "cron",
        "agent_identity": "butler",
        "agent_workspace": "house",
        "parent_session_id": "s0",
        "user_name": "Ana",
        "chat_name": "Trip",
        "chat_type": "group",
        "thread_id": "7",
        "gateway_session_key": "telegram:-100200:7",
        "session_title": "Planning",
    }
    with memoranda.open(home) as memory:
        memory.session(source="gateway", platform="telegram", user_id="4711", chat_id=-100200, **given).end()  # type: ignore[arg-type]
    expected = {"hermes_home": str(home), "platform": "telegram", "user_id": "4711", "chat_id": "-100200"}
    assert _facts(home) == {**given, **expected}


def test_without_a_gateway_the_facts_are_those_of_the_session(tmp_path: Path) -> None:
    """Unknown ones are left out; a resumed session passes its title, a branch its parent."""
    home = diary_home(tmp_path, KEEP_FACTS)
    plain = {"hermes_home": str(home), "platform": "cli", "user_id": "", "agent_context": "primary"}
    with memoranda.open(home) as memory:
        session = memory.session(source="cli")
        assert _facts(home) == {**plain, "agent_identity": memory.home.profile}
        session.rename("Trip")
        session.end()
        memory.session(source="cli", session_id=session.id).end()
        assert _facts(home)["session_title"] == "Trip"
        branch = memory.session(source="cli", session_id=session.id, chat_id="5").branch("Other")
        branch.end()
    assert _facts(home)["parent_session_id"] == session.id
    assert _facts(home)["chat_id"] == "5"


def test_the_facts_of_a_conversation_are_stored_with_it(tmp_path: Path) -> None:
    """A process that resumes it without them passes them to the provider; newer ones replace those that are stored."""
    home = diary_home(tmp_path, KEEP_FACTS)
    chat = {"chat_id": "-5", "chat_name": "Trip", "thread_id": "7", "user_name": "Ana"}
    with memoranda.open(home, user="ana") as memory:
        session = memory.session(source="gateway", platform="telegram", agent_workspace="house", **chat)  # type: ignore[arg-type]
        assert memory.sessions.get_session(session.id) is None
        with session.turn("Hello?") as turn:
            turn.done("Yes.")
        session.end()
    with memoranda.open(home, user="ana") as memory:
        resumed = memory.session(source="cli", session_id=session.id, chat_name="Holiday")
        expected = {**chat, "platform": "telegram", "chat_name": "Holiday"}
        assert _facts(home).items() >= expected.items()
        # What describes the process belongs to the process.
        assert "agent_workspace" not in _facts(home)
        with resumed.turn("And now?") as turn:
            turn.done("Yes.")
        branch = resumed.branch()
        for name in (resumed.id, branch.id):
            row = memory.sessions.get_session(name)
            assert row is not None and row["gateway"] == expected
        branch.end()
        resumed.end()
    with memoranda.open(home, user="bob") as memory:
        assert memory.sessions.get_session(session.id) is None


def test_user_and_user_id_are_one_user(tmp_path: Path) -> None:
    """The conversations and the memory are those of that user; two different users are refused."""
    with memoranda.open(tmp_path) as memory:
        assert memory.session(user_id="ana").user == "ana"
        assert memory.session(user="ana", user_id="ana").user == "ana"
        with pytest.raises(SessionError, match="two users"):
            memory.session(user="ana", user_id="bob")


def test_an_unknown_fact_is_refused(tmp_path: Path) -> None:
    """A spelling mistake does not vanish."""
    with memoranda.open(tmp_path) as memory, pytest.raises(TypeError, match="chat_id"):
        memory.session(chatid="5")  # type: ignore[call-arg]
