"""Logs what a long-running process uses and deletes to a file in its home, without keeping that file open."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.agent import process_resources
from memoranda.agent.process_resources import ResourceLogger

# A process that ends sooner is not long-running, and its start is not delayed by the log.
START_DELAY_SECONDS = 5.0
# The second one by its name: a process that prunes nothing does not load it.
_LOGGERS = (process_resources.__name__, "memoranda.app.automatic_prune")


class _HomeLog(logging.Handler):
    """Opens the file for each line, in a home that exists: a server that nothing was saved with creates no home."""

    def __init__(self, root: Path, name: str) -> None:
        super().__init__()
        self._root = root
        self._path = root / "logs" / f"{name}.log"

    def emit(self, record: logging.LogRecord) -> None:
        if not self._root.is_dir():
            return
        # Loaded with the first line: it is not needed to start.
        from memoranda.cli.log_file import open_log_file  # noqa: PLC0415

        log_file = open_log_file(self._path)
        try:
            log_file.handle(record)
        finally:
            log_file.close()


@contextmanager
def log_resources(root: Path, name: str) -> Iterator[None]:
    """Logs memory, threads, open files and garbage collections to `logs/<name>.log` while the block runs.

    What is pruned automatically is logged there, too.
    """
    handler = _HomeLog(root, name)
    with ExitStack() as stack:
        for logger in _LOGGERS:
            stack.enter_context(_send(logger, handler))
        stack.enter_context(ResourceLogger(start_delay_seconds=START_DELAY_SECONDS))
        yield


@contextmanager
def _send(name: str, handler: logging.Handler) -> Iterator[None]:
    """Sends what a logger logs to one handler and nowhere else while the block runs."""
    logger = logging.getLogger(name)
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
