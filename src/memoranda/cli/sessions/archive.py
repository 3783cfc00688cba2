"""`memoranda sessions archive` and `unarchive`: take conversations out of lists, and back. Nothing is deleted."""

import time
from typing import Any

import click

from memoranda.cli.completers import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, parse_time_option, session_filter_options, without_none
from memoranda.cli.open_home import open_sessions
from memoranda.cli.sessions.lookup import find_session


@click.command()
@click.argument("session", nargs=-1, shell_complete=complete_session)
@click.option(
    "--older-than", metavar="TIME", callback=parse_time_option(), help="All ended ones whose last message is this old."
)
@click.option("--source", help="With --older-than: only from this source.")
@session_filter_options
@all_users_option
@memory_options
def archive(
    session: tuple[str, ...], older_than: float | None, source: str | None, all_users: bool, **options: Any
) -> None:
    """Take conversations out of lists; searches still find them.

    Name them by id or title, or choose ended ones with --older-than and the other options.
    """
    invocation = Invocation.current()
    filters = without_none(options)
    if bool(session) == (older_than is not None) or (session and (source or filters)):
        raise click.UsageError("Name sessions, or choose them with --older-than and the options that narrow it.")
    with open_sessions(invocation, everyone=all_users) as db:
        if older_than is None:
            for session_id in [find_session(invocation, db, name) for name in session]:
                db.set_session_archived(session_id, True)
            count = len(session)
        else:
            count = db.archive_sessions((time.time() - older_than) / 86_400, source, **filters)
    word = "conversation" if count == 1 else "conversations"
    invocation.respond(f"Archived {count} {word}.", {"success": True, "archived": count})


@click.command()
@click.argument("session", nargs=-1, required=True, shell_complete=complete_session)
@all_users_option
@memory_options
def unarchive(session: tuple[str, ...], all_users: bool) -> None:
    """Put archived conversations back into lists."""
    invocation = Invocation.current()
    with open_sessions(invocation, everyone=all_users) as db:
        found = [find_session(invocation, db, name) for name in session]
        for session_id in found:
            db.set_session_archived(session_id, False)
    invocation.respond(f"Restored {', '.join(found)}.", {"success": True, "session_ids": found})
