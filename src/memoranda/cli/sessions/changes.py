"""Commands that change the record: `memoranda sessions rename`, `archive`, `unarchive`, `delete`, `prune`, `vacuum`.

A command that deletes shows first what would be deleted, and asks.
"""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from memoranda.cli.completion import complete_session
from memoranda.cli.confirmation import require_yes
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, parse_time_option, session_filter_options, without_none
from memoranda.cli.open_home import open_home, open_sessions, sessions_of_everyone
from memoranda.cli.server_refusals import VACUUM, refuse_on_server
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.sessions.transfer import NewFile, write_sessions
from memoranda.cli.terminal_text import count_of, local_time, terminal_line
from memoranda.errors import SessionError, StorageError
from memoranda.external.vendors.sent_record import providers_with_sessions
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.settings import RetentionSettings
from memoranda.upkeep.forgetting.sessions import delete_sessions

_MAX_ROWS_SHOWN = 20
_NOT_OVERWRITTEN = (
    "\nAnother program is reading {file}, so the deleted text is still in its files. It is overwritten when the "
    "last program that has this home open closes it."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
export_option = click.option("--export", "export_to", type=NewFile(), help="First save the sessions to this file.")
_DAY = 86_400
# --automatic means the settings, and these say how to run the command.
_WITH_AUTOMATIC = ("automatic", "dry_run", "yes", "export_to")


@click.command()
@click.argument("session", shell_complete=complete_session)
@click.argument("title")
@all_users_option
@memory_options
def rename(invocation: Invocation, session: str, title: str, all_users: bool) -> None:
    """Give a conversation a TITLE; an empty one removes its title."""
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
    invocation: Invocation, session: tuple[str, ...], older_than: float | None, all_users: bool, **options: Any
) -> None:
    """Take conversations out of lists; searches still find them.

    Name them by id or title, or choose ended ones with --older-than and the other options.
    """
    filters = without_none(options)
    if bool(session) == (older_than is not None) or (session and filters):
        raise click.UsageError("Name sessions, or choose them with --older-than and the options that narrow it.")
    with open_sessions(invocation, everyone=all_users) as db:
        if older_than is None:
            for session_id in [find_session(invocation, db, name) for name in session]:
                db.set_session_archived(session_id, True)
            count = len(session)
        else:
            count = db.archive_sessions((time.time() - older_than) / 86_400, **filters)
    word = "conversation" if count == 1 else "conversations"
    invocation.respond(f"Archived {count} {word}.", {"success": True, "archived": count})


@click.command()
@click.argument("session", nargs=-1, required=True, shell_complete=complete_session)
@all_users_option
@memory_options
def unarchive(invocation: Invocation, session: tuple[str, ...], all_users: bool) -> None:
    """Put archived conversations back into lists."""
    with open_sessions(invocation, everyone=all_users) as db:
        found = [find_session(invocation, db, name) for name in session]
        for session_id in found:
            db.set_session_archived(session_id, False)
    invocation.respond(f"Restored {', '.join(found)}.", {"success": True, "session_ids": found})


@click.command("delete")
@click.argument("session", nargs=-1, required=True, shell_complete=complete_session)
@yes_option
@export_option
@all_users_option
@memory_options
def delete_command(
    invocation: Invocation, session: tuple[str, ...], yes: bool, export_to: Path | None, all_users: bool
) -> None:
    """Delete conversations for good: every session of each, its messages, and the work it delegated.

    SESSION is an id, a title or first question, or how one begins; with --yes a whole id or an exact title. The text
    is overwritten in the file and removed from the index. Only an export can restore it.
    """
    with open_sessions(invocation, everyone=all_users) as db:
        ids: dict[str, None] = {}
        for name in session:
            ids |= dict.fromkeys(db.get_compression_lineage(find_session(invocation, db, name, exactly=yes)))
        confirm_and_delete(invocation, db, db.list_deletion(ids), yes, export_to, db.delete_sessions)


def describe_copies(home: Path, session_ids: Collection[str], server_url: str = "") -> list[str]:
    """Say which services have received parts of the sessions, and how to delete them there."""
    return [
        f"{name} has received messages of them: 'memoranda provider forget {name} --session ID' deletes them there."
        for name in providers_with_sessions(home, session_ids, server_url)
    ]


def confirm_and_delete(
    invocation: Invocation,
    db: SessionDB,
    rows: list[dict[str, Any]],
    yes: bool,
    export_to: Path | None,
    delete: Callable[[list[str]], int],
) -> None:
    """Deletes sessions with `delete` after showing them and asking, saves them first if wanted, and responds."""
    if not yes:
        click.echo(describe_sessions(rows), err=True)
        require_yes(invocation, "Delete them for good?")
    if export_to is not None:
        write_sessions(invocation, db, [row["id"] for row in rows], export_to)
    ids = [row["id"] for row in rows]
    # The path of a record on a server is no file of the home.
    root = db.path.parent if db.path.is_absolute() else invocation.locate_home().root
    server_url = "" if db.path.is_absolute() else config.server_url(invocation.locate_home())
    deleted = delete_sessions(db, root, ids, delete, server_url=server_url)
    dropped = deleted.dropped_deliveries
    notes = [f"Dropped {count_of(dropped, 'notification')} that waited for an external memory."] if dropped else []
    notes += deleted.problems + describe_copies(root, ids, server_url)
    text = "\n".join([f"Deleted {count_of(deleted.count, 'session')}.{_saved_in(export_to)}", *notes])
    text += "" if deleted.overwritten else _NOT_OVERWRITTEN.format(file=db.path.name)
    invocation.respond(
        text,
        {"success": True, "deleted": deleted.count, "session_ids": ids, "dropped_deliveries": dropped,
         "exported_to": str(export_to) if export_to else None, "index_rebuilt": deleted.index_rebuilt,
         "text_overwritten": deleted.overwritten},
    )  # fmt: skip


def _saved_in(export_to: Path | None) -> str:
    return f" They are saved in {export_to}." if export_to else ""


def describe_sessions(rows: list[dict[str, Any]]) -> str:
    """Says how many sessions and messages there are, and lists the first ones."""
    messages = sum(row["message_count"] for row in rows)
    lines = [f"{count_of(len(rows), 'session')} with {count_of(messages, 'message')}:"]
    lines += [
        f"  {local_time(row['last_active'])}  {terminal_line(row['id'])}  {terminal_line(row['title'] or '', 50)}"
        for row in rows[:_MAX_ROWS_SHOWN]
    ]
    if len(rows) > _MAX_ROWS_SHOWN:
        lines.append(f"  … and {len(rows) - _MAX_ROWS_SHOWN} more")
    return "\n".join(lines)


@click.command()
@click.option(
    "--older-than",
    metavar="TIME",
    callback=parse_time_option(),
    default="90d",
    show_default=True,
    help="How long ago the last message must be.",
)
@click.option("--source", help="Only from this source.")
@session_filter_options
@click.option("--automatic", is_flag=True, help="What sessions.auto_prune deletes when it is due: see 'config list'.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@yes_option
@export_option
@all_users_option
@memory_options
def prune(
    invocation: Invocation, older_than: float, automatic: bool, dry_run: bool, yes: bool, export_to: Path | None,
    all_users: bool, **options: Any,
) -> None:  # fmt: skip
    """Delete ended conversations that have had no new message for a while, with the work they delegated.

    Open conversations always stay, and so does one whose delegated work has newer messages. With --automatic, the
    settings of the home decide what is old, archived conversations stay, and those of all users are pruned.
    """
    if automatic:
        _refuse_other_options()
    with open_home(invocation) as memory:
        settings = memory.config.retention
        db = sessions_of_everyone(invocation, memory) if all_users or automatic else memory.sessions
        days = settings.retention_days if automatic else (time.time() - older_than) / _DAY
        filters = {"archived": False} if automatic else without_none(options)
        rows = db.list_prune_candidates(days, **filters)
        state = _automatic_state(db, settings) if automatic else {}
        note = f"\n{_describe_state(state)}" if automatic else ""
        if dry_run or not rows:
            invocation.respond(
                (describe_sessions(rows) if rows else "There is nothing to prune.") + note,
                {"success": True, "deleted": 0, "would_delete": [row["id"] for row in rows], **state},
            )
            return
        confirm_and_delete(
            invocation,
            db,
            rows,
            yes,
            export_to,
            lambda shown: db.prune_sessions(days, confirmed=frozenset(shown), **filters),
        )


def _refuse_other_options() -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.expose_value and parameter.name not in _WITH_AUTOMATIC:
            raise click.UsageError(f"{parameter.opts[0]} cannot be combined with --automatic, which uses the settings.")


def _automatic_state(db: SessionDB, settings: RetentionSettings) -> dict[str, Any]:
    last = db.last_prune()
    return {
        "auto_prune": settings.auto_prune,
        "retention_days": settings.retention_days,
        "last_prune": last,
        "next_prune": None if last is None else last + settings.min_interval_hours * 3600,
    }


def _describe_state(state: dict[str, Any]) -> str:
    if not state["auto_prune"]:
        return "Nothing is deleted automatically: 'memoranda config set sessions.auto_prune true' turns that on."
    next_prune = state["next_prune"]
    if next_prune is None or next_prune <= time.time():
        return "Automatic deletion is on and due: a chat, a server or the helper of hooks does it after it has started."
    return f"Automatic deletion is on, was done {local_time(state['last_prune'])}, due {local_time(next_prune)}."


@click.command()
@memory_options
def vacuum(invocation: Invocation) -> None:
    """Shrink state.db by the space of deleted conversations, and rebuild the search index without their words.

    Nothing can be recorded while state.db is rewritten.
    """
    refuse_on_server(invocation, VACUUM)
    with open_sessions(invocation) as db:
        before = db.path.stat().st_size
        db.vacuum()
        db.empty_log()
        after = db.path.stat().st_size
        try:
            db.index.compact()
            db.forget_deleted()
        except StorageError as error:
            invocation.fail(f"state.db has {after:,} bytes now; it had {before:,}. {error}")
    invocation.respond(
        f"state.db has {after:,} bytes now; it had {before:,}.",
        {"success": True, "bytes_before": before, "bytes_after": after},
    )
