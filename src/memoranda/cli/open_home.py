"""Opens the home that a command means; apart from `context`, so that commands which need no store load none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from memoranda.app import Memory, open_memory
from memoranda.cli.context import Invocation
from memoranda.curated.store import MemoryStore
from memoranda.db.orphaned_wal import database_exists
from memoranda.sessions.scope import Scope
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.recall.session_db import SessionDB


def open_curated_memory(invocation: Invocation) -> MemoryStore:
    """The curated memory of the home, profile and user that were named."""
    return open_memory(invocation.home, profile=invocation.profile, user=invocation.user).curated


@contextmanager
def open_home(invocation: Invocation, *, create: bool = False) -> Iterator[Memory]:
    """The home that was named. Unless `create`, looking into one that has no sessions leaves no trace in it."""
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        if create or database_exists(memory.home.state_db):
            yield memory
            return
        with (
            TemporaryDirectory(prefix="memoranda-") as nothing,
            Memory(Home(Path(nothing)), memory.config, memory.user) as empty,
        ):
            yield empty


@contextmanager
def open_sessions(invocation: Invocation, *, everyone: bool = False, create: bool = False) -> "Iterator[SessionDB]":
    """The sessions of the home, profile and user that were named, or of all its users."""
    with open_home(invocation, create=create) as memory:
        yield memory.sessions.scoped(Scope.everyone()) if everyone else memory.sessions
