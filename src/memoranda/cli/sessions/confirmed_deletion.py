"""Deletes sessions after showing them and asking; shared by `memoranda sessions delete` and `prune`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.cli.sessions.external_copies import describe_copies
from memoranda.cli.sessions.transfer import NewFile, write_sessions
from memoranda.cli.terminal_text import local_time, terminal_line
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.upkeep.forgetting.sessions import delete_sessions

_MAX_ROWS_SHOWN = 20
_NOT_OVERWRITTEN = (
    "\nAnother program is reading {file}, so the deleted text is still in its files. It is overwritten when the "
    "last program that has this home open closes it."
)
_MUCH_SPACE = 1_000_000
_NOT_RELEASED = (
    "\n{file} has {megabytes:.0f} MB of free space, which new messages will use. 'memoranda sessions vacuum' makes the "
    "file smaller; nothing can be recorded meanwhile."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
export_option = click.option("--export", "export_to", type=NewFile(), help="First save the sessions to this file.")


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
        click.confirm("Delete them for good?", abort=True, err=True)
    if export_to is not None:
        write_sessions(invocation, db, [row["id"] for row in rows], export_to)
    ids = [row["id"] for row in rows]
    # The path of a record on a server is no file of the home.
    root = db.path.parent if db.path.is_absolute() else invocation.locate_home().root
    server_url = "" if db.path.is_absolute() else config.server_url(invocation.locate_home())
    deleted = delete_sessions(db, root, ids, delete, server_url=server_url)
    dropped = deleted.dropped_deliveries
    notes = [f"Dropped {_count(dropped, 'notification')} that waited for an external memory."] if dropped else []
    notes += deleted.problems + describe_copies(root, ids, server_url)
    text = "\n".join([f"Deleted {_count(deleted.count, 'session')}.{_saved_in(export_to)}", *notes])
    text += "" if deleted.overwritten else _NOT_OVERWRITTEN.format(file=db.path.name)
    if deleted.free_bytes >= _MUCH_SPACE:
        text += _NOT_RELEASED.format(file=db.path.name, megabytes=deleted.free_bytes / 1e6)
    invocation.respond(
        text,
        {"success": True, "deleted": deleted.count, "session_ids": ids, "dropped_deliveries": dropped,
         "exported_to": str(export_to) if export_to else None, "index_rebuilt": deleted.index_rebuilt,
         "text_overwritten": deleted.overwritten, "free_bytes": deleted.free_bytes},
    )  # fmt: skip


def _saved_in(export_to: Path | None) -> str:
    return f" They are saved in {export_to}." if export_to else ""


def describe_sessions(rows: list[dict[str, Any]]) -> str:
    """Says how many sessions and messages there are, and lists the first ones."""
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
