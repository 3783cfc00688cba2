"""Export and import of sessions as JSON lines, one session per line."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.opening import open_sessions
from memoranda.cli.sessions.naming import all_users_option, find_session
from memoranda.support.files import write_private


@click.command()
@click.argument("session", required=False)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, not to the terminal."
)
@click.option("--source", help="Only sessions from there.")
@all_users_option
@memory_options
def export(session: str | None, output: Path | None, source: str | None, all_users: bool) -> None:
    """Export one conversation or all of them as JSON lines, one session per line."""
    invocation = Invocation.current()
    with open_sessions(invocation, everyone=all_users) as db:
        if session is None:
            sessions: Iterable[Any] = db.iter_export(source)
        else:
            members = db.get_compression_lineage(find_session(invocation, db, session))
            sessions = map(db.export_session, members)
        lines = (json.dumps(each, ensure_ascii=False) for each in sessions)
        if output is None:
            for line in lines:
                # As bytes: half a character is kept here, and would be replaced on its way to a terminal.
                click.echo(line.encode("utf-8", "surrogatepass"))
            return
        count = write_sessions(output, lines)
    invocation.say(
        f"Exported {count:,} sessions to {output}.", {"success": True, "sessions": count, "path": str(output)}
    )


def write_sessions(path: Path, lines: Iterable[str]) -> int:
    """Write lines to a private file, all of them or none; how many."""
    text = [line.encode("utf-8", "surrogatepass") for line in lines]
    write_private(path, b"".join(line + b"\n" for line in text))
    return len(text)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@all_users_option
@memory_options
def import_file(file: Path, all_users: bool) -> None:
    """Import exported sessions. What is there already is left alone, so that a second import adds nothing."""
    invocation = Invocation.current()
    broken: list[dict[str, Any]] = []
    with open_sessions(invocation, everyone=all_users, create=True) as db:
        report = db.import_sessions(_read(file, broken), progress=_progress(invocation))
        db.index.catch_up()
    data = asdict(report)
    del data["new_ids"]
    data["errors"] = [*broken, *data["errors"]]
    text = (
        f"Imported {len(report.imported):,} sessions, brought {len(report.updated):,} up to date, left "
        f"{len(report.skipped):,} as they were; {report.messages:,} messages are new."
    )
    for session_id, title in report.renamed.items():
        text += f"\n{session_id} is called {title!r} here, because its title was taken."
    for session_id in report.detached:
        text += f"\n{session_id} stands alone, because its parent is not here."
    if data["errors"]:
        problems = [f"{_where(error)}: {error['error']}" for error in data["errors"][:10]]
        invocation.refuse("\n".join([text, f"{len(data['errors'])} could not be read:", *problems]), data)
    invocation.say(text, {"success": True, **data})


def _where(error: dict[str, Any]) -> str:
    return f"line {error['line']}" if "line" in error else f"session {error['session_id'] or error['index']}"


def _read(file: Path, broken: list[dict[str, Any]]) -> Iterator[Any]:
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                yield json.loads(line.decode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError) as error:
                broken.append({"line": number, "error": f"not JSON ({error})"})


def _progress(invocation: Invocation) -> Any:
    if invocation.as_json or not sys.stderr.isatty():
        return None

    def report(count: int) -> None:
        if count % 50 == 0:
            click.echo(f"{count:,} sessions read", err=True)

    return report
