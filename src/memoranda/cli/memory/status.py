"""`memoranda status`: on one screen how full and old memory is, what awaits a decision, and what was saved."""

from collections.abc import Mapping
from typing import Any

import click

from memoranda.api.memory import Memory
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.open_home import open_memory_of
from memoranda.cli.terminal_text import bold, count_of, dim, terminal_line
from memoranda.memory.curated.settings import Target, file_name, is_project, project_in
from memoranda.support.projects import project_name

_BAR = 20
_MAX_CHARS = 90
_EPILOG = """\b
Examples:
  memoranda status
  memoranda status --json
"""


@click.command(epilog=_EPILOG)
@memory_options
def command(invocation: Invocation) -> None:
    """See memory on one screen: how full, how old, what awaits your decision, and what was saved this week."""
    with open_memory_of(invocation) as memory:
        data = {"home": str(memory.home.root), **memory.status(), "providers": _providers(memory)}
    invocation.respond(format_status(data), data)


def _providers(memory: Memory) -> list[dict[str, Any]]:
    """What each external memory has not received yet, and what its last call said."""
    if not memory.config.providers:
        return []
    from memoranda.external.health import read_status  # noqa: PLC0415
    from memoranda.external.outbox.outbox import Outbox  # noqa: PLC0415

    outbox = Outbox(memory.home.root, server_url=memory.services.server_url)
    try:
        for name in memory.config.providers:
            # The process that recorded a turn may have ended before it was queued.
            outbox.catch_up(name, memory.user or "")
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


def format_status(data: Mapping[str, Any]) -> str:
    """Formats what `Memory.status` answers, with the home or service that it is about."""
    lines = [bold("Memory") + dim(f"  {terminal_line(data['home'])}")]
    names = [_name(file["target"]) for file in data["memory"]]
    width = max(map(len, names))
    lines += [f"  {name:<{width}}  {_format_file(file)}" for name, file in zip(names, data["memory"], strict=True)]
    lines += [f"  {count_of(data['notes'], 'note')}, found by search"] if data["notes"] else []
    lines += ["", bold("Waiting for you"), *(_format_waiting(data["waiting"]) or ["  nothing"])]
    week = data["week"]
    lines += ["", bold("This week"), f"  {count_of(week['conversations'], 'conversation')}{_by_agent(week['agents'])}"]
    lines += [
        f"  {count_of(week['saved'], 'change')} of memory{': ' if week['saved'] else ''}{week.get('summary', '')}"
    ]
    lines += ["  latest entries:"] if week["latest"] else []
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
