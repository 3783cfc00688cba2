"""Runs a command at a service instead of a home: the same arguments, the same output, through the client.

Options that a service does not have are refused instead of ignored.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from memoranda.api.client.curated import HANDLE, find_entry
from memoranda.api.client.memory import RemoteMemory, connect
from memoranda.api.recall import RecallResult
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import EXIT_UNUSABLE, Invocation
from memoranda.cli.filter_options import current_project
from memoranda.cli.memory import approval, history
from memoranda.cli.memory import curate as curate_command
from memoranda.cli.memory.entries import format_old_text
from memoranda.cli.memory.status import format_status
from memoranda.cli.retrieval import recent as recent_command
from memoranda.cli.retrieval.recall import print_result
from memoranda.cli.retrieval.search import format_search_answer, query_of
from memoranda.cli.sessions.list_and_show import format_facts, format_message, format_session
from memoranda.cli.sessions.lookup import called
from memoranda.cli.sessions.transfer import file_for_lines, read_sessions, write_new_file
from memoranda.cli.terminal_text import ProgressLine, bold, dim, print_paged, terminal_line
from memoranda.errors import AccessError, SessionError
from memoranda.home import config
from memoranda.memory.curated.settings import PROJECT, TARGETS, Target, file_name, project_target
from memoranda.search.excerpts import entries_matching
from memoranda.search.guidance import NO_PROJECT, NOWHERE
from memoranda.search.request import FILTERS
from memoranda.support.tool import JsonObject


def _checked_at(entry: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(max(entry["written"], entry["confirmed"] or "")).timestamp()


def _handle(entry: Mapping[str, Any]) -> str:
    return f"{HANDLE}{entry['id']}"


def _format_entries(name: str, view: Mapping[str, Any]) -> str:
    lines = [f"{name}  {view['used']:,} of {view['limit']:,} characters" if view["limit"] else name]
    for number, entry in enumerate(view["entries"], start=1):
        first, *rest = entry["shown"].split("\n")
        if until := entry.get("until"):
            first += f"  (expired: {until})" if entry["expired"] else f"  (until {until})"
        lines += [f"{number:>3}  {terminal_line(first)}", *(f"     {terminal_line(line)}" for line in rest)]
    return "\n".join(lines if view["entries"] else [*lines, "  (no entries yet)"])


def _read_text(argument: str) -> str:
    return sys.stdin.read() if argument == "-" else argument


_SEARCH_OPTIONS = ("limit", "sort", "why", *(each.name for each in FILTERS if each.name != "project"))
# What the messages of a service leave out when it is empty.
_NO_FIELDS = {"tool_name": None, "tool_calls": None}
_MAX_ERRORS_SHOWN = 10
_MAX_PLACES_SHOWN = 40
# How many of the latest conversations a name is compared with.
_MAX_COMPARED = 200


def _location(error: Mapping[str, Any]) -> str:
    names = [name for name in ("line", "session_id", "item") if name in error]
    return f"{names[0].removesuffix('_id')} {error[names[0]]}" if names else "one"


def _describe_place(place: Mapping[str, Any]) -> str:
    return f"  {place['area']}: {place['where']}, {place['count']:,} times"


@dataclass(frozen=True, slots=True)
class RemoteCommands:
    """The commands that a service has, each with the parameters of the command of the same name."""

    invocation: Invocation
    memory: RemoteMemory

    def remember(self, *, words: tuple[str, ...], target: Target, **options: Any) -> None:
        self.add(text="-" if words == ("-",) else " ".join(words), target=target, **options)

    def add(
        self, *, text: str, target: Target, project: str, key: str, until: str, replace: bool | None,
        allow: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._refuse_options({"allow": allow, "replace": replace})
        answer = self.memory.remember(_read_text(text), self._target(target, project), key=key, until=until)
        if not answer["success"]:
            self.invocation.fail(answer["error"], dict(answer))
        self._report(answer)

    def replace(
        self, *, old_text: str, text: str, target: Target, project: str, until: str, allow: tuple[str, ...]
    ) -> None:
        self._refuse_options({"allow": allow})
        target = self._target(target, project)
        entry = find_entry(old_text, self.memory.curated.view(target))
        self._report(self.memory.curated.replace(target, entry["id"], _read_text(text), until=until), entry["text"])

    def remove(self, *, old_text: str, target: Target, project: str) -> None:
        target = self._target(target, project)
        entry = find_entry(old_text, self.memory.curated.view(target))
        self._report(self.memory.curated.remove(target, entry["id"]), entry["text"])

    def list_entries(self, *, target: Target | None, project: str) -> None:
        names = [self._target(target or "memory", project)] if target or project else [*TARGETS]
        if not target and not project and (here := current_project()):
            names.append(project_target(here))
        views = {name: self.memory.curated.view(name) for name in names}
        if len(views) > len(TARGETS) and not views[names[-1]]["entries"]:
            del views[names[-1]]
        texts = [_format_entries(file_name(view["target"]), view) for view in views.values()]
        self.invocation.respond("\n\n".join(texts), views)

    def move(self, *, old_text: str, to: Target, target: Target | None, project: str) -> None:
        target = target or "memory"
        if project and PROJECT not in (to, target):
            self.invocation.fail("--project names the project of --to project or --target project.")
        source, destination = (self._target(each, project) if each == PROJECT else each for each in (target, to))
        entry = find_entry(old_text, self.memory.curated.view(source))
        self._report(self.memory.curated.move(source, _handle(entry), destination))

    def pending(self) -> None:
        approval.respond(self.invocation, self.memory.curated.proposals())

    def approve(self, *, ids: tuple[str, ...], everything: bool) -> None:
        results: list[JsonObject] = []
        for name in self._proposals(ids, everything):
            try:
                results.append({"id": name, "success": True} | self.memory.curated.approve(name))
            except SessionError as error:
                results.append({"id": name, "success": False, "error": str(error)})
        approval.report(self.invocation, "approved", results)

    def reject(self, *, ids: tuple[str, ...], everything: bool) -> None:
        chosen = self._proposals(ids, everything)
        for name in chosen:
            self.memory.curated.reject(name)
        approval.report(self.invocation, "rejected", [{"id": name} | approval.REJECTED for name in chosen])

    def status(self) -> None:
        data = {"home": self.invocation.url, **self.memory.status(), "providers": []}
        self.invocation.respond(format_status(data), data)

    def curate(self, *, apply: bool) -> None:
        curate_command.respond(self.invocation, self.memory.curate(apply=apply), applied=apply)

    def recent(self, *, limit: int, fenced: bool, project: str | None) -> None:
        answer = self.memory.recent(self._project(project), limit=limit)
        nothing = recent_command.NOTHING if project is None else NO_PROJECT
        recent_command.respond(self.invocation, answer, fenced=fenced, nothing=nothing)

    def log(self, *, target: Target | None, project: str, limit: int) -> None:
        name = self._target(target or "memory", project) if target or project else None
        changes = self.memory.curated.log(limit=limit, target=name)
        self.invocation.respond("\n".join(map(history.format_change_and_edits, changes)) or "No changes yet.", changes)

    def undo(self, *, number: int | None, outside: str | None) -> None:
        if outside is not None:
            self.invocation.fail("The files of a service can be read only where it runs: use --outside there.")
        self._report(self.memory.curated.undo(number))

    def diff(self, *, number: int | None) -> None:
        history.respond_difference(self.invocation, self.memory.curated.diff(number))

    def stale(self, *, older_than: float) -> None:
        facts = [
            {"target": name, **each}
            for name in self._every_target()
            for each in self.memory.curated.view(name)["entries"]
        ]
        every = [(_checked_at(each), each["target"], _handle(each), each["text"]) for each in facts]
        history.respond_stale(self.invocation, every, older_than)

    def confirm(self, *, old_text: str, target: Target | None) -> None:
        names = [target] if target else self._every_target()
        entry = find_entry(old_text, *map(self.memory.curated.view, names))
        self.memory.curated.confirm(entry["target"], entry["id"])
        history.respond_confirmed(self.invocation, _handle(entry), entry["text"])

    def search(self, *, words: tuple[str, ...], project: str | None, **options: Any) -> None:
        passed = {name: options.pop(name) for name in _SEARCH_OPTIONS}
        self._refuse_options(options)
        # An option that can be repeated and was not given is an empty tuple.
        given: Any = {
            name: list(value) or None if isinstance(value, tuple) else value for name, value in passed.items()
        }
        query = query_of(self.invocation, words)
        answer: Any = self.memory.search(query, project=self._project(project), **given)
        if self.invocation.as_json:
            self.invocation.respond("", answer)
            return
        # The command has no option for the cursor of a service.
        click.echo(format_search_answer({name: value for name, value in answer.items() if name != "cursor"}))

    def recall(self, *, words: tuple[str, ...], limit: int, project: str | None, fenced: bool, chars: int) -> None:
        question = query_of(self.invocation, words)
        entries = {target: entries_matching(question, self.memory.entries(target)) for target in TARGETS}
        answer: Any = self.memory.search(question, limit=limit, project=self._project(project))
        print_result(self.invocation, RecallResult(entries, "", answer), fenced, chars)

    def list_sessions(self, *, limit: int, source: tuple[str, ...], project: str | None, **options: Any) -> None:
        filters = {name: options.pop(name) for name in ("title", "model")}
        self._refuse_options(options)
        if len(source) > 1:
            self.invocation.fail("A service lists the sessions of one --source at a time.")
        filters |= {"source": source[0] if source else None, "project": self._project(project)}
        rows = self.memory.sessions.list_sessions_rich(limit=limit + 1, **filters)
        more, rows = len(rows) > limit, rows[:limit]
        if self.invocation.as_json:
            self.invocation.respond("", {"sessions": rows, "more": more})
            return
        lines = [format_session(row | {"preview": row.get("preview")}) for row in rows]
        print_paged("\n".join([*lines, dim("There are more: --limit")] if more else lines or ["No sessions yet."]))

    def show(self, *, session: str, tools: bool, all_users: bool) -> None:
        self._refuse_options({"all_users": all_users})
        sessions = self.memory.sessions
        row = sessions.get_session(session)
        if row is None:
            listed = [*sessions.list_sessions_rich(title=session), *sessions.list_sessions_rich(limit=_MAX_COMPARED)]
            found = list(called(session, listed))
            row = sessions.get_session(found[0]) if len(found) == 1 else None
        if row is None:
            several = f" These begin so: {', '.join(map(terminal_line, found[:_MAX_ERRORS_SHOWN]))}." if found else ""
            self.invocation.fail(
                f"There is no session {session!r}.{several} 'memoranda sessions list' shows their ids and titles."
            )
        messages = sessions.get_messages(row["id"], include_inactive=True)
        if self.invocation.as_json:
            self.invocation.respond("", [row | {"messages": messages}])
            return
        lines = [bold(row["title"] or "(no title)"), dim(format_facts(row, row)), ""]
        for message in messages:
            if not message.get("is_summary"):
                lines += format_message(_NO_FIELDS | message, tools)
        print_paged("\n".join(lines))

    def export(self, *, session: tuple[str, ...], file_format: str, output: Path | None, **options: Any) -> None:
        source, everything = options.pop("source"), options.pop("everything")
        self._refuse_options({**options, "all": everything and source})
        if session or file_format != "jsonl":
            self.invocation.fail("A service exports all conversations, or those of one --source, as JSON lines.")
        counts = {"sessions": 0, "items": 0}

        def read_lines(progress: ProgressLine) -> Iterator[bytes]:
            for line in self.memory.export(source):
                counts["sessions" if "id" in line else "items"] += 1
                progress.update(f"{counts['sessions']:,} sessions written")
                yield json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

        if output is None:
            for part in read_lines(ProgressLine(visible=False)):
                # As bytes, because text output would replace lone surrogates.
                click.echo(part, nl=False)
            return
        output = file_for_lines(output)
        with ProgressLine(visible=not self.invocation.as_json) as progress:
            write_new_file(output, read_lines(progress))
        also = f" and {counts['items']:,} items" if counts["items"] else ""
        text = f"Exported {counts['sessions']:,} sessions{also} to {output}."
        self.invocation.respond(text, {"success": True, **counts, "path": str(output)})

    def import_file(self, *, file: Path, all_users: bool) -> None:
        self._refuse_options({"all_users": all_users})
        broken: list[dict[str, Any]] = []
        report = self.memory.import_exported(read_sessions(file, broken))
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
            self.invocation.fail(
                "\n".join([text, f"{len(errors)} could not be imported:", *map(terminal_line, shown)]), data
            )
        self.invocation.respond(text, {"success": True, **data})

    def forget(self, *, what: tuple[str, ...], dry_run: bool, yes: bool, many: bool, **options: Any) -> None:
        self._refuse_options({"all_users": options.pop("all_users")})
        whole_words = options.pop("whole_words")
        named: dict[str, Any] = {name: value for name, value in options.items() if value}
        if what or len(named) != 1:
            self.invocation.fail(
                "With a service, name what to forget with --text, --session (an id) or --entry (a handle)."
            )
        found = self.memory.forget(**named, whole_words=whole_words, dry_run=True)
        if found["warning"] and yes and not many and not dry_run:
            self.invocation.fail(f"{found['warning']} Nothing was changed; --many accepts that.", found)

        def run() -> None:
            report = self.memory.forget(**named, whole_words=whole_words)
            lines = ["Forgotten." if report["complete"] else "Not everything could be forgotten.", *report["problems"]]
            lines += [_describe_place(place) for place in report["left"]]
            shown = "\n".join(map(terminal_line, [*lines, *report["notes"]]))
            if not report["complete"]:
                self.invocation.fail(shown, {"success": False, **report})
            self.invocation.respond(shown, {"success": True, **report})

        places = [_describe_place(place) for place in found["found"][:_MAX_PLACES_SHOWN]]
        described = "\n".join(map(terminal_line, [f"Found {found['count']:,} times at the service:", *places]))
        question = f"{found['warning'] or ''} Forget it for good?".strip()
        planned = PlannedChange(described, found, question, "Nothing was changed: --yes forgets it.", default=False)
        confirm_and_run(self.invocation, planned, run, dry_run=dry_run, yes=yes)

    def _refuse_options(self, options: Mapping[str, Any]) -> None:
        """Ends the command if one of these options was given: its value is neither missing, false, zero nor empty."""
        given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
        if given:
            self.invocation.fail(
                f"{given[0]} does not work with a service. Run the command on the machine of the service."
            )

    def _target(self, target: Target, project: str) -> Target:
        """The memory that the options name; the service finds a project by its name."""
        name = self._project(project or ("this" if target == PROJECT else None))
        return target if name is None else project_target(name)

    def _project(self, name: str | None) -> str | None:
        """The name of a project; "this" is the one of the directory in which the command was started."""
        if name is None or name.strip().lower() != "this":
            return name
        return current_project() or self.invocation.fail(NOWHERE)

    def _proposals(self, ids: tuple[str, ...], everything: bool) -> list[str]:
        return approval.select_ids(
            self.invocation, [each["id"] for each in self.memory.curated.proposals()], ids, everything
        )

    def _every_target(self) -> list[Target]:
        """The memories of a user, also those of projects."""
        return [each["target"] for each in self.memory.status()["memory"]]

    def _report(self, receipt: Mapping[str, Any], old_text: str = "") -> None:
        lines = [str(receipt["message"])]
        lines += format_old_text(old_text).split("\n") if old_text else []
        if similar := receipt.get("similar"):
            lines += ["Close to it:", *(line for text in similar for line in format_old_text(text).split("\n"))]
        if receipt.get("change"):
            lines += [
                f"change {receipt['change']} · {self.invocation.url}",
                "The agent sees it from its next session on."
                if receipt.get("ids")
                else "Sessions that start from now on no longer show it.",
            ]
        self.invocation.respond("\n".join(map(terminal_line, lines)), {"success": True} | dict(receipt))


KEY_VARIABLE = "MEMORANDA_API_KEY"
COMMANDS: Mapping[str, Callable[..., None]] = {
    "status": RemoteCommands.status,
    "curate": RemoteCommands.curate,
    "recent": RemoteCommands.recent,
    "search": RemoteCommands.search,
    "recall": RemoteCommands.recall,
    "remember": RemoteCommands.remember,
    "memory list": RemoteCommands.list_entries,
    "memory add": RemoteCommands.add,
    "memory replace": RemoteCommands.replace,
    "memory remove": RemoteCommands.remove,
    "memory move": RemoteCommands.move,
    "memory pending": RemoteCommands.pending,
    "memory approve": RemoteCommands.approve,
    "memory reject": RemoteCommands.reject,
    "memory log": RemoteCommands.log,
    "memory undo": RemoteCommands.undo,
    "memory diff": RemoteCommands.diff,
    "memory stale": RemoteCommands.stale,
    "memory confirm": RemoteCommands.confirm,
    "sessions list": RemoteCommands.list_sessions,
    "sessions show": RemoteCommands.show,
    "sessions export": RemoteCommands.export,
    "export": RemoteCommands.export,
    "sessions import": RemoteCommands.import_file,
    "forget": RemoteCommands.forget,
}
LOCAL = frozenset({
    "completion", "config", "demo", "help", "hook", "install", "key", "mcp", "profile", "secret", "serve", "uninstall",
})  # fmt: skip
"""Commands about this machine and the programs on it. MEMORANDA_URL does not concern them, and --url is refused."""


def run_remotely(
    invocation: Invocation, context: click.Context, run_locally: Callable[[], Any], options: Mapping[str, Any]
) -> Any:
    """Runs the command of `context` at the service; refuses one that has no counterpart there."""
    name = context.command_path.partition(" ")[2]
    if name.removeprefix("server ").split(" ")[0] in LOCAL and not invocation.url_is_option:
        return run_locally()
    handler = COMMANDS.get(name)
    if handler is None:
        invocation.fail(
            f"'memoranda {name}' does not work with a service ({invocation.url}). Run it on the machine of the "
            "service, without --url and MEMORANDA_URL."
        )
    if invocation.home or invocation.profile:
        invocation.fail("--home and --profile name a home on this machine, and --url another one. Use one of them.")
    with connect_for(invocation) as connected:
        try:
            handler(RemoteCommands(invocation, connected), **options)
        except SessionError as error:
            invocation.fail(str(error))
        except AccessError:
            if _read_key(invocation):
                raise
            invocation.fail(
                f"The service at {invocation.url} needs an API key: store yours with 'memoranda secret set "
                f"{KEY_VARIABLE}', or set the environment variable {KEY_VARIABLE}.",
                code=EXIT_UNUSABLE,
            )
    return None


def connect_for(invocation: Invocation) -> RemoteMemory:
    """Connects with the key in MEMORANDA_API_KEY, from the environment or `.env` of the home on this machine."""
    assert invocation.url is not None
    return connect(invocation.url, _read_key(invocation), user=invocation.user)


def _read_key(invocation: Invocation) -> str | None:
    return config.credentials(invocation.locate_home()).get(KEY_VARIABLE, "").strip() or None
