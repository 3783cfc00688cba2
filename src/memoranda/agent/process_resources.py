"""A long-running process tells its log now and then how much it holds: memory, threads, open files."""

import logging
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger(__name__)
_OWN = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessResources:
    """What this process holds; None where the system does not say."""

    resident_bytes: int | None
    threads: int
    open_files: int | None

    def __str__(self) -> str:
        memory = "?" if self.resident_bytes is None else f"{self.resident_bytes / 2**20:.0f}"
        files = "?" if self.open_files is None else str(self.open_files)
        return f"{memory} MiB of memory, {self.threads} threads, {files} open files"


def measure_resources() -> ProcessResources:
    """The vitals of this process."""
    return ProcessResources(_resident_bytes(), threading.active_count(), _open_files())


class ResourceLogger:
    """Logs the vitals when it starts, then every so often, and once more when it stops."""

    def __init__(self, every_seconds: float = 600.0) -> None:
        self._every = every_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memoranda-resources", daemon=True)

    def __enter__(self) -> "ResourceLogger":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        while True:
            _log.info("This process holds %s.", measure_resources())
            if self._stopped.wait(self._every):
                _log.info("This process stops and holds %s.", measure_resources())
                return


def _resident_bytes() -> int | None:
    try:
        return int((_OWN / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _peak_bytes()


def _peak_bytes() -> int | None:
    """The most that was ever held, where nothing tells the present amount."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _open_files() -> int | None:
    for place in (_OWN / "fd", Path("/dev/fd")):
        try:
            return len(os.listdir(place))
        except OSError:
            continue
    return None
