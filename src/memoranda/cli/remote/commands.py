"""Runs a command at a service: the same arguments, the same output, through the client."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from memoranda.api.client import RemoteMemory, connect
from memoranda.cli.context import Invocation
from memoranda.cli.remote import memory, recall, sessions, transfer
from memoranda.errors import SessionError
from memoranda.home import config

KEY_VARIABLE = "MEMORANDA_API_KEY"
_Handler = Callable[..., None]
COMMANDS: Mapping[str, _Handler] = {
    "search": recall.search,
    "recall": recall.recall,
    "remember": memory.remember,
    "memory list": memory.list_entries,
    "memory add": memory.add,
    "memory replace": memory.replace,
    "memory remove": memory.remove,
    "memory log": memory.log,
    "memory undo": memory.undo,
    "sessions list": sessions.list_sessions,
    "sessions show": sessions.show,
    "sessions export": transfer.export,
    "sessions import": transfer.import_file,
    "forget": transfer.forget,
}
# Commands about this machine and the programs on it. MEMORANDA_URL does not concern them, and --url is refused.
_LOCAL = frozenset({
    "completion", "config", "demo", "hook", "install", "key", "mcp", "profile", "secret", "serve", "setup", "uninstall",
    "view",
})  # fmt: skip


def run_remotely(
    invocation: Invocation, context: click.Context, run_locally: Callable[[], Any], options: Mapping[str, Any]
) -> Any:
    """Runs the command of `context` at the service; refuses one that has no counterpart there."""
    name = context.command_path.partition(" ")[2]
    if name.split(" ")[0] in _LOCAL and not invocation.url_is_option:
        return run_locally()
    handler = COMMANDS.get(name)
    if handler is None:
        invocation.fail(
            f"'memoranda {name}' does not work with a service ({invocation.url}). Run it on the machine of the "
            "service, without --url and MEMORANDA_URL."
        )
    if invocation.home or invocation.profile:
        invocation.fail("--home and --profile name a home on this machine, and --url another one. Use one of them.")
    try:
        with connect_for(invocation) as connected:
            handler(invocation, connected, **options)
    except SessionError as error:
        invocation.fail(str(error))
    return None


def connect_for(invocation: Invocation) -> RemoteMemory:
    """Connects with the key in MEMORANDA_API_KEY, from the environment or `.env` of the home on this machine."""
    assert invocation.url is not None
    key = config.credentials(invocation.locate_home()).get(KEY_VARIABLE, "").strip()
    return connect(invocation.url, key or None, user=invocation.user)
