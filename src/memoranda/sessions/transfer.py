"""Export and import: whole sessions as plain JSON objects, so that nobody is locked in.

An exported session has its columns and `messages`, each with its own, compressed-away ones included; what was taken
back stays behind. Importing the same thing twice adds nothing, and a session that has grown since gets what is new.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoranda.db.schema import Column
from memoranda.db.sqlite import Connection
from memoranda.errors import SessionError
from memoranda.sessions.copies import REFERRED_TO, read_fully
from memoranda.sessions.feed import note_change
from memoranda.sessions.lifecycle import COLUMNS, RELATIONS, Lifecycle, check_new, insert_session
from memoranda.sessions.message_edits import MessageEdits
from memoranda.sessions.message_references import translated, without_numbers
from memoranda.sessions.message_rows import (
    REDACTED,
    WRITTEN,
    dump_json,
    encode,
    encode_number,
    require_storable,
    seconds,
)
from memoranda.sessions.messages import insert, recount
from memoranda.sessions.schema import SESSIONS
from memoranda.sessions.store_part import count_redactions
from memoranda.sessions.titles import Titles, claim_title, next_title
from memoranda.sessions.usage import COSTS, COUNTERS, FACTS

# By these sessions are told apart and found; they are no text, and never redacted.
_NAMES = ("id", "parent_session_id", "source", "user_id", "relation", "project")
# Set anew on the way in: they say how rows of this store hang together.
_DERIVED = ("conversation_id", "successor_id", "message_count", "tool_call_count", "last_active", "active_hour")
# What is known of a session only later, and what grows.
_LATER = ("ended_at", "end_reason", "model", "system_prompt", *FACTS[1:])
_GROWING = (*COUNTERS, *COSTS)


@dataclass(slots=True)
class ImportReport:
    """What an import did; `errors` names what could not be taken, and why, `undated` what counts as begun now."""

    imported: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    detached: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    undated: list[str] = field(default_factory=list)
    messages: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    new_ids: dict[int, int] = field(default_factory=dict, repr=False)
    repeating: list[tuple[int, int]] = field(default_factory=list, repr=False)
    """Messages here that repeat others by their ids there, which had not come in yet."""

    @property
    def ok(self) -> bool:
        return not self.errors


class Transfer(Lifecycle, MessageEdits, Titles):
    """Sessions on their way out and in."""

    def export_session(self, session_id: str) -> dict[str, Any] | None:
        """A session and its messages as JSON-like values; None when it is not there."""
        session = self.get_session(session_id)
        if session is None:
            return None
        return session | {"messages": self.get_messages(session_id, include_inactive=True)}

    def export_all(self, source: str | None = None) -> list[dict[str, Any]]:
        """Every session in scope; see `iter_export` for stores that do not fit into memory."""
        return list(self.iter_export(source))

    def iter_export(self, source: str | None = None) -> Iterator[dict[str, Any]]:
        """Every session in scope, one after the other, parents before their children."""
        for session_id in self._ids(source):
            exported = self.export_session(session_id)
            if exported is not None:
                yield exported

    def import_sessions(
        self, sessions: Iterable[Mapping[str, Any]], progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Take in exported sessions, each in one commit; a broken one is reported and does not stop the others."""
        report = ImportReport()
        waiting: list[tuple[int, Mapping[str, Any]]] = []
        index = -1
        for index, session in enumerate(sessions):
            # A child may come before its parent; it waits until everything else is in.
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
        self._link_repetitions(report)
        return report

    def _link_repetitions(self, report: ImportReport) -> None:
        """Say what messages repeat that came in before what they repeat."""
        late = [(number, report.new_ids[copied]) for number, copied in report.repeating if copied in report.new_ids]
        if not late:
            return
        with self._db.writing() as connection:
            for number, original in late:
                (session_id,) = connection.execute(
                    "UPDATE messages SET copy_of = ?, external_id = NULL WHERE id = ? RETURNING session_id",
                    (original, number),
                ).fetchone()
                recount(connection, session_id)
                note_change(connection, session_id, number)

    def _ids(self, source: str | None) -> list[str]:
        condition, values = self._seen, [*self._scope.values]
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        with self._db.reading() as connection:
            rows = connection.execute(f"SELECT id FROM sessions WHERE {condition} ORDER BY started_at, id", values)
            return [row[0] for row in rows]

    def _is_early(self, session: Any) -> bool:
        parent = session.get("parent_session_id") if isinstance(session, Mapping) else None
        return isinstance(parent, str) and self.get_session(parent) is None

    def _import(self, index: int, session: Any, report: ImportReport) -> None:
        try:
            self._take(_checked(session), report)
        except SessionError as error:
            name = session.get("id") if isinstance(session, Mapping) else None
            report.errors.append(
                {"index": index, "session_id": name if isinstance(name, str) else None, "error": str(error)}
            )

    def _take(self, session: Mapping[str, Any], report: ImportReport) -> None:
        session_id: str = session["id"]
        user = self._own_user(session.get("user_id"))
        names = {key: session[key] for key in _NAMES if key in session}
        clean, redacted = self._redact(
            {key: value for key, value in session.items() if key != "messages" and key not in names}
        )
        clean |= names
        rows = []
        for message in session["messages"]:
            kept, count = self._redact_message(message)
            redacted += count
            rows.append((message.get("id"), kept))
        with self._db.writing() as connection:
            there = connection.execute(
                "SELECT user_id, started_at FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            if there is not None and not self._scope.covers(there[0]):
                raise SessionError(f"The session id {session_id!r} is taken.")
            dated = _began(session, None if there is None else there[1])
            began = time.time() if dated is None else dated
            if there is None:
                self._add_session(connection, clean | {"started_at": began}, user, report)
            added = _add_messages(connection, session_id, rows, began, report)
            if added or there is None:
                recount(connection, session_id)
                note_change(connection, session_id)
            learned = there is not None and self._learn(connection, clean, report)
            changed = bool(added or learned or there is None)
            count_redactions(connection, redacted if changed else 0)
        report.messages += added
        report.undated += [session_id] if dated is None else []
        (report.imported if there is None else report.updated if changed else report.skipped).append(session_id)

    def _learn(self, connection: Connection, session: Mapping[str, Any], report: ImportReport) -> bool:
        """Take over what a session says of itself that ours does not know yet; whether there was anything."""
        session_id = session["id"]
        names = ("title", "last_active", *_LATER, *_GROWING)
        ours = dict(zip(names, connection.execute(
            f"SELECT {', '.join(names)} FROM sessions WHERE id = ?", (session_id,)
        ).fetchone(), strict=True))  # fmt: skip
        given = {name: value for name in (*_LATER, *_GROWING) if (value := session.get(name)) is not None}
        new = {name: given[name] for name in _LATER if name in given and ours[name] is None}
        new |= {name: given[name] for name in _GROWING if name in given and given[name] > (ours[name] or 0)}
        if new.get("ended_at", ours["last_active"]) < ours["last_active"]:
            # It has gone on here since.
            new = {name: value for name, value in new.items() if name not in ("ended_at", "end_reason")}
        if new:
            assignments = ", ".join(f"{name} = ?" for name in new)
            connection.execute(f"UPDATE sessions SET {assignments} WHERE id = ?", (*new.values(), session_id))
        if session.get("title") and ours["title"] is None:
            self._name(connection, session_id, session["title"], report)
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
        lineage = self._lineage(connection, session_id, session["source"], parent, relation)
        values = {name: session.get(name) for name in COLUMNS if name not in _DERIVED and name != "extra"}
        known = {*COLUMNS, "messages"} - {"extra"}
        extra = {name: value for name, value in session.items() if name not in known}
        values |= lineage | {
            "user_id": user,
            "title": None,
            "extra": dump_json(extra) if extra else None,
            "model_config": None if values["model_config"] is None else dump_json(values["model_config"]),
        }
        insert_session(connection, values)
        if session.get("title"):
            self._name(connection, session_id, session["title"], report)

    def _name(self, connection: Connection, session_id: str, title: str, report: ImportReport) -> None:
        try:
            claim_title(connection, session_id, title)
        except SessionError:
            # Taken by another session, or longer than ours may be.
            free = next_title(connection, title[:80], self._scope)
            claim_title(connection, session_id, free)
            report.renamed[session_id] = free


def _checked(session: Any) -> Mapping[str, Any]:
    """The session with its parts of the right kind, or a SessionError that says what is wrong."""
    if not isinstance(session, Mapping):
        raise SessionError(f"A session must be an object, not {type(session).__name__}.")
    for column in SESSIONS.columns:
        _check_column(column, session.get(column.name))
    check_new(session.get("id"), session.get("source"), session.get("user_id"))
    messages = session.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise SessionError("messages must be a list of objects.")
    return {**session, "messages": messages}


def _began(session: Mapping[str, Any], known: float | None) -> float | None:
    """When a session began: as it says itself, as is known here, or with its first message; None if nobody says."""
    if session.get("started_at") is not None:
        return seconds(session["started_at"])
    # What has no time of its own gets this one, so that it is the same at every import.
    if known is not None:
        return known
    given = (message.get("timestamp") for message in session["messages"])
    return min((seconds(each) for each in given if each is not None), default=None)


def _check_column(column: Column, value: Any) -> None:
    if value is None or column.name in ("model_config", "extra"):
        return
    if column.kind == "text":
        require_storable(column.name, value)
    elif column.kind == "integer":
        encode_number(column.name, value)
    else:
        seconds(value)


def _add_messages(
    connection: Connection,
    session_id: str,
    rows: list[tuple[Any, Mapping[str, Any]]],
    started_at: float,
    report: ImportReport,
) -> int:
    """Add those messages that the session does not have; how many.

    A message is known by its external id; one without is known by what was said when, and one that was redacted since
    by when that was.
    """
    new_ids = report.new_ids
    known = _known(connection, session_id)
    added = 0
    for old_id, message in rows:
        copied = message.get("copy_of")
        # What repeats a message that did not come along is the only record of it.
        repeats = new_ids.get(copied) if isinstance(copied, int) else None
        row = encode({**translated(message, new_ids), "copy_of": repeats}, started_at)
        mark = _mark([row[place] for place in _MARKED_PLACES])
        same = (known.get(mark) or known.get((REDACTED, mark[0], mark[2]))) if row[_EXTERNAL_ID] is None else None
        number, is_new = (same.pop(0), False) if same else insert(connection, session_id, row)
        if is_new and repeats is None and isinstance(copied, int):
            report.repeating.append((number, copied))
        if isinstance(old_id, int):
            new_ids[old_id] = number
        added += is_new
        if message.get("compacted"):
            connection.execute("UPDATE messages SET active = 0, compacted = 1 WHERE id = ? AND active = 1", (number,))
    return added


def _known(connection: Connection, session_id: str) -> dict[tuple[Any, ...], list[int]]:
    """The messages of a session that have no external id, by what was said when."""
    known: dict[tuple[Any, ...], list[int]] = {}
    rows = connection.execute(
        f"SELECT m.id, m.extra = '{dump_json({REDACTED: True})}', {read_fully(_MARKED)} FROM messages m {REFERRED_TO}"
        " WHERE m.session_id = ? AND m.external_id IS NULL ORDER BY m.id",
        (session_id,),
    )
    for number, is_redacted, *values in rows:
        mark = _mark(values)
        known.setdefault((REDACTED, mark[0], mark[2]) if is_redacted else mark, []).append(number)
    return known


# Not which message it repeats: a session may come in without the one that holds it.
_MARKED = ("role", "content", "timestamp", "tool_call_id", "tool_calls", "is_summary")
_MARKED_PLACES = tuple(WRITTEN.index(name) for name in _MARKED)
_EXTERNAL_ID = WRITTEN.index("external_id")


def _mark(values: Sequence[Any]) -> tuple[Any, ...]:
    """What a message is known by: the columns in _MARKED, but for numbers that depend on the store."""
    role, content, *others, is_summary = values
    return (role, without_numbers(content, is_summary=bool(is_summary)), *others, is_summary)
