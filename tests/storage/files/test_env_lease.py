"""Variables are leased, and removed with their last lease."""

import pytest

from memoranda.storage.files.env_lease import EnvConflictError, EnvLeases


def test_a_value_is_removed_with_its_last_lease() -> None:
    """Releasing twice is releasing once."""
    environment: dict[str, str] = {}
    leases = EnvLeases(environment)
    first, second = leases.acquire({"a": "1", "b": "2"}, "x"), leases.acquire({"a": "1"}, "y")
    assert environment == {"a": "1", "b": "2"}
    first.release()
    first.release()
    assert environment == {"a": "1"}
    second.release()
    assert environment == {}


def test_what_was_there_before_stays_and_counts() -> None:
    """The holder sees it, and releasing does not remove it."""
    environment = {"a": "outside"}
    lease = EnvLeases(environment).acquire({"a": "1"}, "x")
    assert (lease.values, environment) == ({"a": "outside"}, {"a": "outside"})
    lease.release()
    assert environment == {"a": "outside"}


def test_another_value_at_the_same_time_is_refused_as_a_whole() -> None:
    """Naming the variable and who has it, and no value."""
    environment: dict[str, str] = {}
    leases = EnvLeases(environment)
    lease = leases.acquire({"a": "1"}, "home x")
    with pytest.raises(EnvConflictError, match="a has another value for home x, which is in use"):
        leases.acquire({"b": "2", "a": "3"}, "home y")
    assert environment == {"a": "1"}
    lease.release()
    assert leases.acquire({"a": "3"}, "home y").values == {"a": "3"}


def test_what_the_host_sets_meanwhile_stays() -> None:
    """It is theirs."""
    environment: dict[str, str] = {}
    lease = EnvLeases(environment).acquire({"a": "1"}, "x")
    environment["a"] = "theirs"
    lease.release()
    assert environment == {"a": "theirs"}


def test_a_holder_sees_what_is_set_but_not_what_another_holder_has_set() -> None:
    """A home without a key does not get the key of another home."""
    environment = {"a": "outside"}
    leases = EnvLeases(environment)
    leases.acquire({"b": "2"}, "x")
    assert leases.acquire({}, "y", ["a", "b", "c"]).values == {"a": "outside"}
