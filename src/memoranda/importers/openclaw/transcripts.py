"""Converts the events of an OpenClaw transcript to messages, and reads those of the database of one agent.

Every version writes the same kinds of events: first one of type `session`, then `message`, `compaction`,
`model_change` and others. Databases replaced the files in the summer of 2026.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import get_text, parse_timestamp
from memoranda.importers.pi_messages import blocks_text, convert_message
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_databases import open_database
from memoranda.importers.zstandard import MISSING_LIBRARY, unpack
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass

Event = dict[str, Any]
FILE_NAME = "openclaw-agent.sqlite"
_HELP = f"{MISSING_LIBRARY}, and import again"


@dataclass(slots=True)
class EventThread:
    """One session: converts its events, and collects what they say about the session."""

    host_id: str
    title: str | None = None
    model: str | None = None
    directory: str | None = None
    started_at: float | None = None
    parent: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    _yielded: ImportedConversation | None = None

    def convert(self, event: Event, line: int | None, raw: bytes, index: int) -> Iterator[ReadEvent]:
        """Yield the message of an event, or `Skipped`; `index` distinguishes equal lines."""
        kind = event.get("type")
        self._learn(event, kind)
        message = _message_of(event, kind)
        if message is None:
            yield Skipped(_label(event, kind))
            return
        yield from self._conversation()
        message["external_id"] = _external_id(event, raw, index)
        message["timestamp"] = _timestamp(event)
        yield ImportedMessage(message, line)

    def finish(self) -> Iterator[ReadEvent]:
        """Yield the conversation again if something became known after the last message."""
        if self._yielded is not None:
            yield from self._conversation()

    def _conversation(self) -> Iterator[ReadEvent]:
        known = ImportedConversation(
            self.host_id, self.title, self.model, self.directory, self.started_at,
            parent_host_id=self.parent, relation="branch" if self.parent else None, extra=dict(self.extra),
        )  # fmt: skip
        if known != self._yielded:
            self._yielded = known
            yield known

    def _learn(self, event: Event, kind: Any) -> None:
        if kind == "session":
            self.directory = get_text(event, "cwd") or self.directory
            self.started_at = parse_timestamp(event.get("timestamp")) or self.started_at
            parent = get_text(event, "parentSession")
            # The path of the file that the session was branched from, or that session's id.
            self.parent = parent.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl") if parent else self.parent
        elif kind == "session_info":
            self.title = get_text(event, "name") or self.title
        elif kind == "model_change":
            self.model = self.model or get_text(event, "modelId")
        elif kind == "message":
            message = event.get("message")
            self.model = self.model or get_text(message, "model")


def _message_of(event: Event, kind: Any) -> dict[str, Any] | None:
    """Return the message of an event in chat form; None when it has none."""
    message = event.get("message")
    if kind == "message" and isinstance(message, dict):
        return convert_message(message)
    if kind == "custom_message" and (text := blocks_text(event.get("content"))):
        return {"role": "system", "content": text}
    if kind in ("compaction", "branch_summary") and (summary := get_text(event, "summary")):
        return {"role": "user", "content": summary, "is_summary": True}
    return None


def _label(event: Event, kind: Any) -> str:
    custom = event.get("customType")
    name = str(kind or "without type")[:40]
    return f"{name} ({custom[:40]})" if isinstance(custom, str) else name


def _external_id(event: Event, raw: bytes, index: int) -> str:
    """Return the event's id; in the oldest transcripts, which have none, an id made from content and index."""
    found = event.get("id")
    if isinstance(found, str) and found:
        return found
    return f"{index}-{hashlib.sha256(raw.rstrip()).hexdigest()[:16]}"


def _timestamp(event: Event) -> Any:
    """Return when the event was written; without that, when its message was sent."""
    message = event.get("message")
    return event.get("timestamp") or (message.get("timestamp") if isinstance(message, dict) else None)


def read_database(item: ImportItem, session_id: str | None = None) -> Iterator[ReadEvent]:
    """Yield every session of a database, or one of them, event by event."""
    still_packed = 0
    try:
        # Keeps the original bytes, because events without an id are identified by them.
        with open_database(item.file, "surrogateescape") as connection:
            columns = _columns(connection, "transcript_events")
            if not columns:
                # An unused agent, or a version that kept its transcripts in files.
                return
            for wanted in _sessions(connection) if session_id is None else [session_id]:
                for event in _read_session(connection, item.file, wanted, columns):
                    still_packed += isinstance(event, Problem) and event.text.endswith(_HELP)
                    yield event
    except OSError as error:
        yield Problem(item.file, None, f"the database cannot be read: {error}", unread=True)
    if still_packed:
        # An error marks the item as unread, so the next import reads it although it has not changed.
        raise ValueError(f"{still_packed:,} of its events could not be decompressed")


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _sessions(connection: sqlite3.Connection) -> list[str]:
    """Return the sessions in the order in which they started."""
    rows = connection.execute("SELECT session_id FROM transcript_events GROUP BY session_id ORDER BY min(created_at)")
    return [row[0] for row in rows]


def _read_session(
    connection: sqlite3.Connection, file: Path, session_id: str, columns: set[str]
) -> Iterator[ReadEvent]:
    thread = _new_thread(connection, session_id)
    packed = "event_zstd" if "event_zstd" in columns else "NULL"
    rows = connection.execute(
        f"SELECT seq, event_json, {packed} FROM transcript_events WHERE session_id = ? ORDER BY seq", (session_id,)
    )
    for seq, plain, frame in rows:
        event = _parse_event(plain, frame)
        if isinstance(event, str):
            yield Problem(file, None, f"event {seq} of session {session_id}: {event}")
        else:
            yield from thread.convert(event[0], None, event[1], seq)
    yield from thread.finish()


def _parse_event(plain: str | None, frame: bytes | None) -> tuple[dict[str, Any], bytes] | str:
    """Return an event with its bytes, or what is wrong with it."""
    try:
        raw = plain.encode("utf-8", "surrogateescape") if plain is not None else unpack(frame or b"")
        if raw is None:
            return _HELP
        value = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return f"not JSON ({str(error)[:100]})"
    return (value, raw) if isinstance(value, dict) else f"a JSON object is expected, not {type(value).__name__}"


def _new_thread(connection: sqlite3.Connection, session_id: str) -> EventThread:
    """Return a session with the fields of its row; every version stores a little more."""
    thread = EventThread(session_id)
    windows = _row(connection, "session_windows", "session_id", session_id) or _row(
        connection, "sessions", "session_id", session_id
    )
    node = _row(connection, "session_nodes", "session_key", windows.get("session_key"))
    entry = parse_object(node.get("entry_json")) or {}
    titles = [node.get("label"), entry.get("label"), node.get("display_name"), windows.get("display_name")]
    thread.title = next((title for title in titles if isinstance(title, str) and title.strip()), None)
    thread.model = windows["model"] if isinstance(windows.get("model"), str) else None
    thread.started_at = parse_timestamp(windows.get("started_at") or windows.get("created_at"))
    if isinstance(windows.get("previous_session_id"), str):
        thread.parent = windows["previous_session_id"]
    for name, value in (("session_key", windows.get("session_key")), ("channel", windows.get("channel"))):
        if isinstance(value, str) and value:
            thread.extra[name] = value
    return thread


def _row(connection: sqlite3.Connection, table: str, key: str, value: Any) -> dict[str, Any]:
    if value is None or key not in _columns(connection, table):
        return {}
    cursor = connection.execute(f"SELECT * FROM {table} WHERE {key} = ? LIMIT 1", (value,))
    row = cursor.fetchone()
    return dict(zip([name for name, *_ in cursor.description], row, strict=True)) if row else {}
