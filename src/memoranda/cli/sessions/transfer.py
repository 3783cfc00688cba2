"""Export and import of sessions as JSON lines, one session per line."""

import codecs
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.open_home import open_sessions
from memoranda.cli.sessions.lookup import all_users_option, find_session
from memoranda.errors import StorageError
from memoranda.support.durable_files import write_private

_SPACE = re.compile(r"\s*")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NewFile(click.Path):
    """A file that is not there yet, in a directory that is."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"There is no directory {str(path.parent)!r}.", param, ctx)
        if os.path.isfile(path):
            self.fail(
                f"{str(path)!r} is there already, and may be the only copy of something; name another.", param, ctx
            )
        return path


@click.command()
@click.argument("session", required=False)
@click.option("--output", type=NewFile(), help="Write to this file, not to the terminal.")
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
    invocation.respond(
        f"Exported {count:,} sessions to {output}.", {"success": True, "sessions": count, "path": str(output)}
    )


def write_sessions(path: Path, lines: Iterable[str]) -> int:
    """Write lines to a private file, all of them or none; how many."""
    text = [line.encode("utf-8", "surrogatepass") for line in lines]
    try:
        write_private(path, b"".join(line + b"\n" for line in text))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    return len(text)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@all_users_option
@memory_options
def import_file(file: Path, all_users: bool) -> None:
    """Import exported sessions. What is there already is left alone, so that a second import adds nothing.

    FILE has one session per line, or is JSON as a whole: a session, or an array of them. Sessions of other users come
    in with --all-users.
    """
    invocation = Invocation.current()
    broken: list[dict[str, Any]] = []
    with open_sessions(invocation, everyone=all_users, create=True) as db:
        report = db.import_sessions(_read(file, broken), progress=_progress(invocation))
        db.index.catch_up()
    data = asdict(report)
    del data["new_ids"], data["repeating"]
    data["errors"] = [*broken, *data["errors"]]
    text = (
        f"Imported {len(report.imported):,} sessions, brought {len(report.updated):,} up to date, left "
        f"{len(report.skipped):,} as they were; {report.messages:,} messages are new."
    )
    for session_id, title in report.renamed.items():
        text += f"\n{session_id} is called {title!r} here, because its title was taken."
    for session_id in report.detached:
        text += f"\n{session_id} stands alone, because its parent is not here."
    if report.undated:
        text += f"\nDated now, because they came without any time: {len(report.undated):,}."
    if data["errors"]:
        problems = [f"{_where(error)}: {error['error']}" for error in data["errors"][:10]]
        invocation.fail("\n".join([text, f"{len(data['errors'])} could not be read:", *problems]), data)
    invocation.respond(text, {"success": True, **data})


def _where(error: dict[str, Any]) -> str:
    return f"line {error['line']}" if "line" in error else f"session {error['session_id'] or error['index']}"


def _read(file: Path, broken: list[dict[str, Any]]) -> Iterator[Any]:
    """The sessions in a file; what cannot be read is added to `broken`."""
    with file.open("rb") as stream:
        mark = stream.read(3)
        if mark.startswith(_UTF_16):
            broken.append({"line": 1, "error": "the file is in UTF-16; save it in UTF-8"})
            return
        begin = 3 if mark == codecs.BOM_UTF8 else stream.seek(0)
        whole = None
        if _goes_on_in_the_next_line(stream):
            stream.seek(begin)
            whole = _read_whole(stream.read())
        stream.seek(begin)
        is_empty = True
        for value in _read_lines(stream, broken) if whole is None else whole:
            is_empty = False
            yield from value if isinstance(value, list) else [value]
    if is_empty and len(broken) > 1:
        # One thing is wrong with such a file, not every line of it.
        broken[:] = [broken[0] | {"error": f"{broken[0]['error']}, and no other line is a session either"}]


def _goes_on_in_the_next_line(stream: BinaryIO) -> bool:
    """Whether the first line of a file that says something is not JSON by itself."""
    first = next((line for line in stream if line.strip()), b"{}")
    return _read_whole(first) is None


def _read_whole(text: bytes) -> list[Any] | None:
    """What stands in a text one after the other; None when it is not JSON."""
    found: list[Any] = []
    try:
        words = text.decode("utf-8", "surrogatepass").strip()
        place, decoder = 0, json.JSONDecoder()
        while place < len(words):
            value, place = decoder.raw_decode(words, place)
            found.append(value)
            space = _SPACE.match(words, place)
            place = space.end() if space else place
    except (ValueError, RecursionError):
        return None
    return found


def _read_lines(stream: BinaryIO, broken: list[dict[str, Any]]) -> Iterator[Any]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            broken.append({"line": number, "error": f"not JSON ({error})"})
            continue
        if isinstance(value, dict | list):
            yield value
        else:
            broken.append({"line": number, "error": f"not a session but {json.dumps(value)[:60]}"})


def _progress(invocation: Invocation) -> Any:
    if invocation.as_json or not sys.stderr.isatty():
        return None

    def report(count: int) -> None:
        if count % 50 == 0:
            click.echo(f"{count:,} sessions read", err=True)

    return report
