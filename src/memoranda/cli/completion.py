"""`memoranda completion`: the script that lets a shell complete commands, options, hosts, sessions and providers.

A completer of an argument runs at every press of Tab: it loads what it needs itself, changes nothing, and returns
nothing when the home cannot be read.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from memoranda.cli.context import Invocation, common_options
from memoranda.errors import MemorandaError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_EPILOG = """\b
Examples:
  memoranda completion bash > ~/.local/share/bash-completion/completions/memoranda
  memoranda completion zsh  > "${fpath[1]}/_memoranda"
  memoranda completion fish > ~/.config/fish/completions/memoranda.fish
\b
For this shell only:
  source <(memoranda completion bash)
"""
_PROGRAM, _VARIABLE = "memoranda", "_MEMORANDA_COMPLETE"


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def command(invocation: Invocation, shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options and their values, the programs to import from and install into, settings, providers,
    profiles, and sessions by the beginning of their id or title.
    """
    script_class = get_completion_class(shell)
    assert script_class is not None
    script = script_class(click.get_current_context().find_root().command, {}, _PROGRAM, _VARIABLE).source()
    invocation.respond(script, {"success": True, "shell": shell, "script": script})


_Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
_MAX_SESSIONS = 200


def complete_names(find_names: Callable[[Invocation], Iterable[tuple[str, str]]]) -> _Completer:
    """Returns a completer for names, each with a description."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # noqa: PLC0415

        try:
            names = list(find_names(Invocation.of(context)))
        except (MemorandaError, OSError):
            return []
        return [CompletionItem(name, help=text) for name, text in names if name.startswith(incomplete)]

    return complete


def _hosts(invocation: Invocation) -> Iterable[tuple[str, str]]:
    from memoranda.integrations.hosts.supported_hosts import HOSTS  # noqa: PLC0415

    return ((host.name, host.title) for host in HOSTS.values())


def _settings(invocation: Invocation) -> Iterable[tuple[str, str]]:
    from memoranda.home.config import KEYS  # noqa: PLC0415

    return ((key.name, key.meaning) for key in KEYS)


def _providers(invocation: Invocation) -> Iterable[tuple[str, str]]:
    from memoranda.external.loading.discovery import discover  # noqa: PLC0415

    return ((name, "") for name in discover(invocation.locate_home().root))


def complete_session(context: click.Context, parameter: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """Completes the id of a session from the beginning of the id or of its title, the latest sessions first.

    A shell would break a title at its spaces, so the title only describes the id.
    """
    from click.shell_completion import CompletionItem  # noqa: PLC0415

    from memoranda.cli.open_home import open_sessions  # noqa: PLC0415
    from memoranda.cli.terminal_text import terminal_line  # noqa: PLC0415

    try:
        with open_sessions(Invocation.of(context)) as db:
            rows = db.list_sessions_rich(limit=_MAX_SESSIONS, order_by_last_active=True)
    except (MemorandaError, OSError):
        return []
    names = [(str(row["id"]), str(row["title"] or row["preview"] or "")) for row in rows]
    start = incomplete.lower()
    return [
        CompletionItem(session_id, help=terminal_line(name, 60))
        for session_id, name in names
        if session_id.startswith(incomplete) or name.lower().startswith(start)
    ]


complete_host = complete_names(_hosts)
complete_setting = complete_names(_settings)
complete_provider = complete_names(_providers)
