"""Recall asks Honcho as often as the settings say."""

from itertools import pairwise

from memoranda.external.vendors.honcho.recall import Cadence, pass_levels, reasoning_level


def test_a_refresh_is_due_every_few_turns() -> None:
    """In each session by itself."""
    cadence = Cadence(3)
    assert [turn for turn in range(8) if cadence.take("a", turn)] == [0, 3, 6]
    assert cadence.take("b", 0)


def test_empty_answers_make_it_rarer_up_to_a_limit() -> None:
    """An answer with content ends that."""
    cadence = Cadence(1)
    due = []
    for turn in range(60):
        if cadence.take("a", turn):
            due.append(turn)
            cadence.answered("a", empty=True)
    assert due[:5] == [0, 1, 3, 6, 10]
    assert max(later - earlier for earlier, later in pairwise(due)) == 8
    cadence.answered("a", empty=False)
    assert cadence.take("a", 100) and cadence.take("a", 101)


def test_a_reset_makes_every_session_due() -> None:
    """A session that was rewound asks again."""
    cadence = Cadence(5)
    assert cadence.take("a", 0) and not cadence.take("a", 1)
    cadence.reset()
    assert cadence.take("a", 1)


def test_long_messages_get_more_reasoning_up_to_the_cap() -> None:
    """Never less than the level of the settings."""
    assert reasoning_level("short", "low", "high", heuristic=True) == "low"
    assert reasoning_level("x" * 120, "low", "high", heuristic=True) == "medium"
    assert reasoning_level("x" * 400, "low", "high", heuristic=True) == "high"
    assert reasoning_level("x" * 400, "low", "medium", heuristic=True) == "medium"
    assert reasoning_level("x" * 400, "low", "high", heuristic=False) == "low"
    assert reasoning_level("x" * 400, "max", "high", heuristic=True) == "max"


def test_a_deeper_dialectic_has_more_passes() -> None:
    """The last of three is a cheap check."""
    assert [pass_levels(depth, "high") for depth in (1, 2, 3)] == [
        ["high"],
        ["minimal", "high"],
        ["minimal", "high", "low"],
    ]
