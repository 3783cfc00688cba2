"""A process knows what it holds, and says so in its log."""

import logging
import threading
from pathlib import Path

import pytest

from memoranda.cli.process_resources import ResourceLogger, measure_resources
from tests.timing import wait_until

pytestmark = pytest.mark.slow


def test_open_files_and_threads_are_counted(tmp_path: Path) -> None:
    """One more of each shows."""
    before = measure_resources()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    with (tmp_path / "file").open("w"):
        during = measure_resources()
    stop.set()
    thread.join()
    assert during.threads == before.threads + 1
    assert before.open_files is not None and during.open_files == before.open_files + 1
    assert during.resident_bytes is not None and during.resident_bytes > 2**20


def test_memory_that_is_taken_shows() -> None:
    """The figure follows what the process holds, in bytes."""
    before = measure_resources().resident_bytes
    held = bytearray(b"x" * 2**26)
    after = measure_resources().resident_bytes
    assert before is not None and after is not None
    assert len(held) * 0.7 < after - before


def test_the_resources_are_logged_at_intervals_and_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    """At the start, every so often, and when it stops; no thread is left."""
    with (
        caplog.at_level(logging.INFO, logger="memoranda.cli.process_resources"),
        ResourceLogger(interval_seconds=0.02),
    ):
        wait_until(lambda: len(caplog.records) > 2)
    lines = [record.getMessage() for record in caplog.records]
    assert "MiB of memory" in lines[0] and "open files" in lines[0]
    assert "is stopping" in lines[-1]
    assert "memoranda-resources" not in [thread.name for thread in threading.enumerate()]
