"""`memoranda sessions list` and `show` at a service."""

from typing import Any

from memoranda.api.client import RemoteMemory
from memoranda.cli.context import Invocation
from memoranda.cli.filter_options import current_project
from memoranda.cli.remote.refusals import refuse_options
from memoranda.cli.sessions.list_and_show import format_facts, format_message, format_session
from memoranda.cli.terminal_text import bold, dim, print_paged

# What the messages of a service leave out when it is empty.
_NO_FIELDS = {"tool_name": None, "tool_calls": None}


def list_sessions(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    limit: int,
    source: tuple[str, ...],
    project: str | None,
    title: str | None,
    model: str | None,
    **other: Any,
) -> None:
    refuse_options(invocation, other)
    if len(source) > 1:
        invocation.fail("A service lists the sessions of one --source at a time.")
    filters = {
        "source": source[0] if source else None,
        "project": current_project() if project == "this" else project,
        "title": title,
        "model": model,
    }
    rows = memory.sessions.list_sessions_rich(limit=limit + 1, **filters)
    more, rows = len(rows) > limit, rows[:limit]
    if invocation.as_json:
        invocation.respond("", {"sessions": rows, "more": more})
        return
    lines = [format_session(row | {"preview": row.get("preview")}) for row in rows]
    print_paged("\n".join([*lines, dim("There are more: --limit")] if more else lines or ["No sessions yet."]))


def show(invocation: Invocation, memory: RemoteMemory, *, session: str, tools: bool, all_users: bool) -> None:
    refuse_options(invocation, {"all_users": all_users})
    row = memory.sessions.get_session(session)
    if row is None:
        invocation.fail(f"There is no session {session!r}. 'memoranda sessions list' shows their ids.")
    messages = memory.sessions.get_messages(session, include_inactive=True)
    if invocation.as_json:
        invocation.respond("", [row | {"messages": messages}])
        return
    lines = [bold(row["title"] or "(no title)"), dim(format_facts(row, row)), ""]
    for message in messages:
        if not message.get("is_summary"):
            lines += format_message(_NO_FIELDS | message, tools)
    print_paged("\n".join(lines))
