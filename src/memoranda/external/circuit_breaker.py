"""A circuit breaker: stops calling a service that keeps failing, and probes it at intervals."""

import time
from collections.abc import Callable

from memoranda.storage.files.fork_lock import ForkLock


class CircuitBreaker:
    """Closed at first. Opens after `max_failures` in a row; after `open_seconds` one call may probe the service.

    A probe that succeeds closes it, one that fails opens it again. Thread-safe. Ask `allow` before a call, and report
    every call that was allowed with `succeeded` or `failed`.
    """

    def __init__(
        self, max_failures: int = 3, open_seconds: float = 30.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_failures = max_failures
        self._open_seconds = open_seconds
        self._clock = clock
        self._lock = ForkLock()
        self._failures = 0
        self._open_until = 0.0
        self._probing = False

    def allow(self) -> bool:
        """Whether to make a call now; False while the breaker is open or another call probes the service."""
        with self._lock:
            if not self._open_until:
                return True
            if self._probing or self._clock() < self._open_until:
                return False
            self._probing = True
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._open_until, self._probing = 0, 0.0, False

    def failed(self, retry_after: float | None = None) -> None:
        """Count a failure; a service that says how long to wait opens the breaker for that long at once."""
        with self._lock:
            self._failures += 1
            if self._probing or self._failures >= self._max_failures or retry_after:
                self._open_until = self._clock() + max(self._open_seconds, retry_after or 0.0)
            self._probing = False

    @property
    def seconds_left(self) -> float:
        """How long until a probe is allowed."""
        with self._lock:
            return max(0.0, self._open_until - self._clock()) if self._open_until else 0.0
