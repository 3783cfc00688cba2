"""The evidence for a prompt is the conversation that answers it, not earlier repetitions of the question."""

from pathlib import Path

import pytest

import memoranda
from memoranda.integrations.hooks.prompt_evidence import find_evidence
from tests.search.past import BEGIN, tell

_QUESTION = "How did we fix the deadlocks of the import worker?"
_DAY = 86_400.0


def _find(memory: memoranda.Memory) -> str:
    """What the hook gives to the model for the question, in the session "now"."""
    state_db = memory.home.state_db
    return find_evidence(state_db, memory.user, _QUESTION, "claude-code", "now", frozenset()).text


def _record(memory: memoranda.Memory, askings: int, reply: str) -> None:
    tell(
        memory.sessions,
        "original",
        [
            "The import worker deadlocks about once a day, and we have to fix it. All eight are alive.",
            "Take both locks in one order, queue first.",
        ],
    )
    for number in range(8):
        tell(memory.sessions, f"other-{number}", [f"Rename module {number}.", "Renamed it and its tests."])
    for number in range(askings):
        tell(memory.sessions, f"claude-code-{number}", [_QUESTION, reply], at=BEGIN + (number + 1) * _DAY)


@pytest.mark.slow
def test_after_twenty_repetitions_the_evidence_is_the_original(tmp_path: Path) -> None:
    """Even when the model repeated in each what it had recalled."""
    for reply in ("I do not know.", "Take both locks in one order, queue first."):
        with memoranda.open(tmp_path / reply[:4]) as memory:
            _record(memory, 20, reply)
            evidence = _find(memory)
            assert "session_id original" in evidence and "queue first" in evidence
            assert "session_id claude-code" not in evidence


def test_a_question_without_an_answer_is_not_evidence(tmp_path: Path) -> None:
    """No evidence is better than the same question; a question that was answered is evidence, once."""
    with memoranda.open(tmp_path) as memory:
        for number in range(3):
            tell(memory.sessions, f"claude-code-{number}", [_QUESTION, "I do not know."], at=BEGIN + number * _DAY)
        for number in range(8):
            tell(memory.sessions, f"other-{number}", [f"Rename module {number}.", "Renamed it and its tests."])
        assert _find(memory) == ""
        tell(memory.sessions, "claude-code-4", [_QUESTION, "Both locks are taken in one order."], at=BEGIN + 4 * _DAY)
        evidence = _find(memory)
        assert evidence.count("session_id claude-code-") == 1 and "taken in one order" in evidence


def test_the_own_session_is_never_evidence(tmp_path: Path) -> None:
    """Although it asked the question before and was answered."""
    with memoranda.open(tmp_path) as memory:
        tell(memory.sessions, "claude-code-now", [_QUESTION, "Both locks are taken in one order."])
        assert _find(memory) == ""


def test_the_other_messages_that_answer_are_evidence_too(tmp_path: Path) -> None:
    """They are apart from the window around the best one, however far away they were said."""
    with memoranda.open(tmp_path) as memory:
        words = [f"Line {number} about something else." for number in range(40)]
        words[5] = "The deadlocks of the import worker: we can fix them with one lock order."
        words[30] = "We did fix the deadlocks of the import worker, queue first."
        tell(memory.sessions, "original", words)
        for number in range(8):
            tell(memory.sessions, f"other-{number}", [f"Rename module {number}.", "Renamed it and its tests."])
        lines = _find(memory).splitlines()
        first, second = (next(n for n, line in enumerate(lines) if words[index] in line) for index in (5, 30))
        assert "…" in lines[first:second]
        assert not any("Line 15 " in line for line in lines)
