"""`memoranda sessions export`: conversations as JSON lines for programs, or as Markdown or HTML for people."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from memoranda.cli.completers import complete_session
from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.filter_options import all_users_option, since_option, until_option
from memoranda.cli.open_home import open_sessions
from memoranda.cli.progress_line import ProgressLine
from memoranda.cli.sessions.lookup import find_session
from memoranda.cli.sessions.transfer import NewFile, read_items, read_lines, write_sessions
from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.support.durable_files import write_private_parts
from memoranda.upkeep.transcripts.conversation import Conversation, read_conversations

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


class NewFileOrDirectory(NewFile):
    """A path for a new file, or a directory that exists."""

    def __init__(self) -> None:
        super().__init__()
        self.dir_okay = True


@click.command(epilog=_EPILOG)
@click.argument("session", nargs=-1, shell_complete=complete_session)
@click.option(
    "--format", "file_format", type=click.Choice(["jsonl", "md", "html"]), default="jsonl", show_default=True,
    help="jsonl: everything, for 'sessions import'. md, html: to read.",
)  # fmt: skip
@click.option("--output", type=NewFileOrDirectory(), help="Write to this file; md and html also into a directory.")
@click.option("--source", help="Only sessions from this source.")
@since_option
@until_option
@all_users_option
@memory_options
def export(
    session: tuple[str, ...], file_format: str, output: Path | None, source: str | None, since: float | None,
    until: float | None, all_users: bool,
) -> None:  # fmt: skip
    """Export conversations: those that you name, or all of them.

    As JSON lines, the export has one session per line, and one item per line if it is of everything. As Markdown or
    HTML, it is one document that other programs show: nothing in it is executed or loaded. In a directory, each
    conversation gets a file.
    """
    invocation = Invocation.current()
    narrowed = source is not None or since is not None or until is not None
    if session and narrowed:
        raise click.UsageError("Name sessions, or choose them with --source, --since and --until.")
    if output is not None and os.path.isdir(output) and file_format == "jsonl":
        raise click.UsageError(f"{output} is a directory; JSON lines are written to one file.")
    with open_sessions(invocation, everyone=all_users) as db:
        members = _chosen(invocation, db, session, source, since, until)
        if file_format == "jsonl":
            # An export of everything has the items as well, which belong to no session.
            _export_lines(invocation, db, members, output, with_items=not session and not narrowed)
        else:
            _export_documents(invocation, list(read_conversations(db, members)), file_format, output)


def _chosen(
    invocation: Invocation,
    db: SessionDB,
    names: Sequence[str],
    source: str | None,
    since: float | None,
    until: float | None,
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
    progress = ProgressLine(visible=not invocation.as_json)
    documents = _documents(conversations, file_format, output)
    try:
        for count, (path, contents) in enumerate(documents, start=1):
            write_private_parts(path, (part.encode() for part in render(contents)))
            if progress.is_due():
                progress.show(f"{count:,} of {len(documents):,} files written")
    except OSError as error:
        raise StorageError(f"{error.filename or output} cannot be written: {error.strerror}.") from error
    finally:
        progress.clear()
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
        from memoranda.upkeep.transcripts.html import render_html  # noqa: PLC0415

        return render_html
    from memoranda.upkeep.transcripts.markdown import render_markdown  # noqa: PLC0415

    return render_markdown
