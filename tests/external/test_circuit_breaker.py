"""The circuit breaker opens after failures, lets one probe through, and closes after a success."""

import pytest

from memoranda.external.remote import CircuitBreaker


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


def test_it_opens_after_enough_failures_in_a_row(clock: _Clock) -> None:
    """A success in between starts the count from zero."""
    breaker = CircuitBreaker(3, 30.0, clock=clock)
    for outcome in (breaker.failed, breaker.failed, breaker.succeeded, breaker.failed, breaker.failed):
        assert breaker.allow()
        outcome()
    assert breaker.allow()
    breaker.failed()
    assert not breaker.allow()
    assert breaker.seconds_left == 30.0


def test_one_probe_at_a_time_decides(clock: _Clock) -> None:
    """Other calls wait for its result: a failure opens it again at once, a success closes it."""
    breaker = CircuitBreaker(1, 30.0, clock=clock)
    breaker.failed()
    clock.now += 30.0
    assert [breaker.allow(), breaker.allow()] == [True, False]
    breaker.failed()
    assert not breaker.allow()
    clock.now += 30.0
    assert breaker.allow()
    breaker.succeeded()
    assert [breaker.allow(), breaker.allow()] == [True, True]


def test_a_service_that_says_how_long_to_wait_gets_nothing_for_that_long(clock: _Clock) -> None:
    """At its first failure, and never for less than the usual time."""
    breaker = CircuitBreaker(3, 30.0, clock=clock)
    breaker.failed(retry_after=0.0)
    assert breaker.allow()
    breaker.failed(retry_after=120.0)
    clock.now += 119.0
    assert not breaker.allow()
    clock.now += 1.0
    assert breaker.allow()
    breaker.failed(retry_after=1.0)
    assert breaker.seconds_left == 30.0
