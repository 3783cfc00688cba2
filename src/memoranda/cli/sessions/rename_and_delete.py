"""`memoranda sessions rename` and `delete`: change the record, after showing what would be deleted."""

from pathlib import Path

import click

from memoranda.cli.completers import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option
from memoranda.cli.open_home import open_sessions
from memoranda.cli.sessions.confirmed_deletion import confirm_and_delete, export_option, yes_option
from memoranda.cli.sessions.lookup import find_session
from memoranda.errors import SessionError


@click.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("title")
@all_users_option
@memory_options
def rename(session: str, title: str, all_users: bool) -> None:
    """Give a conversation a TITLE; an empty one removes its title."""
    invocation = Invocation.current()
    with open_sessions(invocation, everyone=all_users) as db:
        session_id = find_session(invocation, db, session)
        latest = db.get_compression_tip(session_id) or session_id
        try:
            db.set_session_title(latest, title)
        except SessionError as error:
            invocation.fail(str(error))
        new_title = db.get_session_title(latest)
    text = f"{latest} is now called {new_title!r}." if new_title else f"{latest} has no title now."
    invocation.respond(text, {"success": True, "session_id": latest, "title": new_title})


@click.command("delete")
@click.argument("session", nargs=-1, required=True, shell_complete=complete_session)
@yes_option
@export_option
@all_users_option
@memory_options
def delete_command(session: tuple[str, ...], yes: bool, export_to: Path | None, all_users: bool) -> None:
    """Delete conversations for good: every session of each, its messages, and the work it delegated.

    SESSION is an id, the beginning of one, or a title; with --yes a whole id or an exact title. The text is
    overwritten in the file and removed from the index. Only an export can restore it.
    """
    invocation = Invocation.current()
    with open_sessions(invocation, everyone=all_users) as db:
        ids: dict[str, None] = {}
        for name in session:
            ids |= dict.fromkeys(db.get_compression_lineage(find_session(invocation, db, name, exactly=yes)))
        confirm_and_delete(invocation, db, db.list_deletion(ids), yes, export_to, db.delete_sessions)
