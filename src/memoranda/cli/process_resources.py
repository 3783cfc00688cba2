"""Logs at intervals what a long-running process uses: memory, threads, open files and garbage collections."""

import gc
import logging
import os
import sys
import threading
from pathlib import Path

from memoranda.support.lazy_dataclass import dataclass

_log = logging.getLogger(__name__)
_PROC = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessResources:
    """The resources that this process uses; None where the system does not report one."""

    resident_bytes: int | None
    threads: int
    open_files: int | None
    collections: tuple[int, ...]
    """How often the garbage collector has run in each generation, the youngest first."""

    def __str__(self) -> str:
        memory = "?" if self.resident_bytes is None else f"{self.resident_bytes / 2**20:.0f}"
        files = "?" if self.open_files is None else str(self.open_files)
        collections = "/".join(map(str, self.collections))
        return f"{memory} MiB of memory, {self.threads} threads, {files} open files, {collections} garbage collections"


def measure_resources() -> ProcessResources:
    collections = tuple(generation["collections"] for generation in gc.get_stats())
    return ProcessResources(_resident_bytes(), threading.active_count(), _open_files(), collections)


class ResourceLogger:
    """Logs the resources of the process when it starts, at intervals, and once more when it stops.

    A process that stops within `start_delay_seconds` logs nothing.
    """

    def __init__(self, interval_seconds: float = 600.0, *, start_delay_seconds: float = 0.0) -> None:
        self._start_delay = start_delay_seconds
        self._interval = interval_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memoranda-resources", daemon=True)

    def __enter__(self) -> "ResourceLogger":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=1.0)

    def _run(self) -> None:
        if self._start_delay and self._stopped.wait(self._start_delay):
            return
        while True:
            _log.info("This process uses %s.", measure_resources())
            if self._stopped.wait(self._interval):
                _log.info("This process is stopping and uses %s.", measure_resources())
                return


def _resident_bytes() -> int | None:
    try:
        return int((_PROC / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _peak_bytes()


def _peak_bytes() -> int | None:
    """The peak so far, where the system does not report the current amount."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _open_files() -> int | None:
    for directory in (_PROC / "fd", Path("/dev/fd")):
        try:
            return len(os.listdir(directory))
        except OSError:
            continue
    return None
