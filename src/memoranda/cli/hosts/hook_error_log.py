"""Writes what a hook logs to `logs/hooks.log` in the home; the file handler loads only when there is a line for it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "memoranda"


class _HomeHandler(logging.Handler):
    """Opens the log file with its first line; drops the lines when there is no home to put them in."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root

    def emit(self, record: logging.LogRecord) -> None:
        if not self._root.is_dir():
            return
        # The module loads sockets, among other things, which most calls do not need.
        from memoranda.cli.log_file import open_log_file  # noqa: PLC0415

        handler = open_log_file(self._root / "logs" / "hooks.log")
        try:
            handler.handle(record)
        finally:
            handler.close()


@contextmanager
def log_to_home(root: Path) -> Iterator[None]:
    """Writes the log to the home instead of the host's screen while the block runs."""
    logger = logging.getLogger(_NAME)
    handler = _HomeHandler(root)
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


def log_error(root: Path, text: str, error: Exception | None = None) -> None:
    """Writes one line, with the traceback of an error."""
    with log_to_home(root):
        logging.getLogger(f"{_NAME}.hook").error("%s", text, exc_info=error)
