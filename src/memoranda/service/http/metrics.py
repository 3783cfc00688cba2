"""Counters of the service, and their text for Prometheus (version 0.0.4 of its format)."""

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import field

from memoranda.support.lazy_dataclass import dataclass

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BUCKETS, seconds)] += 1
        self.total += seconds


class Metrics:
    """Counts what the service does. Labels are routes and statuses, never ids or names of users."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._latency: dict[tuple[str, str], _Histogram] = {}
        self._counters: dict[str, float] = {}

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in _METHODS else "other"
        with self._lock:
            key = (method, route, status)
            self._requests[key] = self._requests.get(key, 0) + 1
            self._latency.setdefault((method, route), _Histogram()).add(seconds)

    def add(self, name: str, amount: float = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + amount

    def text(self, gauges: Mapping[str, tuple[str, str, float]]) -> str:
        """Everything as text; `gauges` are values that are read now: kind, help and value by name."""
        with self._lock:
            lines = [*self._request_lines(), *self._latency_lines()]
            for name, meaning in COUNTERS.items():
                lines += _describe(name, "counter", meaning)
                lines.append(f"{name} {self._counters.get(name, 0):g}")
        for name, (kind, meaning, value) in gauges.items():
            lines += [*_describe(name, kind, meaning), f"{name} {value:g}"]
        return "\n".join([*lines, ""])

    def _request_lines(self) -> Iterable[str]:
        yield from _describe("memoranda_requests_total", "counter", "Requests by method, route and status.")
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'memoranda_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'

    def _latency_lines(self) -> Iterable[str]:
        name = "memoranda_request_seconds"
        yield from _describe(name, "histogram", "Seconds until the answer was complete, by method and route.")
        for (method, route), histogram in sorted(self._latency.items()):
            labels, below = f'method="{method}",route="{route}"', 0
            for bound, count in zip((*map(str, _BUCKETS), "+Inf"), histogram.counts, strict=True):
                below += count
                yield f'{name}_bucket{{{labels},le="{bound}"}} {below}'
            yield f"{name}_sum{{{labels}}} {histogram.total:g}"
            yield f"{name}_count{{{labels}}} {below}"


COUNTERS = {
    "memoranda_appended_messages_total": "Messages that clients appended.",
    "memoranda_searches_total": "Searches and recalls.",
    "memoranda_curated_changes_total": "Changes of curated memory.",
    "memoranda_pool_waits_total": "Requests that waited for a free thread.",
    "memoranda_pool_wait_seconds_total": "How long they waited.",
    "memoranda_rate_limited_total": "Requests that were refused because of their rate.",
}


def _describe(name: str, kind: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"
