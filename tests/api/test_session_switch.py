"""A chat that starts over or resumes keeps its provider, which learns the new id and why."""

from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.agent.compression.trigger import ContextEngine
from memoranda.errors import SessionError
from tests.external.diary import DIARY, diary_home, told

pytestmark = pytest.mark.slow

# Also writes down starts, the reset flag and the numbers of turns.
WATCHFUL = DIARY.replace(
    'self.note("switch", new_session_id, parent_session_id, reason)',
    'self.note("switch", new_session_id, parent_session_id, reset, reason)',
).replace(
    "    def lines(self):",
    "    def on_turn_start(self, turn_number, message, **facts):\n"
    '        self.note("number", turn_number)\n\n'
    "    def lines(self):",
)


def _watchful_home(home: Path) -> Path:
    diary_home(home)
    source = WATCHFUL.replace("BREAK_START", "self.note('start', session_id)").replace("BREAK_RECALL", "pass")
    (home / "plugins" / "diary" / "__init__.py").write_text(source)
    return home


def _take_turn(session: memoranda.Session, question: str) -> None:
    with session.turn(question) as turn:
        turn.done("Yes.")


class Engine:
    """Keeps every start that it is notified of."""

    def __init__(self) -> None:
        self.starts: list[tuple[str, str, str | None]] = []
        self.facts: dict[str, Any] = {}

    def on_session_start(
        self, session_id: str, *, boundary_reason: str, old_session_id: str | None = None, **facts: Any
    ) -> None:
        self.starts.append((session_id, boundary_reason, old_session_id))
        self.facts = facts


def test_a_reset_switches_the_provider_to_a_new_conversation(tmp_path: Path) -> None:
    """It is started once, receives the end and then the new id with reset; turns are counted from one again."""
    home = _watchful_home(tmp_path)
    with memoranda.open(home) as memory:
        first = memory.session(source="cli", chat_id="5")
        _take_turn(first, "Hello?")
        second = first.reset()
        third = second.reset("Trip", reason="new_session")
        _take_turn(third, "Where to?")
        assert third.title == "Trip"
        assert [message["content"] for message in third.conversation()] == ["Where to?", "Yes."]
        row = memory.sessions.get_session(first.id)
        assert row is not None and row["end_reason"] == "reset"
        third.end()
    # Numbers arrive directly, the others through the outbox.
    assert [line for line in told(home) if line[0] == "number"] == [["number", 1], ["number", 1]]
    assert [line for line in told(home) if line[0] != "number"] == [
        ["start", first.id],
        ["turn", "Hello?", "Yes."],
        ["end", 2],
        ["switch", second.id, first.id, True, "reset"],
        ["switch", third.id, second.id, True, "new_session"],
        ["turn", "Where to?", "Yes."],
        ["end", 2],
    ]


def test_a_switch_resumes_another_conversation(tmp_path: Path) -> None:
    """Without reset; its prompt and its turns are those it had, and a late message resumes the one before."""
    home = _watchful_home(tmp_path)
    with memoranda.open(home) as memory:
        old = memory.session(source="cli")
        _take_turn(old, "Hello?")
        old.end()
        current = memory.session(source="cli")
        _take_turn(current, "And now?")
        resumed = current.switch(old.id)
        assert resumed.id == old.id and resumed.prompt == old.prompt
        _take_turn(resumed, "Still there?")
        _take_turn(current, "One more thing.")
        assert [message["content"] for message in current.conversation()][-2:] == ["One more thing.", "Yes."]
        resumed.end()
        current.end()
    assert ["switch", old.id, current.id, False, "resume"] in told(home)
    assert [line[1] for line in told(home) if line[0] == "number"] == [1, 1, 2, 2]


def test_a_title_in_use_leaves_the_conversation_as_it_is(tmp_path: Path) -> None:
    """Nothing has ended, and the provider is still attached."""
    home = _watchful_home(tmp_path)
    with memoranda.open(home) as memory:
        memory.session().rename("Trip")
        session = memory.session()
        _take_turn(session, "Hello?")
        with pytest.raises(SessionError, match="Trip"):
            session.reset("Trip")
        assert session.external.active
        _take_turn(session, "Still there?")
        row = memory.sessions.get_session(session.id)
        assert row is not None and row["ended_at"] is None
        session.end()
    assert [line for line in told(home) if line[0] == "switch"] == []


def test_the_turn_number_continues_after_compression_and_resume(tmp_path: Path) -> None:
    """The provider counts the turns of the conversation, not those of a process or of a session."""
    home = _watchful_home(tmp_path)
    with memoranda.open(home) as memory:
        session = memory.session()
        for number in range(12):
            _take_turn(session, f"Question {number}: {'word ' * 2_000}")
        assert session.compress(force=True).done
        _take_turn(session, "After compression.")
        session.end()
    with memoranda.open(home) as memory, memory.session(session_id=session.id) as resumed:
        _take_turn(resumed, "After a resume.")
    assert [line[1] for line in told(home) if line[0] == "number"] == [*range(1, 15)]


def test_the_context_engine_learns_why_a_session_starts(tmp_path: Path) -> None:
    """Start, resume, reset, branch and compression, each with the session before."""
    engine = Engine()
    with memoranda.open(tmp_path) as memory:
        session = memory.session(context_engine=engine, chat_id="5")
        start = session.id
        for number in range(12):
            _take_turn(session, f"Question {number}: {'word ' * 2_000}")
        assert session.compress(force=True).done
        branch = session.branch()
        fresh = branch.reset()
        memory.session(session_id=start, context_engine=engine)
    assert engine.starts == [
        (start, "start", None),
        (session.id, "compression", start),
        (branch.id, "branch", session.id),
        (fresh.id, "reset", branch.id),
        (session.id, "resume", None),
    ]
    assert engine.facts["platform"] == "library"


def test_a_context_engine_that_fails_does_not_stop_the_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is in the log; an object without the hook is refused at once."""

    class Broken:
        def on_session_start(self, session_id: str, **facts: Any) -> None:
            raise RuntimeError("lost the graph")

    with memoranda.open(tmp_path) as memory:
        engine: ContextEngine = Broken()
        _take_turn(memory.session(context_engine=engine), "Hello?")
        with pytest.raises(TypeError, match="on_session_start"):
            memory.session(context_engine=object())  # type: ignore[arg-type]
    assert "A context engine failed" in caplog.text and "lost the graph" in caplog.text
