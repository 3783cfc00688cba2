"""Sends the log of a command to a file in the home, so that only its answer is on the screen."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from memoranda.cli.log_redirect import send_log
from memoranda.support.durable_files import make_private_directory

_MAX_BYTES = 1_000_000


class _PrivateFile(RotatingFileHandler):
    """A log file that is created with its first line, and that only its owner can read."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        make_private_directory(path.parent.parent)
        make_private_directory(path.parent)
        return TextIOWrapper(
            os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab"),
            encoding="utf-8",
            errors="replace",
        )


def open_log_file(path: Path) -> logging.Handler:
    """Returns a handler for a log file; the file is created with its first line."""
    handler = _PrivateFile(path, maxBytes=_MAX_BYTES, backupCount=2, delay=True, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    return handler


@contextmanager
def log_to_file(path: Path) -> Iterator[logging.Handler]:
    """Sends what Memoranda logs to a file and nowhere else while the block runs."""
    handler = open_log_file(path)
    try:
        with send_log("memoranda", handler):
            yield handler
    finally:
        handler.close()
