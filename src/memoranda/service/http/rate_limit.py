"""A token bucket per API key: so many requests a second, and so many at once."""

import time
from math import ceil

from memoranda.service.http.problems import Problem

_MAX_BUCKETS = 10_000


class RateLimit:
    """Limits each key by itself. All requests pass through one event loop, so this needs no lock."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}

    def spend(self, key_id: str) -> None:
        """Count one request; raises Problem 429 with Retry-After when the bucket of the key is empty."""
        if not self._per_second:
            return
        now = time.monotonic()
        tokens, at = self._buckets.get(key_id, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - at) * self._per_second)
        if tokens < 1:
            wait = ceil((1 - tokens) / self._per_second)
            raise Problem(
                429,
                "too_many_requests",
                f"This key may send {self._per_second:g} requests a second. Try again in {wait} s.",
                {"Retry-After": str(wait)},
            )
        if len(self._buckets) >= _MAX_BUCKETS:
            self._buckets.clear()
        self._buckets[key_id] = (tokens - 1, now)
