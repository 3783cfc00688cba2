"""Sessions as JSON lines, one session per line: `memoranda sessions import`, and what `export` writes."""

import codecs
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option
from memoranda.cli.open_home import open_sessions
from memoranda.cli.progress_line import ProgressLine
from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.item_transfer import take_items
from memoranda.support.durable_files import write_private_parts

_PART_SIZE = 100_000
_SPACE = re.compile(r"\s*")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class NewFile(click.Path):
    """A path for a new file, in a directory that exists."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"There is no directory {str(path.parent)!r}.", param, ctx)
        if os.path.isfile(path):
            self.fail(
                f"{str(path)!r} already exists, and may be the only copy of something; name another file.", param, ctx
            )
        return path


def read_lines(db: SessionDB, session_ids: Sequence[str], progress: ProgressLine | None = None) -> Iterator[bytes]:
    """Reads sessions as lines of JSON, in parts of some thousand bytes, so that no session must fit into memory."""
    parts: list[str] = []
    size = 0
    for count, session_id in enumerate(session_ids):
        for part in db.transfer.export_line(session_id):
            parts.append(part)
            size += len(part)
            if size >= _PART_SIZE:
                yield "".join(parts).encode("utf-8", "surrogatepass")
                parts, size = [], 0
        if progress is not None and progress.is_due():
            progress.show(f"{count + 1:,} of {len(session_ids):,} sessions written")
    if parts:
        yield "".join(parts).encode("utf-8", "surrogatepass")


def read_items(db: SessionDB) -> Iterator[bytes]:
    """Reads the items as lines of JSON."""
    for line in db.item_transfer.export_lines():
        yield line.encode("utf-8", "surrogatepass")


def write_sessions(
    invocation: Invocation, db: SessionDB, session_ids: Sequence[str], path: Path, *, with_items: bool = False
) -> int:
    """Writes sessions, and items if asked, to a private file; when that fails or is interrupted, there is no file.

    Returns how many items there are.
    """
    progress = ProgressLine(visible=not invocation.as_json)
    items = 0

    def read_counted() -> Iterator[bytes]:
        nonlocal items
        yield from read_lines(db, session_ids, progress)
        for line in read_items(db) if with_items else ():
            items += 1
            yield line

    try:
        write_private_parts(path, read_counted())
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        progress.clear()
    return items


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@all_users_option
@memory_options
def import_file(file: Path, all_users: bool) -> None:
    """Import exported sessions, like 'memoranda import jsonl --source FILE --yes'. A second import adds nothing.

    FILE has one session per line, or is one JSON document: a session, or an array of sessions. Sessions of other users
    are imported with --all-users.
    """
    import_exported(Invocation.current(), file, all_users=all_users)


def import_exported(invocation: Invocation, file: Path, *, all_users: bool = False) -> None:
    """Imports exported sessions and reports the result. Existing messages do not change."""
    broken: list[dict[str, Any]] = []
    progress = ProgressLine(visible=not invocation.as_json)

    def show(count: int) -> None:
        if progress.is_due():
            progress.show(f"{count:,} sessions read")

    with open_sessions(invocation, everyone=all_users, create=True) as db:
        items: list[Any] = []
        report = db.import_sessions(take_items(read_sessions(file, broken), items), progress=show)
        added = db.item_transfer.import_items(items)
        db.index.catch_up()
        if items:
            db.item_index.catch_up()
    progress.clear()
    data: dict[str, Any] = {
        "imported": report.imported,
        "updated": report.updated,
        "skipped": report.skipped,
        "detached": report.detached,
        "renamed": report.renamed,
        "undated": report.undated,
        "messages": report.messages,
        "items": {"imported": added.imported, "updated": added.updated, "skipped": added.skipped},
        "errors": [*broken, *report.errors, *added.errors],
    }
    text = (
        f"Imported {len(report.imported):,} sessions, updated {len(report.updated):,}, left "
        f"{len(report.skipped):,} unchanged; {report.messages:,} messages are new."
    )
    if items:
        text += f"\nImported {added.imported:,} items, updated {added.updated:,}, left {added.skipped:,} unchanged."
    for session_id, title in report.renamed.items():
        text += f"\n{session_id} is called {title!r} here, because its title was taken."
    for session_id in report.detached:
        text += f"\n{session_id} has no parent here, because that session was not imported."
    if report.undated:
        text += f"\nSessions without any timestamp, dated now: {len(report.undated):,}."
    if data["errors"]:
        problems = [f"{_location(error)}: {error['error']}" for error in data["errors"][:10]]
        invocation.fail("\n".join([text, f"{len(data['errors'])} could not be read:", *problems]), data)
    invocation.respond(text, {"success": True, **data})


def _location(error: dict[str, Any]) -> str:
    if "line" in error:
        return f"line {error['line']}"
    return f"session {error['session_id'] or error['index']}" if "session_id" in error else f"item {error['index']}"


def read_sessions(file: Path, broken: list[dict[str, Any]]) -> Iterator[Any]:
    """Reads the sessions in a file; lines that cannot be read are added to `broken`."""
    with file.open("rb") as stream:
        start = stream.read(3)
        if start.startswith(_UTF_16):
            broken.append({"line": 1, "error": "the file is in UTF-16; save it in UTF-8"})
            return
        begin = 3 if start == codecs.BOM_UTF8 else stream.seek(0)
        whole = None
        if _spans_lines(stream):
            stream.seek(begin)
            whole = _read_whole(stream.read())
        stream.seek(begin)
        is_empty = True
        for value in _read_lines(stream, broken) if whole is None else whole:
            is_empty = False
            yield from value if isinstance(value, list) else [value]
    if is_empty and len(broken) > 1:
        # The file as a whole is wrong, so one error is enough.
        broken[:] = [broken[0] | {"error": f"{broken[0]['error']}, and no other line is a session either"}]


def _spans_lines(stream: BinaryIO) -> bool:
    """Whether the first line of a file is not JSON by itself, so that a value continues on the next one."""
    first = next((line for line in stream if line.strip()), b"{}")
    return _read_whole(first) is None


def _read_whole(text: bytes) -> list[Any] | None:
    """Reads the JSON values that follow each other in a text; None when it is not JSON."""
    values: list[Any] = []
    try:
        document = text.decode("utf-8", "surrogatepass").strip()
        position, decoder = 0, json.JSONDecoder()
        while position < len(document):
            value, position = decoder.raw_decode(document, position)
            values.append(value)
            space = _SPACE.match(document, position)
            position = space.end() if space else position
    except (ValueError, RecursionError):
        return None
    return values


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
