"""Redirects a log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


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
