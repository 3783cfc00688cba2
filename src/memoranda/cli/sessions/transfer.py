"""`memoranda sessions import` and `export`: JSON lines, one session per line, or Markdown or HTML for people."""

import codecs
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import click

from memoranda.cli.completion import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, since_option, until_option, without_none
from memoranda.cli.open_home import open_sessions
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.terminal_text import ProgressLine
from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.transfer.items import is_item, take_items
from memoranda.support.durable_files import make_private_directory, write_private_parts
from memoranda.upkeep.transcripts import Conversation, read_conversations

_PART_SIZE = 100_000
_SPACE = re.compile(r"\s*")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_MAX_NAME_CHARS = 60
_EPILOG = """\b
Examples:
  memoranda sessions export --output past.jsonl
  memoranda sessions export "Fix the build" --format md
  memoranda sessions export --format html --since 30d --output month.html
  memoranda sessions export --format md --output notes/
"""
Render = Callable[[Iterable[Conversation]], Iterator[str]]


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
        if progress is not None:
            progress.update(f"{count + 1:,} of {len(session_ids):,} sessions written")
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
    items = 0

    def read_counted(progress: ProgressLine) -> Iterator[bytes]:
        nonlocal items
        yield from read_lines(db, session_ids, progress)
        for line in read_items(db) if with_items else ():
            items += 1
            yield line

    with ProgressLine(visible=not invocation.as_json) as progress:
        write_new_file(path, read_counted(progress))
    return items


def write_new_file(path: Path, parts: Iterable[bytes]) -> None:
    """Writes a private file; raises with the reason when that is not possible."""
    try:
        write_private_parts(path, parts)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@all_users_option
@memory_options
def import_file(invocation: Invocation, file: Path, all_users: bool) -> None:
    """Import exported sessions, like 'memoranda import jsonl --source FILE --yes'. A second import adds nothing.

    FILE has one session per line, or is one JSON document: a session, or an array of sessions. Sessions of other users
    are imported with --all-users. 'memoranda import undo' does not cover it: --json lists the ids that are new as
    "imported", and 'memoranda sessions delete' removes them.
    """
    import_exported(invocation, file, all_users=all_users)


def import_exported(invocation: Invocation, file: Path, *, all_users: bool = False) -> None:
    """Imports exported sessions and reports the result. Existing messages do not change."""
    broken: list[dict[str, Any]] = []
    with (
        open_sessions(invocation, everyone=all_users, create=True) as db,
        ProgressLine(visible=not invocation.as_json) as progress,
    ):
        items: list[Any] = []
        lines: list[int] = []
        sessions = take_items(read_sessions(file, broken, lines), items)
        report = db.import_sessions(sessions, progress=lambda count: progress.update(f"{count:,} sessions read"))
        added = db.item_transfer.import_items(items)
        db.index.catch_up()
        if items:
            db.item_index.catch_up()
    refused = [error | ({"line": lines[error["index"]]} if lines else {}) for error in report.errors]
    errors = sorted([*broken, *refused], key=lambda error: error.get("line", 0))
    data: dict[str, Any] = {
        "imported": report.imported,
        "updated": report.updated,
        "skipped": report.skipped,
        "detached": report.detached,
        "renamed": report.renamed,
        "undated": report.undated,
        "messages": report.messages,
        "items": {"imported": added.imported, "updated": added.updated, "skipped": added.skipped},
        "errors": [*errors, *added.errors],
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
    number = error["index"] + 1
    return f"session {error['session_id'] or number}" if "session_id" in error else f"item {number}"


def read_sessions(file: Path, broken: list[dict[str, Any]], lines: list[int] | None = None) -> Iterator[Any]:
    """Reads the sessions in a file; lines that cannot be read are added to `broken`.

    `lines` gets the line of each session, unless the file is JSON as a whole.
    """
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
        for number, value in _read_lines(stream, broken) if whole is None else ((0, value) for value in whole):
            is_empty = False
            for each in value if isinstance(value, list) else [value]:
                if number and lines is not None and not is_item(each):
                    lines.append(number)
                yield each
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


def _read_lines(stream: BinaryIO, broken: list[dict[str, Any]]) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError) as error:
            broken.append({"line": number, "error": f"not JSON ({error})"})
            continue
        if isinstance(value, dict | list):
            yield number, value
        else:
            broken.append({"line": number, "error": f"not a session but {json.dumps(value)[:60]}"})


class NewFileOrDirectory(NewFile):
    """A path for a new file, or a directory; one that ends with a slash is made if it is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.dir_okay = True

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if str(value).endswith("/"):
            try:
                make_private_directory(Path(value))
            except OSError as error:
                self.fail(f"{value} cannot be made: {error.strerror}.", param, ctx)
        return super().convert(value, param, ctx)


def file_for_lines(output: Path) -> Path:
    """The file for JSON lines: `output`, or a new file in it if it is a directory."""
    return NewFile().convert(output / "conversations.jsonl", None, None) if os.path.isdir(output) else output


@click.command(epilog=_EPILOG)
@click.argument("session", nargs=-1, shell_complete=complete_session)
@click.option(
    "-f", "--format", "file_format", type=click.Choice(["jsonl", "md", "html"]), default="jsonl", show_default=True,
    help="jsonl: everything, for 'sessions import'. md, html: to read.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=NewFileOrDirectory(), help="Write to this file, or into a directory; DIR/ makes it."
)
@click.option("--all", "everything", is_flag=True, help="All conversations, as without a name.")
@click.option("--source", help="Only sessions from this source.")
@since_option
@until_option
@all_users_option
@memory_options
def export(
    invocation: Invocation, session: tuple[str, ...], file_format: str, output: Path | None, everything: bool,
    all_users: bool, **options: Any,
) -> None:  # fmt: skip
    """Export conversations: those that you name, or all of them.

    As JSON lines, the export has one session per line, and one item per line if it is of everything. As Markdown or
    HTML, it is one document that other programs show: nothing in it is executed or loaded. In a directory, each
    conversation gets a file; JSON lines are one, conversations.jsonl.
    """
    narrowing = without_none(options)
    if (bool(session), bool(narrowing), everything).count(True) > 1:
        raise click.UsageError("Name sessions, or choose them with --source, --since and --until, or take --all.")
    if output is not None and file_format == "jsonl":
        output = file_for_lines(output)
    with open_sessions(invocation, everyone=all_users) as db:
        members = _chosen(invocation, db, session, **narrowing)
        if file_format == "jsonl":
            # An export of everything has the items as well, which belong to no session.
            _export_lines(invocation, db, members, output, with_items=not session and not narrowing)
        else:
            _export_documents(invocation, list(read_conversations(db, members)), file_format, output)


def _chosen(
    invocation: Invocation,
    db: SessionDB,
    names: Sequence[str],
    source: str | None = None,
    since: float | None = None,
    until: float | None = None,
) -> list[str]:
    """The sessions to export; of a conversation, all of them."""
    if names:
        found = [find_session(invocation, db, name) for name in names]
        return list(dict.fromkeys(member for each in found for member in db.get_compression_lineage(each)))
    ids = db.transfer.exported_ids(source)
    if since is None and until is None:
        return ids
    return [session_id for session_id in ids if _is_between(db.get_session(session_id), since, until)]


def _is_between(row: dict[str, Any] | None, since: float | None, until: float | None) -> bool:
    return (
        row is not None
        and (since is None or row["last_active"] >= since)
        and (until is None or row["started_at"] < until)
    )


def _export_lines(
    invocation: Invocation, db: SessionDB, members: Sequence[str], output: Path | None, *, with_items: bool
) -> None:
    if output is None:
        for part in chain(read_lines(db, members), read_items(db) if with_items else ()):
            # As bytes, because text output would replace lone surrogates.
            click.echo(part, nl=False)
        return
    items = write_sessions(invocation, db, members, output, with_items=with_items)
    also = f" and {items:,} items" if items else ""
    invocation.respond(
        f"Exported {len(members):,} sessions{also} to {output}.",
        {"success": True, "sessions": len(members), "items": items, "path": str(output)},
    )


def _export_documents(
    invocation: Invocation, conversations: Sequence[Conversation], file_format: str, output: Path | None
) -> None:
    render = _renderer(file_format)
    if not conversations:
        invocation.fail("There are no conversations to export. 'memoranda sessions list' shows what there is.")
    if output is None:
        for part in render(conversations):
            click.echo(part.encode(), nl=False)
        return
    documents = _documents(conversations, file_format, output)
    with ProgressLine(visible=not invocation.as_json) as progress:
        for count, (path, contents) in enumerate(documents, start=1):
            write_new_file(path, (part.encode() for part in render(contents)))
            progress.update(f"{count:,} of {len(documents):,} files written")
    files = [str(path) for path, _ in documents]
    word = "conversation" if len(conversations) == 1 else "conversations"
    invocation.respond(
        f"Exported {len(conversations):,} {word} to {output}.",
        {"success": True, "conversations": len(conversations), "path": str(output), "files": files},
    )


def _documents(
    conversations: Sequence[Conversation], file_format: str, output: Path
) -> list[tuple[Path, Sequence[Conversation]]]:
    """The files to write, each with its conversations; files that exist get another name."""
    if not os.path.isdir(output):
        return [(output, conversations)]
    taken = {path.name for path in output.iterdir()}
    documents: list[tuple[Path, Sequence[Conversation]]] = []
    for conversation in conversations:
        name = _file_name(conversation, file_format, taken)
        taken.add(name)
        documents.append((output / name, [conversation]))
    return documents


def _file_name(conversation: Conversation, file_format: str, taken: set[str]) -> str:
    started = conversation.facts.get("started", "")[:10]
    words = _NOT_IN_NAMES.sub("-", conversation.title)[:_MAX_NAME_CHARS].strip("-.")
    stem = "-".join(part for part in (started, words) if part) or "conversation"
    name, number = f"{stem}.{file_format}", 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}.{file_format}"
    return name


def _renderer(file_format: str) -> Render:
    if file_format == "html":
        from memoranda.upkeep.transcripts import render_html  # noqa: PLC0415

        return render_html
    from memoranda.upkeep.transcripts import render_markdown  # noqa: PLC0415

    return render_markdown
