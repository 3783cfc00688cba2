"""Runs a command at a service instead of a home: the same arguments, the same output, through the client.

Options that a service does not have are refused instead of ignored.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from memoranda.api.client.curated import HANDLE, find_entry
from memoranda.api.client.memory import RemoteMemory, connect
from memoranda.api.recall import RecallResult
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation
from memoranda.cli.filter_options import current_project
from memoranda.cli.memory import approval, history
from memoranda.cli.memory import curate as curate_command
from memoranda.cli.memory.status import format_status
from memoranda.cli.retrieval import recent as recent_command
from memoranda.cli.retrieval.recall import print_result
from memoranda.cli.retrieval.search import format_search_answer
from memoranda.cli.sessions.list_and_show import format_facts, format_message, format_session
from memoranda.cli.sessions.transfer import read_sessions, write_new_file
from memoranda.cli.terminal_text import ProgressLine, bold, dim, print_paged, terminal_line
from memoranda.errors import SessionError
from memoranda.home import config
from memoranda.memory.curated.settings import PROJECT, TARGETS, Target, file_name, project_target
from memoranda.search.excerpts import entries_matching
from memoranda.search.guidance import NOWHERE
from memoranda.search.request import FILTERS
from memoranda.support.tool import JsonObject


def refuse_options(invocation: Invocation, options: Mapping[str, Any]) -> None:
    """Ends the command if one of these options was given: its value is neither missing, false, zero nor empty."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        invocation.fail(f"{given[0]} does not work with a service. Run the command on the machine of the service.")


def _target(invocation: Invocation, target: Target, project: str) -> Target:
    """The memory that the options name; the service finds a project by its name."""
    name = _project(invocation, project or ("this" if target == PROJECT else None))
    return target if name is None else project_target(name)


def _project(invocation: Invocation, name: str | None) -> str | None:
    """The name of a project; "this" is the one of the directory in which the command was started."""
    if name is None or name.strip().lower() != "this":
        return name
    return current_project() or invocation.fail(NOWHERE)


def remember(
    invocation: Invocation, memory: RemoteMemory, *, words: tuple[str, ...], target: Target, **options: Any
) -> None:
    add(invocation, memory, text="-" if words == ("-",) else " ".join(words), target=target, **options)


def add(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    text: str,
    target: Target,
    project: str,
    key: str,
    until: str,
    allow: tuple[str, ...],
) -> None:
    refuse_options(invocation, {"allow": allow})
    answer = memory.remember(_read_text(text), _target(invocation, target, project), key=key, until=until)
    if not answer["success"]:
        invocation.fail(answer["error"], dict(answer))
    _report(invocation, answer)


def replace(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    old_text: str,
    text: str,
    target: Target,
    project: str,
    until: str,
    allow: tuple[str, ...],
) -> None:
    refuse_options(invocation, {"allow": allow})
    target = _target(invocation, target, project)
    entry = find_entry(old_text, memory.curated.view(target))
    _report(invocation, memory.curated.replace(target, entry["id"], _read_text(text), until=until))


def remove(invocation: Invocation, memory: RemoteMemory, *, old_text: str, target: Target, project: str) -> None:
    target = _target(invocation, target, project)
    entry = find_entry(old_text, memory.curated.view(target))
    _report(invocation, memory.curated.remove(target, entry["id"]))


def list_entries(invocation: Invocation, memory: RemoteMemory, *, target: Target | None, project: str) -> None:
    names = [_target(invocation, target or "memory", project)] if target or project else [*TARGETS]
    if not target and not project and (here := current_project()):
        names.append(project_target(here))
    views = {name: memory.curated.view(name) for name in names}
    if len(views) > len(TARGETS) and not views[names[-1]]["entries"]:
        del views[names[-1]]
    texts = [_format_entries(file_name(view["target"]), view) for view in views.values()]
    invocation.respond("\n\n".join(texts), views)


def move(
    invocation: Invocation, memory: RemoteMemory, *, old_text: str, to: Target, target: Target, project: str
) -> None:
    if project and PROJECT not in (to, target):
        invocation.fail("--project names the project of --to project or --target project.")
    source, destination = (_target(invocation, each, project) if each == PROJECT else each for each in (target, to))
    _report(invocation, memory.curated.move(source, old_text, destination))


def pending(invocation: Invocation, memory: RemoteMemory) -> None:
    approval.respond(invocation, memory.curated.proposals())


def approve(invocation: Invocation, memory: RemoteMemory, *, ids: tuple[str, ...], everything: bool) -> None:
    results: list[JsonObject] = []
    for name in _proposals(invocation, memory, ids, everything):
        try:
            results.append({"id": name, "success": True} | memory.curated.approve(name))
        except SessionError as error:
            results.append({"id": name, "success": False, "error": str(error)})
    approval.report(invocation, "approved", results)


def reject(invocation: Invocation, memory: RemoteMemory, *, ids: tuple[str, ...], everything: bool) -> None:
    chosen = _proposals(invocation, memory, ids, everything)
    for name in chosen:
        memory.curated.reject(name)
    approval.report(invocation, "rejected", [{"id": name} | approval.REJECTED for name in chosen])


def _proposals(invocation: Invocation, memory: RemoteMemory, ids: tuple[str, ...], everything: bool) -> list[str]:
    return approval.select_ids(invocation, [each["id"] for each in memory.curated.proposals()], ids, everything)


def status(invocation: Invocation, memory: RemoteMemory) -> None:
    data = {"home": invocation.url, **memory.status(), "providers": []}
    invocation.respond(format_status(data), data)


def curate(invocation: Invocation, memory: RemoteMemory, *, apply: bool) -> None:
    curate_command.respond(invocation, memory.curate(apply=apply), applied=apply)


def recent(invocation: Invocation, memory: RemoteMemory, *, limit: int, fenced: bool, project: str | None) -> None:
    recent_command.respond(invocation, memory.recent(_project(invocation, project), limit=limit), fenced=fenced)


def log(invocation: Invocation, memory: RemoteMemory, *, target: Target | None, limit: int) -> None:
    changes = memory.curated.log(limit=limit, target=target)
    invocation.respond("\n".join(map(history.format_change_and_edits, changes)) or "No changes yet.", changes)


def undo(invocation: Invocation, memory: RemoteMemory, *, number: int | None, outside: str | None) -> None:
    if outside is not None:
        invocation.fail("The files of a service can be read only where it runs: use --outside there.")
    _report(invocation, memory.curated.undo(number))


def diff(invocation: Invocation, memory: RemoteMemory, *, number: int | None) -> None:
    history.respond_difference(invocation, memory.curated.diff(number), number)


def stale(invocation: Invocation, memory: RemoteMemory, *, older_than: float) -> None:
    facts = [
        {"target": name, **each} for name in _every_target(memory) for each in memory.curated.view(name)["entries"]
    ]
    every = [(_checked_at(each), each["target"], _handle(each), each["text"]) for each in facts]
    history.respond_stale(invocation, every, older_than)


def _checked_at(entry: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(max(entry["written"], entry["confirmed"] or "")).timestamp()


def _handle(entry: Mapping[str, Any]) -> str:
    return f"{HANDLE}{entry['id']}"


def confirm(invocation: Invocation, memory: RemoteMemory, *, old_text: str, target: Target | None) -> None:
    names = [target] if target else _every_target(memory)
    entry = find_entry(old_text, *map(memory.curated.view, names))
    memory.curated.confirm(entry["target"], entry["id"])
    history.respond_confirmed(invocation, _handle(entry), entry["text"])


def _every_target(memory: RemoteMemory) -> list[Target]:
    """The memories of a user, also those of projects."""
    return [each["target"] for each in memory.status()["memory"]]


def _report(invocation: Invocation, receipt: Mapping[str, Any]) -> None:
    lines = [str(receipt["message"])]
    if receipt.get("change"):
        lines += [f"change {receipt['change']} · {invocation.url}", "The agent sees it from its next session on."]
    invocation.respond("\n".join(map(terminal_line, lines)), {"success": True} | dict(receipt))


def _format_entries(name: str, view: Mapping[str, Any]) -> str:
    lines = [f"{name}  {view['used']:,} of {view['limit']:,} characters" if view["limit"] else name]
    for number, entry in enumerate(view["entries"], start=1):
        first, *rest = entry["text"].split("\n")
        if until := entry.get("until"):
            first += f"  (expired: {until})" if entry["expired"] else f"  (until {until})"
        lines += [f"{number:>3}  {terminal_line(first)}", *(f"     {terminal_line(line)}" for line in rest)]
    return "\n".join(lines if view["entries"] else [*lines, "  (no entries yet)"])


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument


_SEARCH_OPTIONS = ("limit", "sort", "why", *(each.name for each in FILTERS if each.name != "project"))


def search(
    invocation: Invocation, memory: RemoteMemory, *, words: tuple[str, ...], project: str | None, **options: Any
) -> None:
    passed = {name: options.pop(name) for name in _SEARCH_OPTIONS}
    refuse_options(invocation, options)
    # An option that can be repeated and was not given is an empty tuple.
    given: Any = {name: list(value) or None if isinstance(value, tuple) else value for name, value in passed.items()}
    answer: Any = memory.search(" ".join(words), project=_project(invocation, project), **given)
    if invocation.as_json:
        invocation.respond("", answer)
        return
    # The command has no option for the cursor of a service.
    click.echo(format_search_answer({name: value for name, value in answer.items() if name != "cursor"}))


def recall(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    words: tuple[str, ...],
    limit: int,
    project: str | None,
    fenced: bool,
    chars: int,
) -> None:
    question = " ".join(words)
    if not question.strip():
        invocation.fail("The question is empty.")
    entries = {target: entries_matching(question, memory.entries(target)) for target in TARGETS}
    answer: Any = memory.search(question, limit=limit, project=_project(invocation, project))
    print_result(invocation, RecallResult(entries, "", answer), fenced, chars)


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
        "project": _project(invocation, project),
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


_MAX_ERRORS_SHOWN = 10
_MAX_PLACES_SHOWN = 40


def export(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    session: tuple[str, ...],
    file_format: str,
    output: Path | None,
    source: str | None,
    everything: bool,
    **other: Any,
) -> None:
    refuse_options(invocation, {**other, "all": everything and source})
    if session or file_format != "jsonl":
        invocation.fail("A service exports all conversations, or those of one --source, as JSON lines.")
    counts = {"sessions": 0, "items": 0}

    def read_lines(progress: ProgressLine) -> Iterator[bytes]:
        for line in memory.export(source):
            counts["sessions" if "id" in line else "items"] += 1
            progress.update(f"{counts['sessions']:,} sessions written")
            yield json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    if output is None:
        for part in read_lines(ProgressLine(visible=False)):
            # As bytes, because text output would replace lone surrogates.
            click.echo(part, nl=False)
        return
    with ProgressLine(visible=not invocation.as_json) as progress:
        write_new_file(output, read_lines(progress))
    also = f" and {counts['items']:,} items" if counts["items"] else ""
    text = f"Exported {counts['sessions']:,} sessions{also} to {output}."
    invocation.respond(text, {"success": True, **counts, "path": str(output)})


def import_file(invocation: Invocation, memory: RemoteMemory, *, file: Path, all_users: bool) -> None:
    refuse_options(invocation, {"all_users": all_users})
    broken: list[dict[str, Any]] = []
    report = memory.import_exported(read_sessions(file, broken))
    errors = [*broken, *report["errors"]]
    text = (
        f"Imported {report['imported']:,} sessions, updated {report['updated']:,}, left {report['unchanged']:,} "
        f"unchanged; {report['messages']:,} messages are new."
    )
    if report["items"]:
        text += f"\n{report['items']:,} items are new or newer."
    for session_id, title in report["renamed"].items():
        text += f"\n{session_id} is called {title!r} there, because its title was taken."
    data = report | {"errors": errors}
    if errors:
        shown = [f"{_location(error)}: {error['error']}" for error in errors[:_MAX_ERRORS_SHOWN]]
        invocation.fail("\n".join([text, f"{len(errors)} could not be imported:", *map(terminal_line, shown)]), data)
    invocation.respond(text, {"success": True, **data})


def _location(error: Mapping[str, Any]) -> str:
    names = [name for name in ("line", "session_id", "item") if name in error]
    return f"{names[0].removesuffix('_id')} {error[names[0]]}" if names else "one"


def forget(
    invocation: Invocation,
    memory: RemoteMemory,
    *,
    what: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    many: bool,
    **options: Any,
) -> None:
    refuse_options(invocation, {"all_users": options.pop("all_users")})
    whole_words = options.pop("whole_words")
    named: dict[str, Any] = {name: value for name, value in options.items() if value}
    if what or len(named) != 1:
        invocation.fail("With a service, name what to forget with --text, --session (an id) or --entry (a handle).")
    found = memory.forget(**named, whole_words=whole_words, dry_run=True)
    if found["warning"] and yes and not many and not dry_run:
        invocation.fail(f"{found['warning']} Nothing was changed; --many accepts that.", found)

    def run() -> None:
        report = memory.forget(**named, whole_words=whole_words)
        lines = ["Forgotten." if report["complete"] else "Not everything could be forgotten.", *report["problems"]]
        lines += [_describe_place(place) for place in report["left"]]
        shown = "\n".join(map(terminal_line, [*lines, *report["notes"]]))
        if not report["complete"]:
            invocation.fail(shown, {"success": False, **report})
        invocation.respond(shown, {"success": True, **report})

    places = [_describe_place(place) for place in found["found"][:_MAX_PLACES_SHOWN]]
    described = "\n".join(map(terminal_line, [f"Found {found['count']:,} times at the service:", *places]))
    question = f"{found['warning'] or ''} Forget it for good?".strip()
    planned = PlannedChange(described, found, question, "Nothing was changed: --yes forgets it.", default=False)
    confirm_and_run(invocation, planned, run, dry_run=dry_run, yes=yes)


def _describe_place(place: Mapping[str, Any]) -> str:
    return f"  {place['area']}: {place['where']}, {place['count']:,} times"


KEY_VARIABLE = "MEMORANDA_API_KEY"
_Handler = Callable[..., None]
COMMANDS: Mapping[str, _Handler] = {
    "status": status,
    "curate": curate,
    "recent": recent,
    "search": search,
    "recall": recall,
    "remember": remember,
    "memory list": list_entries,
    "memory add": add,
    "memory replace": replace,
    "memory remove": remove,
    "memory move": move,
    "memory pending": pending,
    "memory approve": approve,
    "memory reject": reject,
    "memory log": log,
    "memory undo": undo,
    "memory diff": diff,
    "memory stale": stale,
    "memory confirm": confirm,
    "sessions list": list_sessions,
    "sessions show": show,
    "sessions export": export,
    "export": export,
    "sessions import": import_file,
    "forget": forget,
}
# Commands about this machine and the programs on it. MEMORANDA_URL does not concern them, and --url is refused.
_LOCAL = frozenset({
    "completion", "config", "demo", "help", "hook", "install", "key", "mcp", "profile", "secret", "serve", "server",
    "setup", "uninstall", "view",
})  # fmt: skip


def run_remotely(
    invocation: Invocation, context: click.Context, run_locally: Callable[[], Any], options: Mapping[str, Any]
) -> Any:
    """Runs the command of `context` at the service; refuses one that has no counterpart there."""
    name = context.command_path.partition(" ")[2]
    if name.split(" ")[0] in _LOCAL and not invocation.url_is_option:
        return run_locally()
    handler = COMMANDS.get(name)
    if handler is None:
        invocation.fail(
            f"'memoranda {name}' does not work with a service ({invocation.url}). Run it on the machine of the "
            "service, without --url and MEMORANDA_URL."
        )
    if invocation.home or invocation.profile:
        invocation.fail("--home and --profile name a home on this machine, and --url another one. Use one of them.")
    try:
        with connect_for(invocation) as connected:
            handler(invocation, connected, **options)
    except SessionError as error:
        invocation.fail(str(error))
    return None


def connect_for(invocation: Invocation) -> RemoteMemory:
    """Connects with the key in MEMORANDA_API_KEY, from the environment or `.env` of the home on this machine."""
    assert invocation.url is not None
    key = config.credentials(invocation.locate_home()).get(KEY_VARIABLE, "").strip()
    return connect(invocation.url, key or None, user=invocation.user)
