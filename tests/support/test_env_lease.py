"""Values are lent into a shared place, and leave it with their last user."""

import pytest

from memoranda.support.env_lease import EnvConflictError, EnvLeases


def test_what_is_lent_leaves_with_its_last_user() -> None:
    """Giving back twice is once."""
    place: dict[str, str] = {}
    lending = EnvLeases(place)
    first, second = lending.acquire({"a": "1", "b": "2"}, "x"), lending.acquire({"a": "1"}, "y")
    assert place == {"a": "1", "b": "2"}
    first.release()
    first.release()
    assert place == {"a": "1"}
    second.release()
    assert place == {}


def test_what_was_there_before_stays_and_counts() -> None:
    """It is what the borrower is told, and nobody takes it away."""
    place = {"a": "outside"}
    loan = EnvLeases(place).acquire({"a": "1"}, "x")
    assert (loan.values, place) == ({"a": "outside"}, {"a": "outside"})
    loan.release()
    assert place == {"a": "outside"}


def test_another_value_at_the_same_time_is_refused_as_a_whole() -> None:
    """Naming the variable and who has it, and no value."""
    place: dict[str, str] = {}
    lending = EnvLeases(place)
    loan = lending.acquire({"a": "1"}, "home x")
    with pytest.raises(EnvConflictError, match="a has another value for home x, which is in use"):
        lending.acquire({"b": "2", "a": "3"}, "home y")
    assert place == {"a": "1"}
    loan.release()
    assert lending.acquire({"a": "3"}, "home y").values == {"a": "3"}


def test_what_somebody_else_put_there_meanwhile_is_left_alone() -> None:
    """It is theirs."""
    place: dict[str, str] = {}
    loan = EnvLeases(place).acquire({"a": "1"}, "x")
    place["a"] = "theirs"
    loan.release()
    assert place == {"a": "theirs"}
