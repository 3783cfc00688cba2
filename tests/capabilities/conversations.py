"""Turns for these tests."""

import memoranda


def take_turn(session: memoranda.Session, question: str, answer: str = "Yes.") -> None:
    with session.turn(question) as turn:
        turn.done(answer)


def fill_context(session: memoranda.Session, turns: int = 12) -> None:
    """Enough long turns that a compression has something to leave out."""
    for number in range(turns):
        take_turn(session, f"Question {number}: {'word ' * 2_000}")
