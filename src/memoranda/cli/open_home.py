"""Opens the home of a command. Apart from `context`, so that commands without a store load none."""

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
    from memoranda.session_db import SessionDB


def open_curated_memory(invocation: Invocation) -> MemoryStore:
    """Opens the curated memory of the command's home, profile and user."""
    return open_memory(invocation.home, profile=invocation.profile, user=invocation.user).curated


@contextmanager
def open_home(invocation: Invocation, *, create: bool = False) -> Iterator[Memory]:
    """Opens the command's home. Without `create`, a home that has no sessions yet is not changed by reading it."""
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        if create or database_exists(memory.home.state_db):
            yield memory
            return
        with (
            TemporaryDirectory(prefix="memoranda-") as empty_directory,
            Memory(Home(Path(empty_directory)), memory.config, memory.user) as empty,
        ):
            yield empty


@contextmanager
def open_sessions(invocation: Invocation, *, everyone: bool = False, create: bool = False) -> "Iterator[SessionDB]":
    """Opens the sessions of the command's home, profile and user, or of all users."""
    with open_home(invocation, create=create) as memory:
        yield memory.sessions.scoped(Scope.everyone()) if everyone else memory.sessions
