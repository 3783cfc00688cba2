"""Stores that were left by a process that was killed, and lost their file afterwards."""

import os
from collections.abc import Callable
from pathlib import Path

from memoranda.memory.record.store import open_store
from tests.forked import in_child


def killed_store(path: Path, messages: int = 20) -> Path:
    """A store with a log that contains a session and its messages; its tables were created before."""
    open_store(path).close()

    def write_and_die() -> None:
        store = open_store(path)
        store.sessions.create_session("s", "cli")
        for number in range(messages):
            store.messages.append_message("s", "user", f"acknowledged {number}")
        os._exit(9)

    assert in_child(write_and_die) == 9
    assert Path(f"{path}-wal").stat().st_size
    return path


# What can happen to the file itself.
LOSSES: dict[str, Callable[[Path], object]] = {"emptied": lambda path: os.truncate(path, 0), "deleted": os.unlink}
