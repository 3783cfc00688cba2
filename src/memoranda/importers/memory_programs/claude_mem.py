"""Reads the observations and session summaries of claude-mem as notes, one session per project.

The prompts in its database are those of Claude Code, whose transcripts have the whole conversation; they are skipped.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import ImportItem, ReadEvent, Skipped
from memoranda.importers.source_databases import database_at, read_database, rows, tables

_PROGRAM = "claude-mem"
_FILE = "claude-mem.db"
_OBSERVED = ("title", "subtitle", "narrative", "text", "facts")
_SUMMARIZED = ("request", "investigated", "learned", "completed", "next_steps", "notes")
_KEPT = (
    "memory_session_id",
    "content_session_id",
    "sdk_session_id",
    "type",
    "concepts",
    "files_read",
    "files_modified",
)
_KINDS = {"observations": _OBSERVED, "session_summaries": _SUMMARIZED}


class ClaudeMem:
    name = _PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        path = Path.home() / ".claude-mem" if path is None else path
        found = database_at(path / _FILE, "database") or database_at(path, "database")
        return [found] if found else []

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        """Yield the observations, then the summaries, each by project and time."""
        return read_database(item, _PROGRAM, dict.fromkeys(_KINDS, ("id",)), _read)


def _read(connection: sqlite3.Connection) -> Iterator[ReadEvent]:
    found = tables(connection)
    for table, texts in _KINDS.items():
        if {"id", "project", "created_at_epoch"} <= found.get(table, set()):
            yield from _read_table(connection, table, texts, found[table])
    if "user_prompts" in found:
        (prompts,) = connection.execute("SELECT count(*) FROM user_prompts").fetchone()
        yield from (Skipped("prompt, which Claude Code has") for _ in range(min(prompts, 1_000_000)))


def _read_table(
    connection: sqlite3.Connection, table: str, texts: Sequence[str], columns: set[str]
) -> Iterator[ReadEvent]:
    wanted = [name for name in (*texts, *_KEPT) if name in columns]
    query = (
        f"SELECT id, project, created_at_epoch, {', '.join(wanted)} FROM {table} ORDER BY project, created_at_epoch, id"
    )
    for number, project, at, *values in rows(connection, query):
        row = dict(zip(wanted, values, strict=True))
        text = _text_of(row, texts)
        if not text:
            yield Skipped(f"row of {table} without text")
            continue
        yield notes_of(_PROGRAM, str(project), f"claude-mem: {project}")
        origin = {name: row[name] for name in _KEPT if row.get(name)}
        yield note(str(project), f"{table}/{number}", text, at, {"kind": table, **origin})


def _text_of(row: dict[str, Any], texts: Sequence[str]) -> str:
    lines = []
    for name in texts:
        value = _lines_of(row.get(name))
        if value and texts is _SUMMARIZED:
            value = f"{name.replace('_', ' ').capitalize()}: {value}"
        lines += [value] if value else []
    return "\n".join(lines)


def _lines_of(value: Any) -> str:
    """Return a text, or the lines of a list in JSON."""
    if not isinstance(value, str):
        return ""
    try:
        listed = json.loads(value) if value.startswith("[") else None
    except (ValueError, RecursionError):
        listed = None
    return "\n".join(f"- {entry}" for entry in listed) if isinstance(listed, list) else value.strip()
