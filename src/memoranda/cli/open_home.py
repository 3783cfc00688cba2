"""Opens the home of a command. This is separate from `context`, so that commands that need no store load none."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memoranda.api.memory import Memory, open_memory
from memoranda.cli.context import Invocation
from memoranda.home.config import Config, describe_unknown_key
from memoranda.memory.record.scope import Scope
from memoranda.support.home import Home

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB
    from memoranda.memory.curated.store import MemoryStore


def open_curated_memory(invocation: Invocation) -> "MemoryStore":
    """Opens the curated memory of the command's home, profile and user."""
    return open_memory_of(invocation).curated


def open_memory_of(invocation: Invocation) -> Memory:
    """Opens the command's home, profile and user, for commands that use only curated memory."""
    memory = open_memory(invocation.home, profile=invocation.profile, user=invocation.user)
    warn_of_unknown_keys(memory.config)
    return memory


def warn_of_unknown_keys(loaded: Config) -> None:
    """Prints to standard error which names in config.yaml have no effect."""
    for name in loaded.unknown_keys:
        click.echo(f"config.yaml: {describe_unknown_key(name)}", err=True)


@contextmanager
def open_home(invocation: Invocation, *, create: bool = False) -> Iterator[Memory]:
    """Opens the command's home. Without `create`, a home that has no sessions yet is not changed by reading it."""
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        warn_of_unknown_keys(memory.config)
        if create or memory.services.has_record:
            yield memory
            return
        from tempfile import TemporaryDirectory  # noqa: PLC0415

        with (
            TemporaryDirectory(prefix="memoranda-") as empty_directory,
            Memory(Home(Path(empty_directory)), memory.config, memory.user) as empty,
        ):
            yield empty


@contextmanager
def open_sessions(invocation: Invocation, *, everyone: bool = False, create: bool = False) -> "Iterator[SessionDB]":
    """Opens the sessions of the command's home, profile and user, or of all users."""
    with open_home(invocation, create=create) as memory:
        yield sessions_of_everyone(invocation, memory) if everyone else memory.sessions


def sessions_of_everyone(invocation: Invocation, memory: Memory) -> "SessionDB":
    """The sessions of all users of a home; fails on a fleet, where one store has only a part of them."""
    if stores := len(memory.config.store.servers):
        invocation.fail(
            f"The users of this home are distributed over {stores + 1} stores (store.servers), and this command covers "
            "one store. Nothing was done. Name a user with --user; 'memoranda server shards list' shows the stores."
        )
    return memory.sessions.scoped(Scope.everyone())
