"""Logs what a long-running process uses and deletes to a file in its home, without keeping that file open."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.agent import process_resources
from memoranda.agent.process_resources import ResourceLogger
from memoranda.cli.home_log import HomeLog
from memoranda.cli.log_redirect import send_log

# A process that ends sooner is not long-running, and its start is not delayed by the log.
START_DELAY_SECONDS = 5.0
# The second one by its name: a process that prunes nothing does not load it.
_LOGGERS = (process_resources.__name__, "memoranda.api.automatic_prune")


@contextmanager
def log_resources(root: Path, name: str) -> Iterator[None]:
    """Logs memory, threads, open files and garbage collections to `logs/<name>.log` while the block runs.

    What is pruned automatically is logged there, too.
    """
    handler = HomeLog(root, name)
    with ExitStack() as stack:
        for logger in _LOGGERS:
            stack.enter_context(send_log(logger, handler))
        stack.enter_context(ResourceLogger(start_delay_seconds=START_DELAY_SECONDS))
        yield
