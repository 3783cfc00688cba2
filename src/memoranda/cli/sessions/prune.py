"""`memoranda sessions prune` and `vacuum`: delete old conversations, and shrink the file that contained them."""

import time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, parse_time_option, session_filter_options, without_none
from memoranda.cli.open_home import open_home, open_sessions, sessions_of_everyone
from memoranda.cli.server_refusals import VACUUM, refused_on_server
from memoranda.cli.sessions.confirmed_deletion import (
    confirm_and_delete,
    describe_sessions,
    export_option,
    yes_option,
)
from memoranda.cli.terminal_text import local_time
from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.settings import RetentionSettings

_DAY = 86_400
# --automatic means the settings, and these say how to run the command.
_WITH_AUTOMATIC = ("automatic", "dry_run", "yes", "export_to")


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
    older_than: float, source: str | None, automatic: bool, dry_run: bool, yes: bool, export_to: Path | None,
    all_users: bool, **options: Any,
) -> None:  # fmt: skip
    """Delete ended conversations that have had no new message for a while, with the work they delegated.

    Open conversations always stay, and so does one whose delegated work has newer messages. With --automatic, the
    settings of the home decide what is old, archived conversations stay, and those of all users are pruned.
    """
    invocation = Invocation.current()
    if automatic:
        _refuse_other_options()
    with open_home(invocation) as memory:
        settings = memory.config.retention
        db = sessions_of_everyone(invocation, memory) if all_users or automatic else memory.sessions
        days = settings.retention_days if automatic else (time.time() - older_than) / _DAY
        filters = {"archived": False} if automatic else without_none(options)
        rows = db.list_prune_candidates(days, source, **filters)
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
            lambda shown: db.prune_sessions(days, source, confirmed=frozenset(shown), **filters),
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
@refused_on_server(VACUUM)
def vacuum() -> None:
    """Shrink state.db by the space of deleted conversations, and rebuild the search index without their words.

    Nothing can be recorded while state.db is rewritten.
    """
    invocation = Invocation.current()
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
