"""`memoranda sessions rename`, `delete` and `prune`: change the record, after showing what would be deleted."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memoranda.cli.completers import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, parse_time_option, session_filter_options, without_none
from memoranda.cli.open_home import open_sessions
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.sessions.transfer import NewFile, write_sessions
from memoranda.cli.terminal_text import local_time, terminal_line
from memoranda.errors import SessionError, StorageError
from memoranda.session_db import SessionDB

_MAX_ROWS_SHOWN = 20
_OVERWRITE_TIMEOUT = 1.0
_NOT_OVERWRITTEN = (
    "\nAnother program is reading {file}, so the deleted text is still in its files. It is overwritten when the "
    "last program that has this home open closes it."
)
_yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
_export_option = click.option("--export", "export_to", type=NewFile(), help="First save the sessions to this file.")


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
@_yes_option
@_export_option
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
        _confirm_and_delete(invocation, db, db.list_deletion(ids), yes, export_to, db.delete_sessions)


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
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@_yes_option
@_export_option
@all_users_option
@memory_options
def prune(
    older_than: float, source: str | None, dry_run: bool, yes: bool, export_to: Path | None, all_users: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Delete ended conversations that have had no new message for a while, with the work they delegated.

    Open conversations always stay, and so does one whose delegated work has newer messages.
    """
    invocation = Invocation.current()
    with open_sessions(invocation, everyone=all_users) as db:
        days = (time.time() - older_than) / 86_400
        filters = without_none(options)
        rows = db.list_prune_candidates(days, source, **filters)
        if dry_run or not rows:
            invocation.respond(
                _describe_sessions(rows) if rows else "There is nothing to prune.",
                {"success": True, "deleted": 0, "would_delete": [row["id"] for row in rows]},
            )
            return
        _confirm_and_delete(
            invocation,
            db,
            rows,
            yes,
            export_to,
            lambda shown: db.prune_sessions(days, source, confirmed=frozenset(shown), **filters),
        )


def _confirm_and_delete(
    invocation: Invocation,
    db: SessionDB,
    rows: list[dict[str, Any]],
    yes: bool,
    export_to: Path | None,
    delete: Callable[[list[str]], int],
) -> None:
    if not yes:
        click.echo(_describe_sessions(rows), err=True)
        click.confirm("Delete them for good?", abort=True, err=True)
    if export_to is not None:
        exported = (db.export_session(row["id"]) for row in rows)
        write_sessions(export_to, (json.dumps(session, ensure_ascii=False) for session in exported))
    deleted = delete([row["id"] for row in rows])
    unfinished = ""
    try:
        db.index.compact()
    except StorageError as error:
        unfinished = f"\n{error} Search no longer finds the sessions, but the index file keeps their words until then."
    is_overwritten = _is_overwritten(db)
    remains = "" if is_overwritten else _NOT_OVERWRITTEN.format(file=db.path.name)
    saved = f" They are saved in {export_to}." if export_to else ""
    invocation.respond(
        f"Deleted {_count(deleted, 'session')}.{saved}{unfinished}{remains}",
        {"success": True, "deleted": deleted, "session_ids": [row["id"] for row in rows],
         "exported_to": str(export_to) if export_to else None, "index_rebuilt": not unfinished,
         "text_overwritten": is_overwritten},
    )  # fmt: skip


def _is_overwritten(db: SessionDB) -> bool:
    """Whether the deleted text is no longer in any file; waits a second for programs that are reading."""
    deadline = time.monotonic() + _OVERWRITE_TIMEOUT
    while not db.empty_log():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def _describe_sessions(rows: list[dict[str, Any]]) -> str:
    messages = sum(row["message_count"] for row in rows)
    lines = [f"{_count(len(rows), 'session')} with {_count(messages, 'message')}:"]
    lines += [
        f"  {local_time(row['last_active'])}  {terminal_line(row['id'])}  {terminal_line(row['title'] or '', 50)}"
        for row in rows[:_MAX_ROWS_SHOWN]
    ]
    if len(rows) > _MAX_ROWS_SHOWN:
        lines.append(f"  … and {len(rows) - _MAX_ROWS_SHOWN} more")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
