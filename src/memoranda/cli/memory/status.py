"""`memoranda status`: on one screen how full and old memory is, what awaits a decision, and what was saved."""

import time
from collections import Counter
from typing import Any

import click

from memoranda.api.memory import Memory
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.open_home import open_memory_of
from memoranda.cli.terminal_text import bold, count_of, dim, terminal_line
from memoranda.errors import StorageError
from memoranda.memory.curated import change_history
from memoranda.memory.curated.settings import Target, file_name, is_project, project_in
from memoranda.memory.curated.store import MemoryStore
from memoranda.search.request import show_time
from memoranda.support.origin import utc_time
from memoranda.support.projects import project_name

_DAY = 86_400.0
_WEEK = 7 * _DAY
_BAR = 20
_MAX_SAVED = 5
_MAX_SESSIONS = 10_000
_MAX_CHARS = 90
_EPILOG = """\b
Examples:
  memoranda status
  memoranda status --json
"""


@click.command(epilog=_EPILOG)
@memory_options
def command() -> None:
    """See memory on one screen: how full, how old, what awaits your decision, and what was saved this week."""
    invocation = Invocation.current()
    with open_memory_of(invocation) as memory:
        store = memory.curated
        data: dict[str, Any] = {
            "home": str(memory.home.root),
            "memory": [_file(store, target) for target in store.storage.targets()],
            "notes": len(store.notes.all()) if store.notes and memory.services.has_record else 0,
            "waiting": _waiting(memory),
            "week": _saved_this_week(store) | _conversations(memory),
            "providers": _providers(memory),
        }
    invocation.respond(_format(data), data)


def _file(store: MemoryStore, target: Target) -> dict[str, Any]:
    """How full and how old one file is; a file that cannot be read says why."""
    try:
        view, facts = store.view(target), store.facts(target)
    except StorageError as error:
        return {"target": target, "file": file_name(target), "error": str(error)}
    oldest = min((each.checked_at for each in facts), default=None)
    return {
        "target": target,
        "file": file_name(target),
        "used": view.used,
        "limit": view.limit,
        "entries": len(facts),
        "expired": sum(each.expired for each in facts),
        "oldest_days": None if oldest is None else max(0, int((time.time() - oldest) / _DAY)),
    }


def _waiting(memory: Memory) -> dict[str, int]:
    """What awaits a decision: what the agent proposed, and what the curator would tidy up."""
    mode = memory.config.curate.mode
    return {
        "proposals": len(memory.curated.proposals.all()),
        "curator": 0 if mode == "off" else len(memory.curate(model=False)["changes"]),
    }


def _saved_this_week(store: MemoryStore) -> dict[str, Any]:
    """How many entries were saved in a week, and the latest of them."""
    since = utc_time(time.time() - _WEEK)
    recent = [change for change in change_history.log(store) if change.at >= since]
    texts = [
        store.visible_text(change.target, edit.after)
        for change in reversed(recent)
        for edit in change.edits
        if edit.after is not None
    ]
    return {"saved": len(texts), "latest": texts[:_MAX_SAVED]}


def _conversations(memory: Memory) -> dict[str, Any]:
    """The conversations of a week by agent, and when the last one was active."""
    if not memory.services.has_record:
        return {"conversations": 0, "agents": {}, "last_active": None}
    rows = memory.sessions.list_sessions_rich(
        limit=_MAX_SESSIONS, since=time.time() - _WEEK, exclude_sources=memory.config.recall.hidden_sources
    )
    last = max((row["last_active"] for row in rows), default=None)
    agents = dict(Counter(row["source"] for row in rows).most_common())
    return {"conversations": len(rows), "agents": agents, "last_active": show_time(last)}


def _providers(memory: Memory) -> list[dict[str, Any]]:
    """What each external memory has not received yet, and what its last call said."""
    if not memory.config.providers:
        return []
    from memoranda.external.health import read_status  # noqa: PLC0415
    from memoranda.external.outbox.outbox import Outbox  # noqa: PLC0415

    outbox = Outbox(memory.home.root, server_url=memory.services.server_url)
    try:
        backlogs = {name: outbox.backlog(name) for name in memory.config.providers}
    finally:
        outbox.close()
    return [
        {
            "name": name,
            "waiting": backlog.waiting,
            "parked": backlog.parked,
            "last_error": read_status(memory.home.root, name).last_error,
        }
        for name, backlog in backlogs.items()
    ]


def _format(data: dict[str, Any]) -> str:
    lines = [bold("Memory") + dim(f"  {terminal_line(data['home'])}")]
    names = [_name(file["target"]) for file in data["memory"]]
    width = max(map(len, names))
    lines += [f"  {name:<{width}}  {_format_file(file)}" for name, file in zip(names, data["memory"], strict=True)]
    lines += [f"  {count_of(data['notes'], 'note')}, found by search"] if data["notes"] else []
    lines += ["", bold("Waiting for you"), *(_format_waiting(data["waiting"]) or ["  nothing"])]
    week = data["week"]
    lines += ["", bold("This week"), f"  {count_of(week['conversations'], 'conversation')}{_by_agent(week['agents'])}"]
    lines += [f"  {count_of(week['saved'], 'change')} of memory{':' if week['latest'] else ''}"]
    lines += [f"    {terminal_line(text.splitlines()[0], _MAX_CHARS)}" for text in week["latest"]]
    lines += ["", bold("External memory"), *map(_format_provider, data["providers"])] if data["providers"] else []
    return "\n".join(lines)


def _name(target: Target) -> str:
    return f"project {terminal_line(project_name(project_in(target)))}" if is_project(target) else file_name(target)


def _format_file(file: dict[str, Any]) -> str:
    if "error" in file:
        return terminal_line(file["error"])
    percent = 100 * file["used"] // file["limit"] if file["limit"] else 0
    bar = "█" * min(_BAR, percent * _BAR // 100)
    facts = ["1 entry" if file["entries"] == 1 else f"{file['entries']} entries"]
    facts += [f"oldest {count_of(file['oldest_days'], 'day')}"] if file["oldest_days"] else []
    facts += [f"{file['expired']} expired"] if file["expired"] else []
    return f"{bar:░<{_BAR}} {percent:>3}%  {dim(', '.join(facts))}"


def _format_waiting(waiting: dict[str, int]) -> list[str]:
    lines = []
    if waiting["proposals"]:
        lines.append(f"  {count_of(waiting['proposals'], 'proposal')} of your agents: memoranda memory pending")
    if waiting["curator"]:
        lines.append(f"  {count_of(waiting['curator'], 'thing')} to tidy up: memoranda curate")
    return lines


def _by_agent(agents: dict[str, int]) -> str:
    return ": " + ", ".join(f"{terminal_line(name)} {count}" for name, count in agents.items()) if agents else ""


def _format_provider(provider: dict[str, Any]) -> str:
    waiting = f"{provider['waiting']} waiting, {provider['parked']} parked"
    error = f"; last error: {terminal_line(provider['last_error'], _MAX_CHARS)}" if provider["last_error"] else ""
    return f"  {terminal_line(provider['name'])}: {waiting}{error}"
