"""`memoranda sessions export` and `import`, and `memoranda forget`, at a service."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from memoranda.api.client import RemoteMemory
from memoranda.cli.confirmation import PlannedChange, confirm_and_run
from memoranda.cli.context import Invocation
from memoranda.cli.progress_line import ProgressLine
from memoranda.cli.remote.refusals import refuse_options
from memoranda.cli.sessions.transfer import read_sessions
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import StorageError
from memoranda.support.durable_files import write_private_parts

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
    **other: Any,
) -> None:
    refuse_options(invocation, other)
    if session or file_format != "jsonl":
        invocation.fail("A service exports all conversations, or those of one --source, as JSON lines.")
    progress = ProgressLine(visible=not invocation.as_json and output is not None)
    counts = {"sessions": 0, "items": 0}

    def read_lines() -> Iterator[bytes]:
        for line in memory.export(source):
            counts["sessions" if "id" in line else "items"] += 1
            if progress.is_due():
                progress.show(f"{counts['sessions']:,} sessions written")
            yield json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    if output is None:
        for part in read_lines():
            # As bytes, because text output would replace lone surrogates.
            click.echo(part, nl=False)
        return
    try:
        write_private_parts(output, read_lines())
    except OSError as error:
        raise StorageError(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        progress.clear()
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
