"""Positions in a feed: they compare, and they survive as text."""

import pytest

from memoranda.storage.position import START, Position

pytestmark = pytest.mark.slow


def test_positions_compare_by_transaction_and_then_by_row() -> None:
    """The row of a later transaction comes later, whatever its number."""
    assert START < Position(0, 1) < Position(0, 2) < Position(7, 1) < Position(8, 0)


@pytest.mark.parametrize(("position", "text"), [(START, "0"), (Position(0, 17), "17"), (Position(5, 17), "5-17")])
def test_a_position_can_be_stored_as_text(position: Position, text: str) -> None:
    """A plain number is a row, as followers stored it before positions existed."""
    assert str(position) == text
    assert Position.parse(text) == position


def test_a_number_is_read_as_a_row() -> None:
    """SQLite gives a stored text that looks like a number back as one."""
    assert Position.parse(17) == Position(0, 17)


@pytest.mark.parametrize("text", ["", "x", "1-", "1-2-3", "-"])
def test_an_invalid_position_is_refused(text: str) -> None:
    """A damaged value must not become a position."""
    with pytest.raises(ValueError, match="invalid literal"):
        Position.parse(text)
