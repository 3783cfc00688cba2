"""Exports and imports whole sessions as plain JSON objects.

An exported session has its columns and `messages`, each with its own columns, including messages that compression
removed from the context but not rewound ones. The latest session of a conversation also has its list of tasks, `todos`.
Importing the same session twice adds nothing; a session that has grown since then gets its new messages.
"""

import json
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from memoranda.errors import SessionError, TakenSessionError
from memoranda.memory.record.checksums import resealed
from memoranda.memory.record.copies import JOIN_ORIGINAL, read_columns
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import (
    REDACTED,
    WRITTEN,
    dump_json,
    encode,
    encode_number,
    recount,
    renumber_references,
    require_storable,
    seconds,
    strip_references,
)
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.schema import SESSIONS
from memoranda.memory.record.session_list import COSTS, COUNTERS, FACTS
from memoranda.memory.record.sessions import (
    COLUMNS,
    RELATIONS,
    TODOS,
    Sessions,
    Titles,
    add_version,
    check_new,
    insert_session,
    read_todos,
)
from memoranda.memory.record.store_part import StoredName, StorePart, count_redactions
from memoranda.memory.record.system_prompts import select_list, update_columns
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows
from memoranda.storage.schema import Column
from memoranda.support.lazy_dataclass import dataclass

_CHUNK = 32
_NONE = -(2**63)


class ImportedIds:
    """A map from old ids to new ones that takes about ten bytes for an id of a whole store, where a dict takes 130."""

    def __init__(self) -> None:
        self._chunks: dict[int, array[int]] = {}

    def __setitem__(self, old: int, new: int) -> None:
        number, index = divmod(old, _CHUNK)
        chunk = self._chunks.get(number)
        if chunk is None:
            chunk = self._chunks[number] = array("q", [_NONE] * _CHUNK)
        chunk[index] = new

    def get(self, old: int) -> int | None:
        """The new id of a message; None if it was not imported."""
        number, index = divmod(old, _CHUNK)
        chunk = self._chunks.get(number)
        return None if chunk is None or chunk[index] == _NONE else chunk[index]


# These columns identify sessions; they contain no prose and are stored as names.
_IDENTIFYING = ("id", "parent_session_id", "source", "user_id", "relation", "project")
# The store computes these columns itself: they link rows of this store.
_DERIVED = (
    "conversation_id",
    "successor_id",
    "message_count",
    "own_message_count",
    "tool_call_count",
    "last_active",
    "active_hour",
)
# Columns that are known only later, and columns that grow.
_LATER = ("ended_at", "end_reason", "model", "system_prompt", *FACTS[1:])
_GROWING = (*COUNTERS, *COSTS)


@dataclass(slots=True)
class ImportReport:
    """The result of an import: `errors` says what was refused and why; sessions in `undated` got the current time."""

    imported: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    undated: list[str] = field(default_factory=list)
    messages: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    new_ids: ImportedIds = field(default_factory=ImportedIds, repr=False)
    pending_copies: list[tuple[int, int]] = field(default_factory=list, repr=False)
    """Copies in this store, each with the id of its original in the other store, which was not imported yet."""

    @property
    def ok(self) -> bool:
        return not self.errors


class Transfer(StorePart):
    """Exports and imports sessions. Calls `on_import` after every import, when its transactions are durable."""

    def __init__(
        self, sessions: Sessions, messages: Messages, titles: Titles, on_import: Callable[[], object] | None = None
    ) -> None:
        super().__init__(*messages.common)
        self._sessions = sessions
        self._messages = messages
        self._titles = titles
        self._on_import = on_import

    def export_session(self, session_id: str) -> dict[str, Any] | None:
        """A session and its messages as JSON values; None if it does not exist."""
        session_id = self._stored_name(session_id)
        session = self._export_head(session_id)
        if session is None:
            return None
        return session | {"messages": self._messages.get_messages(session_id, include_inactive=True)}

    def export_line(self, session_id: str) -> Iterator[str]:
        """The same as one line of JSON, in parts that need little memory however long the session is."""
        session_id = self._stored_name(session_id)
        session = self._export_head(session_id)
        if session is None:
            return
        yield f'{json.dumps(session, ensure_ascii=False)[:-1]}, "messages": ['
        separator = ""
        for message in self._messages.iter_messages(session_id):
            yield separator + json.dumps(message, ensure_ascii=False)
            separator = ", "
        yield "]}\n"

    def exported_ids(self, source: str | None = None) -> list[str]:
        """The ids of the sessions that `iter_export` exports, in its order."""
        source = self._stored_name(source)
        condition, values = self._in_scope, [*self._scope.values]
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        rows = self._fetch_all(f"SELECT id FROM sessions WHERE {condition} ORDER BY started_at, id", values)
        return [row[0] for row in rows]

    def _export_head(self, session_id: str) -> dict[str, Any] | None:
        """A session without its messages."""
        session = self._sessions.get_session(session_id)
        if session is not None and session["successor_id"] is None:
            session |= self._export_todos(session_id)
        return session

    def export_all(self, source: str | None = None) -> list[dict[str, Any]]:
        """Every session in scope; use `iter_export` for stores that do not fit into memory."""
        return list(self.iter_export(source))

    def iter_export(self, source: str | None = None) -> Iterator[dict[str, Any]]:
        """Every session in scope, one at a time, parents before their children."""
        for session_id in self.exported_ids(source):
            exported = self.export_session(session_id)
            if exported is not None:
                yield exported

    def import_sessions(
        self, sessions: Iterable[Mapping[str, Any]], progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Import exported sessions, each in one transaction; reports an invalid one and continues with the others."""
        report = ImportReport()
        waiting: list[tuple[int, Mapping[str, Any]]] = []
        index = -1
        for index, session in enumerate(sessions):
            # A child may come before its parent; it waits until everything else is imported.
            if self._is_early(session):
                waiting.append((index, session))
            else:
                self._import(index, session, report)
            if progress is not None:
                progress(index + 1)
        while waiting:
            ready = [item for item in waiting if not self._is_early(item[1])] or waiting
            waiting = [item for item in waiting if item not in ready]
            for index, session in ready:
                self._import(index, session, report)
        self._link_copies(report)
        if self._on_import is not None:
            self._on_import()
        return report

    def _export_todos(self, session_id: str) -> dict[str, Any]:
        with self._engine.reading() as connection:
            todos = read_todos(self._dialect, connection, session_id)
        return {} if todos is None else {TODOS: todos}

    def _link_copies(self, report: ImportReport) -> None:
        """Set `copy_of` of copies that were imported before their originals."""
        late = [
            (number, original)
            for number, copied in report.pending_copies
            if (original := report.new_ids.get(copied)) is not None
        ]
        if not late:
            return
        with self._engine.writing() as connection:
            for number, original in late:
                with resealed(connection, [number]):
                    (session_id,) = connection.execute(
                        "UPDATE messages SET copy_of = ?, external_id = NULL WHERE id = ? RETURNING session_id",
                        (original, number),
                    ).fetchone()
                recount(connection, session_id)
                note_change(connection, session_id, number)

    def _is_early(self, session: Any) -> bool:
        parent = session.get("parent_session_id") if isinstance(session, Mapping) else None
        return isinstance(parent, str) and self._sessions.get_session(parent) is None

    def _import(self, index: int, session: Any, report: ImportReport) -> None:
        try:
            self._import_session(_check_session(session), report)
        except SessionError as error:
            name = self._stored_name(session.get("id")) if isinstance(session, Mapping) else None
            report.errors.append(
                {"index": index, "session_id": name if isinstance(name, str) else None, "error": str(error)}
            )

    def _import_session(self, session: Mapping[str, Any], report: ImportReport) -> None:
        session_id: StoredName = self._stored_name(session["id"])
        user = self._sessions.own_user(session.get("user_id"))
        identifying = {key: self._stored_name(session[key]) for key in _IDENTIFYING if key in session}
        clean, redacted = self._redact(
            {key: value for key, value in session.items() if key != "messages" and key not in identifying}
        )
        clean |= identifying
        rows = []
        messages = session["messages"]
        for message, (clean_message, count) in zip(messages, self._messages.redact_all(messages), strict=True):
            redacted += count
            rows.append((message.get("id"), clean_message))
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            existing = connection.execute(
                "SELECT user_id, started_at FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            if existing is not None and not self._scope.covers(existing[0]):
                raise TakenSessionError(f"The session id {session_id!r} is taken.")
            dated = _start_time(session, None if existing is None else existing[1])
            start = time.time() if dated is None else dated
            if existing is None:
                self._add_session(connection, clean | {"started_at": start}, user, report)
            added = self._add_messages(connection, session_id, rows, start, report)
            if added or existing is None:
                recount(connection, session_id)
                note_change(connection, session_id)
            if isinstance(clean.get(TODOS), list) and (added or existing is None):
                add_version(connection, session_id, clean[TODOS])
            filled = existing is not None and self._fill_session(connection, clean, report)
            changed = bool(added or filled or existing is None)
            count_redactions(connection, redacted if changed else 0)
        report.messages += added
        report.undated += [session_id] if dated is None else []
        (report.imported if existing is None else report.updated if changed else report.skipped).append(session_id)

    def _fill_session(self, connection: Connection, session: Mapping[str, Any], report: ImportReport) -> bool:
        """Fill the empty columns of our session from the imported one; return whether anything changed."""
        session_id = session["id"]
        names = ("title", "last_active", *_LATER, *_GROWING)
        ours = dict(zip(names, connection.execute(
            f"SELECT {select_list(names)} FROM sessions WHERE id = ?", (session_id,)
        ).fetchone(), strict=True))  # fmt: skip
        theirs = {name: value for name in (*_LATER, *_GROWING) if (value := session.get(name)) is not None}
        new = {name: theirs[name] for name in _LATER if name in theirs and ours[name] is None}
        new |= {name: theirs[name] for name in _GROWING if name in theirs and theirs[name] > (ours[name] or 0)}
        if new.get("ended_at", ours["last_active"]) < ours["last_active"]:
            # The session has continued in this store since then.
            new = {name: value for name, value in new.items() if name not in ("ended_at", "end_reason")}
        if new:
            update_columns(self._engine, connection, session_id, new)
        if session.get("title") and ours["title"] is None:
            self._set_title(connection, session_id, session["title"], report)
            return True
        return bool(new)

    def _add_session(
        self, connection: Connection, session: Mapping[str, Any], user: str | None, report: ImportReport
    ) -> None:
        session_id, parent = session["id"], session.get("parent_session_id")
        if parent is not None and not self._exists(connection, parent):
            report.detached.append(session_id)
            parent = None
        relation = session.get("relation") if session.get("relation") in RELATIONS else None
        lineage = self._sessions.lineage_columns(connection, session_id, session["source"], parent, relation)
        values = {name: session.get(name) for name in COLUMNS if name not in _DERIVED and name != "extra"}
        known = {*COLUMNS, "messages", TODOS} - {"extra"}
        extra = {name: value for name, value in session.items() if name not in known}
        values |= lineage | {
            "user_id": user,
            "title": None,
            "extra": dump_json(extra) if extra else None,
            "model_config": None if values["model_config"] is None else dump_json(values["model_config"]),
        }
        insert_session(self._engine, connection, values)
        if session.get("title"):
            self._set_title(connection, session_id, session["title"], report)

    def _set_title(self, connection: Connection, session_id: StoredName, title: str, report: ImportReport) -> None:
        try:
            self._titles.claim_title(connection, session_id, title)
        except SessionError:
            # Another session has the title, or it is too long.
            free = self._titles.next_title(connection, title[:80])
            self._titles.claim_title(connection, session_id, free)
            report.renamed[session_id] = free

    def _add_messages(
        self,
        connection: Connection,
        session_id: StoredName,
        rows: list[tuple[Any, Mapping[str, Any]]],
        started_at: float,
        report: ImportReport,
    ) -> int:
        """Add the messages that the session does not have, and return how many.

        The external id identifies a message; without one its content and time do, and its time if it was redacted here.
        """
        new_ids = report.new_ids
        existing = _existing_messages(connection, session_id)
        added = 0
        for old_id, message in rows:
            copied = message.get("copy_of")
            # If the original was not imported, the copy is the only record of that message.
            original = new_ids.get(copied) if isinstance(copied, int) else None
            row = encode({**renumber_references(message, new_ids.get), "copy_of": original}, started_at)
            identity = _identity([row[index] for index in _IDENTITY_INDEXES])
            same = None
            if row[_EXTERNAL_ID] is None:
                same = existing.get(identity) or existing.get((REDACTED, identity[0], identity[2]))
            number, is_new = (same.pop(0), False) if same else self._messages.insert(connection, session_id, row)
            if is_new and original is None and isinstance(copied, int):
                report.pending_copies.append((number, copied))
            if isinstance(old_id, int):
                new_ids[old_id] = number
            added += is_new
            if message.get("compacted"):
                connection.execute(
                    "UPDATE messages SET active = 0, compacted = 1 WHERE id = ? AND active = 1", (number,)
                )
        return added


def _check_session(session: Any) -> Mapping[str, Any]:
    """Return the session with a list of messages; SessionError says which part has the wrong type."""
    if not isinstance(session, Mapping):
        raise SessionError(f"A session must be an object, not {type(session).__name__}.")
    for column in SESSIONS.columns:
        _check_column(column, session.get(column.name))
    check_new(session.get("id"), session.get("source"), session.get("user_id"))
    messages = session.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise SessionError("messages must be a list of objects.")
    return {**session, "messages": messages}


def _start_time(session: Mapping[str, Any], stored: float | None) -> float | None:
    """The start of a session: its own, the one in this store, or that of its first message; None without any."""
    if session.get("started_at") is not None:
        return seconds(session["started_at"])
    # Messages without a time get this one, so that it is the same at every import.
    if stored is not None:
        return stored
    timestamps = (message.get("timestamp") for message in session["messages"])
    return min((seconds(timestamp) for timestamp in timestamps if timestamp is not None), default=None)


def _check_column(column: Column, value: Any) -> None:
    if value is None or column.name in ("model_config", "extra"):
        return
    if column.kind == "text":
        require_storable(column.name, value)
    elif column.kind == "integer":
        encode_number(column.name, value)
    else:
        seconds(value)


def _existing_messages(connection: Connection, session_id: str) -> dict[tuple[Any, ...], list[int]]:
    """The ids of a session's messages without an external id, by what identifies them."""
    existing: dict[tuple[Any, ...], list[int]] = {}
    rows = readable_rows(
        connection,
        f"SELECT m.id, m.extra = '{dump_json({REDACTED: True})}', {read_columns(_IDENTITY_COLUMNS)}"
        f" FROM messages m {JOIN_ORIGINAL}"
        " WHERE m.session_id = ? AND m.external_id IS NULL ORDER BY m.id",
        (session_id,),
    )
    for number, is_redacted, *values in rows:
        identity = _identity(values)
        existing.setdefault((REDACTED, identity[0], identity[2]) if is_redacted else identity, []).append(number)
    return existing


# Not `copy_of`: a session may be imported without the original.
_IDENTITY_COLUMNS = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "is_summary")
_IDENTITY_INDEXES = tuple(WRITTEN.index(name) for name in _IDENTITY_COLUMNS)
_EXTERNAL_ID = WRITTEN.index("external_id")


def _identity(values: Sequence[Any]) -> tuple[Any, ...]:
    """What identifies a message: the columns in _IDENTITY_COLUMNS, without ids that depend on the store."""
    role, content, *others, is_summary = values
    return (role, strip_references(content, is_summary=bool(is_summary)), *others, is_summary)
