"""What a long-running command does beside its work: it maintains the record, and logs what the process uses."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memoranda.cli import process_resources
from memoranda.cli.log_file import LogFile, send_log
from memoranda.cli.process_resources import ResourceLogger
from memoranda.home.config import load, record_location
from memoranda.memory.record.settings import RetentionSettings
from memoranda.support.home import Home

# A process that ends sooner is not long-running, and its start is not delayed by the log.
START_DELAY_SECONDS = 5.0
# The second one by its name: a process that prunes nothing does not load it.
_LOGGERS = (process_resources.__name__, "memoranda.api.maintenance")


@contextmanager
def maintain_while_open(home: Home, settings: RetentionSettings) -> Iterator[None]:
    """Works in threads that start after half a minute; sessions are pruned only if the settings ask for it."""
    from memoranda.api.maintenance import (  # noqa: PLC0415
        fill_prompts_in_background,
        prune_in_background,
        remove_expired_in_background,
    )

    location = record_location(home, load(home))
    with ExitStack() as tasks:
        tasks.enter_context(fill_prompts_in_background(location))
        tasks.enter_context(remove_expired_in_background(location))
        if settings.auto_prune:
            tasks.enter_context(prune_in_background(location, settings))
        yield


@contextmanager
def log_resources(root: Path, name: str) -> Iterator[None]:
    """Logs memory, threads, open files and garbage collections to `logs/<name>.log` while the block runs.

    What is pruned automatically is logged there, too.
    """
    handler = LogFile(root / "logs" / f"{name}.log", root)
    with ExitStack() as stack:
        for logger in _LOGGERS:
            stack.enter_context(send_log(logger, handler))
        stack.enter_context(ResourceLogger(start_delay_seconds=START_DELAY_SECONDS))
        yield
