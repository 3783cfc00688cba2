"""The health of a provider: its last failure and its last recall, as a value and as a file that commands show."""

import json
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.external.settings import file_stem
from memoranda.support.durable_files import make_private_directory, read_file, write_private
from memoranda.support.lazy_dataclass import dataclass


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
        self._lock = threading.Lock()
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


def _status_file(home: Path, name: str) -> Path:
    return home / "providers" / f"{file_stem(name)}.status.json"


def write_status(home: Path, name: str, health: ProviderHealth) -> None:
    path = _status_file(home, name)
    make_private_directory(path.parent)
    write_private(path, json.dumps(asdict(health), ensure_ascii=False).encode())


def read_status(home: Path, name: str) -> ProviderHealth:
    """The health of a provider in its last session; empty when it has had none."""
    try:
        values = json.loads(read_file(_status_file(home, name)))
        return ProviderHealth(**values)
    except FileNotFoundError:
        return ProviderHealth()
    except (OSError, ValueError, TypeError) as error:
        raise ProviderError(
            f"{_status_file(home, name)} cannot be read ({error}). Delete it; the next session writes another."
        ) from error
