"""Writes what a hook logs to `logs/hooks.log` in the home, instead of the host's screen."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.cli.home_log import HomeLog
from memoranda.cli.log_redirect import send_log

_NAME = "memoranda"


@contextmanager
def log_to_home(root: Path) -> Iterator[None]:
    """Writes the log to the home instead of the host's screen while the block runs."""
    with send_log(_NAME, HomeLog(root, "hooks")):
        yield


def log_error(root: Path, text: str, error: Exception | None = None) -> None:
    """Writes one line, with the traceback of an error."""
    with log_to_home(root):
        logging.getLogger(f"{_NAME}.hook").error("%s", text, exc_info=error)
