"""A turn passes an answer on while the model writes it, and records it: complete, or as interrupted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.agent.model_messages import FAILED_ANSWER, PARTIAL_ANSWER
from memoranda.api.memory import open_memory
from memoranda.errors import ModelReplyError

pytestmark = pytest.mark.slow


def _fail_after(*texts: str) -> Iterator[str]:
    yield from texts
    raise OSError("The line is dead.")


def test_a_streamed_answer_is_recorded_when_it_is_complete(tmp_path: Path) -> None:
    """Recalled memory that the model repeats is neither shown nor recorded."""
    with open_memory(tmp_path) as memory, memory.session() as session:
        with session.turn("a") as turn:
            chunks = iter(["You said: <memory-con", "text>\nsecret\n</memory-context>", " all."])
            assert "".join(turn.stream(chunks)) == "You said:  all."
        assert not turn.interrupted
        assert "secret" not in str(session.conversation())


def test_a_streamed_answer_that_breaks_off_is_recorded_with_a_note(tmp_path: Path) -> None:
    """A reader that leaves and a model that fails interrupt the turn; the next one can begin."""
    with open_memory(tmp_path) as memory, memory.session() as session:
        with session.turn("a") as turn:
            # A program may keep what it stopped reading.
            kept = turn.stream(iter(["One ", "two"]))
            next(kept)
        with pytest.raises(OSError, match="dead"), session.turn("b") as turn:
            list(turn.stream(_fail_after("Three")))
        with pytest.raises(ModelReplyError), session.turn("c") as turn:
            list(turn.stream([]))
        assert turn.interrupted
        kept.close()
        left, failed = f"One\n\n{PARTIAL_ANSWER}", f"Three\n\n{FAILED_ANSWER}"
        assert [each["content"] for each in session.conversation()] == ["a", left, "b", failed, "c"]


def test_a_home_may_keep_no_interrupted_answers(tmp_path: Path) -> None:
    """The setting is that of the included agent."""
    (tmp_path / "config.yaml").write_text("agent:\n  keep_interrupted: false\n")
    with open_memory(tmp_path) as memory, memory.session() as session:
        with pytest.raises(OSError, match="dead"), session.turn("a") as turn:
            list(turn.stream(_fail_after("Three")))
        assert [each["content"] for each in session.conversation()] == ["a"]
