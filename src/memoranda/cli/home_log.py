"""Writes log lines to a file in a home that exists, and opens the file for each line only.

Hooks and servers use it: most of them log nothing, so the file handler is loaded with the first line, and a server that
nothing was saved with creates no home. What a hook logs goes to `logs/hooks.log` instead of the host's screen.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memoranda.cli.log_redirect import send_log

_NAME = "memoranda"


class HomeLog(logging.Handler):
    """Appends lines to `logs/<name>.log` of a home; drops them when there is no home."""

    def __init__(self, root: Path, name: str) -> None:
        super().__init__()
        self._root = root
        self._path = root / "logs" / f"{name}.log"

    def emit(self, record: logging.LogRecord) -> None:
        if not self._root.is_dir():
            return
        # The module loads sockets, among other things, which most calls do not need.
        from memoranda.cli.log_file import open_log_file  # noqa: PLC0415

        log_file = open_log_file(self._path)
        try:
            log_file.handle(record)
        finally:
            log_file.close()


@contextmanager
def log_to_home(root: Path) -> Iterator[None]:
    """Writes the log to the home instead of the host's screen while the block runs."""
    with send_log(_NAME, HomeLog(root, "hooks")):
        yield


def log_error(root: Path, text: str, error: Exception | None = None) -> None:
    """Writes one line, with the traceback of an error."""
    with log_to_home(root):
        logging.getLogger(f"{_NAME}.hook").error("%s", text, exc_info=error)
