"""`memoranda sessions list`, `show` and `stats`: read the record without changing it."""

from collections.abc import Sequence
from typing import Any

import click

from memoranda.cli.completion import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import (
    all_users_option,
    describe_known_projects,
    project_option,
    resolve_projects,
    session_filter_options,
    since_option,
    until_option,
    without_none,
)
from memoranda.cli.open_home import open_home, open_sessions, sessions_of_everyone
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.terminal_text import bold, count_of, dim, local_time, print_paged, resume_line, terminal_line
from memoranda.home.session_db import SessionDB
from memoranda.importers.sources import resume_command
from memoranda.memory.record.message_rows import DAMAGED, text_of
from memoranda.memory.record.scope import Scope
from memoranda.search.guidance import NO_PROJECT
from memoranda.search.request import show_time
from memoranda.storage.orphaned_wal import record_exists
from memoranda.support.projects import project_name
from memoranda.support.shorten import shorten_calls, shorten_end

_MAX_TOOL_CHARS = 400
# What is counted, and what one of it is called.
_COUNTS = {
    "sessions": "session",
    "messages": "message",
    "tool_calls": "tool call",
    "api_call_count": "model call",
    "input_tokens": "input token",
    "output_tokens": "output token",
    "cache_read_tokens": "cached input token",
    "reasoning_tokens": "reasoning token",
    "redacted_secrets": "redacted secret",
}
_JSON_FIELDS = (
    "id",
    "title",
    "source",
    "model",
    "user_id",
    "message_count",
    "preview",
    "parent_session_id",
    "relation",
    "project",
)


@click.command("list")
@click.option("-n", "--limit", type=click.IntRange(1), default=20, show_default=True, help="How many to show.")
@click.option("--offset", type=click.IntRange(0), default=0, help="Skip this many first.")
@click.option("--source", multiple=True, help="Only from this source: cli, telegram … Can be repeated.")
@click.option("--everything", is_flag=True, help="Also show archived sessions and delegated work.")
@click.option("--archived", is_flag=True, default=None, help="Only archived sessions.")
@session_filter_options
@project_option
@since_option
@until_option
@all_users_option
@memory_options
def list_sessions(
    invocation: Invocation, limit: int, offset: int, source: tuple[str, ...], everything: bool, project: str | None,
    all_users: bool, **options: Any,
) -> None:  # fmt: skip
    """List conversations, the latest first. A compressed conversation is one entry."""
    with open_home(invocation) as memory:
        db = sessions_of_everyone(invocation, memory) if all_users else memory.sessions
        hidden = () if everything or source else memory.config.recall.hidden_sources
        projects = None if project is None else resolve_projects(invocation, db, project)
        filters = {"source": source or None, "projects": projects, **options}
        rows = _rows(db, limit + 1, everything, hidden, offset=offset, **filters)
        reason = "" if rows else _explain_empty(db, filters, everything, hidden, offset)
    more = len(rows) > limit
    rows = rows[:limit]
    lines = [format_session(row) for row in rows] or [reason]
    if more:
        lines.append(dim(f"More: --offset {offset + limit}"))
    data = [{name: row[name] for name in _JSON_FIELDS} | _times(row) for row in rows]
    if invocation.as_json:
        invocation.respond("", {"sessions": data, "more": more} | ({} if rows else {"message": reason}))
    else:
        print_paged("\n".join(lines))


def _rows(
    db: SessionDB, limit: int, everything: bool, hidden: Sequence[str] = (), **filters: Any
) -> list[dict[str, Any]]:
    return db.list_sessions_rich(
        limit=limit,
        exclude_sources=hidden,
        order_by_last_active=True,
        include_children=everything,
        include_archived=everything,
        **without_none(filters),
    )


def _explain_empty(db: SessionDB, filters: dict[str, Any], everything: bool, hidden: Sequence[str], offset: int) -> str:
    """Explains why a list is empty: which option excludes the sessions that exist, or that there are none."""
    names = [name for name, value in filters.items() if value is not None]
    options = [f"this --{'project' if name == 'projects' else name.replace('_', '-')}" for name in names]
    if filters["projects"] == frozenset():
        return f"{NO_PROJECT} {describe_known_projects(db)}".strip()
    if offset and _rows(db, 1, everything, hidden, **filters):
        return f"There are no more than {offset:,}: --offset {offset} skips all of them."
    if not everything and _rows(db, 1, True, **filters):
        return "There are only archived sessions and delegated work: --everything shows them."
    if options and _rows(db, 1, True):
        return f"There are sessions, but none for {' and '.join(options)}."
    if db.scoped(Scope.everyone()).session_count():
        return "No sessions of this user yet; --all-users shows those of others."
    return "No sessions yet."


def _times(row: dict[str, Any]) -> dict[str, Any]:
    return {name: show_time(row[name]) for name in ("started_at", "last_active", "ended_at")}


def format_session(row: dict[str, Any]) -> str:
    """Formats one conversation of a list, on two lines."""
    name = row["title"] or row["preview"] or "(no messages)"
    parts = (row["id"], row["source"], f"{row['message_count']} messages", project_name(row["project"]))
    facts = terminal_line(" · ".join(part for part in parts if part))
    return f"{local_time(row['last_active'])}  {bold(terminal_line(name, 70))}\n{' ' * 18}{dim(facts)}"


@click.command()
@click.argument("session", shell_complete=complete_session)
@click.option("--tools", is_flag=True, help="Show tool output in full.")
@all_users_option
@memory_options
def show(invocation: Invocation, session: str, tools: bool, all_users: bool) -> None:
    """Show a conversation from beginning to end. SESSION is an id, a title or first question, or how one begins."""
    with open_sessions(invocation, everyone=all_users) as db:
        session_id = find_session(invocation, db, session)
        members = db.get_compression_lineage(session_id)
        sessions = [session for session in map(db.export_session, members) if session is not None]
    first, last = sessions[0], sessions[-1]
    command = resume_command(last)
    if invocation.as_json:
        invocation.respond("", [*sessions[:-1], last | {"resume": command} if command else last])
        return
    lines = [bold(last["title"] or first["title"] or "(no title)"), dim(format_facts(first, last))]
    lines += [resume_line(command), ""] if command else [""]
    for exported in sessions:
        for message in exported["messages"]:
            if message["copy_of"] is None and not message["is_summary"]:
                lines += format_message(message, tools)
    print_paged("\n".join(lines))


def format_facts(first: dict[str, Any], last: dict[str, Any]) -> str:
    """Formats what is known about a conversation, given its first and its last session."""
    ended = f"ended {local_time(last['ended_at'])} ({last['end_reason']})" if last["ended_at"] else "open"
    started = f"started {local_time(first['started_at'])}"
    parent = f"{first['relation']} of {first['parent_session_id']}" if first["parent_session_id"] else None
    parts = (last["id"], first["source"], last["model"], project_name(last["project"]), started, ended, parent)
    return " · ".join(terminal_line(part) for part in parts if part)


def format_message(message: dict[str, Any], tools: bool) -> list[str]:
    """Formats one message of a conversation; the output of tools in full with `tools`."""
    text = text_of(message["content"])
    if message["role"] == "tool" and not tools:
        text = shorten_end(text, _MAX_TOOL_CHARS, f"… ({len(text):,} characters; --tools shows them)")
    name = f" {message['tool_name']}" if message["tool_name"] else ""
    facts = f"{local_time(message['timestamp'])}  #{message['id']}"
    if message.get(DAMAGED):
        facts += "  damaged: it does not match its checksum"
    lines = [f"{bold(terminal_line(message['role'] + name))}  {dim(facts)}"]
    lines += [f"  {terminal_line(line)}" for line in text.splitlines()]
    if message["tool_calls"]:
        lines += [dim(f"  → {terminal_line(call)}") for call in shorten_calls(message["tool_calls"])]
    return [*lines, ""]


@click.command()
@all_users_option
@memory_options
def stats(invocation: Invocation, all_users: bool) -> None:
    """Count sessions, messages and tokens, by source and model, and show how much disk they use."""
    with open_sessions(invocation, everyone=all_users) as db:
        numbers = db.statistics()
        files = (db.path, *db.index.files) if record_exists(invocation.locate_home().state_db) else ()
        sizes = {path.name: path.stat().st_size for path in files if path.exists()}
    times = {name: show_time(numbers[name] or None) for name in ("first", "last")}
    lines = [f"{numbers[name]:>14,}  {_plural(one, numbers[name])}" for name, one in _COUNTS.items() if name in numbers]
    for column in ("by_source", "by_model"):
        lines += ["", bold(column.replace("_", " "))]
        lines += [
            f"{counts['messages']:>14,}  {_plural('message', counts['messages'])} in "
            f"{count_of(counts['sessions'], 'session')}: {terminal_line(name) or '(none)'}"
            for name, counts in numbers[column].items()
        ]
    record = sizes.get("state.db", 0)
    lines += ["", bold("bytes on disk"), f"{record:>14,}  conversations"]
    lines.append(f"{sum(sizes.values()) - record:>14,}  search index, which can be rebuilt from them")
    invocation.respond("\n".join(lines), numbers | times | {"bytes": sizes})


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"
