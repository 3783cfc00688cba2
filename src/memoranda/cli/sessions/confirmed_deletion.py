"""Deletes sessions after showing them and asking; shared by `memoranda sessions delete` and `prune`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from memoranda.cli.context import Invocation
from memoranda.cli.sessions.external_copies import describe_copies, drop_deliveries
from memoranda.cli.sessions.transfer import NewFile, write_sessions
from memoranda.cli.terminal_text import local_time, terminal_line
from memoranda.errors import StorageError
from memoranda.session_db import SessionDB

_MAX_ROWS_SHOWN = 20
_OVERWRITE_TIMEOUT = 1.0
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
    deleted = delete([row["id"] for row in rows])
    home, ids = db.path.parent, [row["id"] for row in rows]
    dropped, undropped = drop_deliveries(home, ids)
    notes = [f"Dropped {_count(dropped, 'notification')} that waited for an external memory."] if dropped else []
    notes += [undropped] if undropped else []
    notes += describe_copies(home, ids)
    unfinished = "".join(f"\n{note}" for note in notes)
    index_rebuilt = True
    try:
        db.index.purge()
        db.forget_deleted()
    except StorageError as error:
        index_rebuilt = False
        unfinished += f"\n{error} Search no longer finds the sessions, but the index file keeps their words until then."
    free = db.release_space()
    is_overwritten = _is_overwritten(db)
    remains = "" if is_overwritten else _NOT_OVERWRITTEN.format(file=db.path.name)
    remains += _NOT_RELEASED.format(file=db.path.name, megabytes=free / 1e6) if free >= _MUCH_SPACE else ""
    saved = f" They are saved in {export_to}." if export_to else ""
    invocation.respond(
        f"Deleted {_count(deleted, 'session')}.{saved}{unfinished}{remains}",
        {"success": True, "deleted": deleted, "session_ids": ids, "dropped_deliveries": dropped,
         "exported_to": str(export_to) if export_to else None, "index_rebuilt": index_rebuilt,
         "text_overwritten": is_overwritten, "free_bytes": free},
    )  # fmt: skip


def _is_overwritten(db: SessionDB) -> bool:
    """Whether the deleted text is no longer in any file; waits a second for programs that are reading."""
    deadline = time.monotonic() + _OVERWRITE_TIMEOUT
    while not db.empty_log():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


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
