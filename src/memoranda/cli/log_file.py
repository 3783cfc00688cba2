"""Sends the log of a command to a file in the home, so that only its answer is on the screen.

What a hook logs goes to `logs/hooks.log` instead of the host's screen. A file is created with its first line, because
most calls log nothing, and opened for each line only, because several processes may write to it.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.support.durable_files import append_unsynced, make_private_directory

_NAME = "memoranda"
_MAX_BYTES = 1_000_000
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class LogFile(logging.Handler):
    """Appends lines to a file that only its owner can read; a full one is kept as `.1`, and the one before as `.2`."""

    def __init__(self, path: Path, home: Path | None = None) -> None:
        """Lines are dropped while there is no `home`: a server that nothing was saved with creates none."""
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))
        self._path = path
        self._home = home

    def emit(self, record: logging.LogRecord) -> None:
        if self._home is not None and not self._home.is_dir():
            return
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "replace")
            make_private_directory(self._path.parent)
            self._make_room(len(line))
            append_unsynced(self._path, line)
        except (OSError, ValueError, TypeError, KeyError):
            # A full disk, or a line whose values do not fit its text; what logs must not fail because of its log.
            self.handleError(record)

    def _make_room(self, size: int) -> None:
        with suppress(FileNotFoundError):
            if self._path.stat().st_size + size > _MAX_BYTES:
                with suppress(FileNotFoundError):
                    os.replace(f"{self._path}.1", f"{self._path}.2")
                os.replace(self._path, f"{self._path}.1")


@contextmanager
def send_log(logger_name: str, handler: logging.Handler) -> Iterator[None]:
    """Sends what a logger logs to one handler and nowhere else while the block runs."""
    logger = logging.getLogger(logger_name)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates


@contextmanager
def log_to_file(path: Path) -> Iterator[None]:
    """Sends what Memoranda logs to a file and nowhere else while the block runs."""
    with send_log(_NAME, LogFile(path)):
        yield


@contextmanager
def log_to_home(root: Path) -> Iterator[None]:
    """Writes the log of a hook to the home instead of the host's screen while the block runs."""
    with send_log(_NAME, _hook_log(root)):
        yield


def log_error(root: Path, text: str, error: Exception | None = None) -> None:
    """Writes one line of a hook, with the traceback of an error.

    Not through a logger: another thread of a hook that is late writes what it logs to the same file.
    """
    raised = (type(error), error, error.__traceback__) if error is not None else None
    _hook_log(root).handle(logging.LogRecord(f"{_NAME}.hook", logging.ERROR, __file__, 0, text, None, raised))


def _hook_log(root: Path) -> LogFile:
    return LogFile(root / "logs" / "hooks.log", root)
