"""Writes log lines to a file in a home that exists, and opens the file for each line only.

Hooks and servers use it: most of them log nothing, so the file handler is loaded with the first line, and a server that
nothing was saved with creates no home.
"""

import logging
from pathlib import Path


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
