"""The health of a provider: its last failure and its last recall, as a value that commands show."""

import time
from dataclasses import dataclass, replace

from memoranda.storage.files.fork_lock import ForkLock


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """`consecutive_failures` counts failures of `phase`, 0 after a success; timestamps are wall-clock time.

    `late_start` is true when the provider was not ready in time for its last session.
    """

    last_error: str = ""
    phase: str = ""
    when: float | None = None
    consecutive_failures: int = 0
    last_recall: float | None = None
    last_recall_chars: int = 0
    latency: float | None = None
    late_start: bool = False

    @property
    def healthy(self) -> bool:
        return self.consecutive_failures == 0


class HealthTracker:
    """Records failures and successes, from any thread."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._health = ProviderHealth()
        self._failures: dict[str, int] = {}

    def record_failure(self, phase: str, error: str) -> None:
        with self._lock:
            self._failures[phase] = self._failures.get(phase, 0) + 1
            self._health = replace(
                self._health,
                last_error=error,
                phase=phase,
                when=time.time(),
                consecutive_failures=self._failures[phase],
            )

    def record_success(self, phase: str) -> None:
        with self._lock:
            if self._failures.pop(phase, 0) and self._health.phase == phase:
                self._health = replace(self._health, consecutive_failures=0)

    def record_recall(self, chars: int, seconds: float) -> None:
        with self._lock:
            self._health = replace(self._health, last_recall=time.time(), last_recall_chars=chars, latency=seconds)

    def record_start(self, *, late: bool) -> None:
        with self._lock:
            self._health = replace(self._health, late_start=late)

    def snapshot(self) -> ProviderHealth:
        with self._lock:
            return self._health
