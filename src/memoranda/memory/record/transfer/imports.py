"""Writes what another program recorded about a session and its messages into our columns, and undoes an import.

For importers of programs whose record has the same columns: source, user, tokens, cost, end, and which messages were
rewound or compressed away.

An undo removes what an import added, except where the user has changed something since. A session from which nothing of
the import may be removed stays whole, and the answer says why. A removed session is not remembered as deleted: it was
never the user's, and another import may bring it again.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from memoranda.memory.record.checksums import resealed
from memoranda.memory.record.deletion import delete_row
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import (
    REDACTED,
    WRITTEN,
    decode_json,
    dump_json,
    recount,
    require_storable,
    retire_message_ids,
)
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.passages import FORGOTTEN
from memoranda.memory.record.session_list import COSTS, COUNTERS
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.memory.record.system_prompts import select_list, update_columns
from memoranda.storage.connection import Connection
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import MARK
from memoranda.support.text_matcher import MARK as FORGOTTEN_MARK

_TEXTS = ("source", "model", "system_prompt", "billing_provider", "billing_base_url", "billing_mode", "cost_status",
          "cost_source", "pricing_version")  # fmt: skip
_AMOUNTS = (*COUNTERS, *COSTS, "rewind_count")
_LAST_ID = 2**63 - 1
# In the external id of what a program added to a message, after the id of that message.
ADDED = ":added"
_ROLE, _CONTENT, _FORMAT, _IS_SUMMARY = map(WRITTEN.index, ("role", "content", "content_format", "is_summary"))
# The number of a rewind in the other program; those that happen here are counted from 1.
_REWOUND_ELSEWHERE = 0


@dataclass(frozen=True, slots=True)
class MessageState:
    """Whether a message is in its session's context, was compressed away, or was rewound (neither of both).

    `original` names the message that it repeats, by session and external id.
    """

    active: bool = True
    compacted: bool = False
    original: tuple[str, str] | None = None


class ImportedRows(StorePart):
    """Sets columns of imported sessions, and appends their messages with their state."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(*messages.common)
        self._messages = messages

    def set_columns(self, session_id: str, columns: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        """Set the columns that the other program has, and add to the extra fields; None removes nothing.

        What happened here since stays: an amount never decreases, an archived session stays archived, and a session
        that was reopened or continued here keeps its end.
        """
        session_id = self._stored_name(session_id)
        clean, redacted = self._redact({name: value for name, value in columns.items() if name != "source"})
        clean |= {"source": self._stored_name(columns["source"])} if "source" in columns else {}
        clean_extra, more = self._redact(dict(extra))
        with self._changing(session_id) as connection:
            stored = _stored_columns(connection, session_id)
            updates = _updates(clean, stored)
            before = decode_json(stored["extra"]) if stored["extra"] else {}
            merged, updates = _without_forgotten(before, {**before, **clean_extra}, updates)
            if merged and dump_json(merged) != stored["extra"]:
                updates["extra"] = dump_json(merged)
            user = columns.get("user_id")
            if user is not None and stored["user_id"] is None and _can_move(connection, session_id, user):
                updates["user_id"] = user
            if updates:
                update_columns(self._engine, connection, session_id, updates)
                count_redactions(connection, redacted + more)

    def append_messages(
        self, session_id: str, messages: Sequence[Mapping[str, Any]], states: Sequence[MessageState]
    ) -> list[int]:
        """Append messages with their states in one transaction; those that the session has only get the state."""
        session_id = self._stored_name(session_id)
        names = [self._stored_name(message["external_id"]) for message in messages]
        known = self._messages.get_external_ids([session_id], names)
        encoded = iter(
            self._messages.encode_all(m for m, name in zip(messages, names, strict=True) if name not in known)
        )
        ids, secrets = [], 0
        with self._changing(session_id) as connection:
            continued = _stored_columns(connection, session_id)["successor_id"] is not None
            first_changed = None
            for name, state in zip(names, states, strict=True):
                if name in known:
                    number = _id_of(connection, session_id, name)
                else:
                    message = next(encoded)
                    number, is_new = self._messages.insert(connection, session_id, message.row)
                    secrets += message.secrets if is_new else 0
                if number is None:
                    # Another process has just deleted it.
                    continue
                ids.append(number)
                if continued and name in known:
                    # It was compressed, here or there, and its messages are as compression left them.
                    continue
                original = state.original and [self._stored_name(name) for name in state.original]
                if _set_state(connection, session_id, number, state, original) and name in known:
                    first_changed = min(number, first_changed or number)
            if first_changed is not None:
                note_change(connection, session_id, first_changed)
            recount(connection, session_id)
            count_redactions(connection, secrets)
        self._messages.notify_appended()
        return ids

    def correct_messages(self, session_id: str, messages: Mapping[str, Mapping[str, Any]]) -> dict[int, str]:
        """Give messages with the role `user` the role and text of a newer reading, by their external ids.

        A message that was redacted here, or from which a text was forgotten, keeps its text, and so does one with a
        line that neither the new text nor a message of what was added to it has. Return what changed: the ids, each
        with the new role, or "summary" or "text".
        """
        session_id = self._stored_name(session_id)
        encoded = self._messages.encode_all(messages.values())
        rows = dict(zip(map(self._stored_name, messages), (message.row for message in encoded), strict=True))
        lines: defaultdict[str, set[str]] = defaultdict(lambda: {""})
        for name, row in rows.items():
            lines[name.partition(ADDED)[0]].update((row[_CONTENT] or "").splitlines())
        changed: dict[int, str] = {}
        with self._changing(session_id) as connection:
            stored = connection.execute(
                "SELECT id, external_id, content, content_format, extra FROM messages"
                " WHERE session_id = ? AND role = 'user' AND is_summary IS NULL AND external_id IS NOT NULL",
                (session_id,),
            ).fetchall()
            known = [(number, rows[name], lines[name], *others) for number, name, *others in stored if name in rows]
            with resealed(connection, [number for number, *_ in known]):
                for number, row, found, content, content_format, extra in known:
                    role, text, is_summary = row[_ROLE], row[_CONTENT], row[_IS_SUMMARY]
                    is_kept = content_format != row[_FORMAT] or MARK in (content or "") or REDACTED in (extra or "")
                    text = content if is_kept or not found.issuperset((content or "").splitlines()) else text
                    if (role, text, is_summary) != ("user", content, None):
                        changed[number] = "summary" if is_summary else "text" if role == "user" else role
                        connection.execute(
                            "UPDATE messages SET role = ?, content = ?, is_summary = ? WHERE id = ?",
                            (role, text, is_summary, number),
                        )
            _recount_changed(connection, session_id, changed)
        return changed

    def find_short_names(self, source: str, max_chars: int) -> dict[str, dict[int, str]]:
        """The external ids of visible messages that are at most so long, by session of a source and message."""
        source = self._stored_name(source)
        found: dict[str, dict[int, str]] = {}
        for session_id, number, name in self._fetch_all(
            "SELECT m.session_id, m.id, m.external_id FROM messages m JOIN sessions ON sessions.id = m.session_id"
            " WHERE sessions.source = ? AND length(m.external_id) <= ? AND (m.active = 1 OR m.compacted = 1)"
            f" AND {self._in_scope}",
            (source, max_chars, *self._scope.values),
        ):
            found.setdefault(session_id, {})[number] = name
        return found

    def hide_messages(self, session_id: str, ids: Collection[int]) -> None:
        """Remove messages from every view, as if their program had rewound them; they stay in the record."""
        with self._changing(self._stored_name(session_id)) as connection:
            connection.executemany(
                "UPDATE messages SET active = 0, compacted = 0, rewound = ? WHERE id = ? AND session_id = ?",
                [(_REWOUND_ELSEWHERE, number, session_id) for number in ids],
            )
            _recount_changed(connection, session_id, ids)

    def end_with_last_message(self, session_id: str) -> None:
        """Move the end of an imported session to its last message, after messages were added to it."""
        session_id = self._stored_name(session_id)
        with self._engine.writing() as connection:
            _end_with_last_message(connection, session_id)


def _recount_changed(connection: Connection, session_id: str, ids: Collection[int]) -> None:
    if ids:
        recount(connection, session_id)
        note_change(connection, session_id, min(ids))


def _end_with_last_message(connection: Connection, session_id: str) -> None:
    # A session that was resumed here, or ended by its own program, has another reason or none.
    connection.execute(
        "UPDATE sessions SET ended_at = last_active"
        " WHERE id = ? AND end_reason = 'imported' AND ended_at <> last_active",
        (session_id,),
    )


def _stored_columns(connection: Connection, session_id: str) -> dict[str, Any]:
    names = (
        *_TEXTS,
        *_AMOUNTS,
        "model_config",
        "ended_at",
        "end_reason",
        "archived",
        "user_id",
        "successor_id",
        "extra",
    )
    row = connection.execute(f"SELECT {select_list(names)} FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return dict(zip(names, row, strict=True))


def _updates(columns: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to set, with their new values."""
    found: dict[str, Any] = {}
    for name in _TEXTS:
        require_storable(name, columns.get(name))
        found[name] = columns.get(name)
    for name in _AMOUNTS:
        amount = columns.get(name)
        if isinstance(amount, (int, float)) and amount > (stored[name] or 0):
            found[name] = amount
    if columns.get("model_config") is not None:
        found["model_config"] = dump_json(columns["model_config"])
    if columns.get("archived"):
        found["archived"] = 1
    ended_here = stored["end_reason"] != "imported" and stored["successor_id"] is not None
    if columns.get("ended_at") is not None and stored["ended_at"] is not None and not ended_here:
        require_storable("end_reason", columns.get("end_reason"))
        found |= {"ended_at": columns["ended_at"], "end_reason": columns.get("end_reason")}
    return {name: value for name, value in found.items() if value is not None and value != stored[name]}


def _without_forgotten(
    before: dict[str, Any], extra: dict[str, Any], updates: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The extra fields and the columns without those from which a text was removed here: no import restores it."""
    forgotten = before.get(FORGOTTEN, ())
    if "extra" in forgotten:
        extra |= {name: value for name, value in before.items() if FORGOTTEN_MARK in dump_json(value)}
    return extra, {name: value for name, value in updates.items() if name not in forgotten}


def _can_move(connection: Connection, session_id: str, user: str) -> bool:
    """Whether a session can become another user's: nothing of the owner's copies it, and its title is free there."""
    copied = connection.execute(
        "SELECT 1 FROM messages copy JOIN messages m ON copy.copy_of = m.id"
        " WHERE m.session_id = ? AND copy.session_id <> ? LIMIT 1",
        (session_id, session_id),
    ).fetchone()
    taken = connection.execute(
        "SELECT 1 FROM sessions WHERE user_id = ? AND title = (SELECT title FROM sessions WHERE id = ?)",
        (user, session_id),
    ).fetchone()
    return not copied and not taken


def _id_of(connection: Connection, session_id: str, external_id: str) -> int | None:
    row = connection.execute(
        "SELECT id FROM messages WHERE session_id = ? AND external_id = ?", (session_id, external_id)
    ).fetchone()
    return None if row is None else int(row[0])


def _set_state(
    connection: Connection, session_id: str, message_id: int, state: MessageState, original: Sequence[str] | None
) -> bool:
    """Set the state of a message, and its original; whether it changed. One that was rewound here stays rewound."""
    active, compacted = int(state.active), int(state.compacted)
    rewound = None if active or compacted else _REWOUND_ELSEWHERE
    changed = connection.execute(
        "UPDATE messages SET active = ?, compacted = ?, rewound = ?"
        " WHERE id = ? AND (active <> ? OR compacted <> ?) AND COALESCE(rewound, ?) = ?",
        (active, compacted, rewound, message_id, active, compacted, _REWOUND_ELSEWHERE, _REWOUND_ELSEWHERE),
    ).rowcount
    if original is not None:
        # Only a message of the same user is an original.
        with resealed(connection, [message_id]):
            changed += connection.execute(
                "UPDATE messages SET copy_of = (SELECT COALESCE(m.copy_of, m.id) FROM messages m"
                "  JOIN sessions theirs ON theirs.id = m.session_id JOIN sessions ours ON ours.id = ?"
                "  WHERE m.session_id = ? AND m.external_id = ? AND m.id < messages.id"
                "   AND COALESCE(theirs.user_id, '') = COALESCE(ours.user_id, ''))"
                " WHERE id = ? AND copy_of IS NULL",
                (session_id, *original, message_id),
            ).rowcount
    return bool(changed)


Reason = Literal["missing", "continued", "later_import", "branched", "renamed", "reopened", "edited"]


@dataclass(frozen=True, slots=True)
class AddedMessages:
    """The messages that an import added to a session: those with an external id from `first` to `last`.

    `other_ranges` are those of other imports in the same session. `title` and `model` are the values before the import,
    `imported_title` is the one that the import set.
    """

    session_id: str
    first: int
    last: int
    other_ranges: Sequence[tuple[int, int]] = ()
    title: str | None = None
    model: str | None = None
    imported_title: str | None = None


@dataclass(frozen=True, slots=True)
class UndoneSession:
    """What is, or would be, removed from a session; with a `reason` it stays as it is."""

    session_id: str
    title: str | None = None
    messages: int = 0
    whole: bool = False
    reason: Reason | None = None


class ImportedRange(NamedTuple):
    """The lowest and the highest id of messages in a session, and the user of the session."""

    first: int
    last: int
    user: str | None


class ImportUndo(StorePart):
    """Removes the messages of imports in the sessions of one scope."""

    def imported_ranges(self, after_message: int, sources: Collection[str]) -> dict[str, ImportedRange]:
        """The imported messages after an id, by session, for sessions of these sources."""
        rows = self._fetch_all(
            "SELECT m.session_id, min(m.id), max(m.id), max(sessions.user_id), max(sessions.extra) FROM messages m"
            " JOIN sessions ON sessions.id = m.session_id"
            f" WHERE m.id > ? AND m.external_id IS NOT NULL AND {self._in_scope} GROUP BY m.session_id",
            (after_message, *self._scope.values),
        )
        return {
            session_id: ImportedRange(first, last, user)
            for session_id, first, last, user, extra in rows
            if extra and decode_json(extra).get("host") in sources
        }

    def is_edited(self, session_id: str) -> bool:
        """Whether a message of a session was rewound or redacted here, or a text in one was forgotten."""
        with self._engine.reading() as connection:
            return _is_edited(connection, (self._stored_name(session_id), 0, _LAST_ID))

    def preview(self, added: Sequence[AddedMessages]) -> list[UndoneSession]:
        """What `remove` would do, session by session."""
        removed: set[str] = set()
        found = []
        with self._engine.reading() as connection:
            for part in added:
                found.append(self._inspect(connection, part, removed))
                removed |= {part.session_id} if found[-1].whole and found[-1].reason is None else set()
        return found

    def remove(self, added: Sequence[AddedMessages]) -> list[UndoneSession]:
        """Remove the messages, each session in one transaction; sessions without other messages are deleted.

        Branches come before the sessions that they branch from.
        """
        done = []
        for part in added:
            with self._engine.writing() as connection:
                self._engine.lock_session(connection, part.session_id)
                found = self._inspect(connection, part, ())
                if found.reason is None:
                    # As for a deletion: sessions of other users may link to this one.
                    with self._engine.across_users(connection):
                        _remove(connection, part, found)
            done.append(found)
        if any(found.messages for found in done):
            self._engine.shrink_log()
        return done

    def _inspect(self, connection: Connection, part: AddedMessages, removed: Collection[str]) -> UndoneSession:
        row = connection.execute(
            f"SELECT title, ended_at, extra FROM sessions WHERE id = ? AND {self._in_scope}",
            (part.session_id, *self._scope.values),
        ).fetchone()
        if row is None:
            return UndoneSession(part.session_id, reason="missing")
        title, ended_at, extra = row
        ids = (part.session_id, part.first, part.last)
        own, total = connection.execute(
            "SELECT COALESCE(sum(CASE WHEN id BETWEEN ? AND ? AND external_id IS NOT NULL THEN 1 ELSE 0 END), 0),"
            " count(*) FROM messages WHERE session_id = ?",
            (part.first, part.last, part.session_id),
        ).fetchone()
        reason: Reason | None = None
        if title != part.imported_title:
            reason = "renamed"
        elif ended_at is None:
            reason = "reopened"
        elif FORGOTTEN in (decode_json(extra) if extra else {}) or _is_edited(connection, ids):
            reason = "edited"
        else:
            reason = self._later_messages(connection, part) or self._descendants(connection, part, removed)
        return UndoneSession(part.session_id, title, 0 if reason else own, own == total, reason)

    def _later_messages(self, connection: Connection, part: AddedMessages) -> Reason | None:
        """Why messages after the part keep the session: the user wrote them, or another import added them."""
        rows = connection.execute(
            "SELECT id, external_id FROM messages WHERE session_id = ? AND id > ? AND (id > ? OR external_id IS NULL)",
            (part.session_id, part.first, part.last),
        ).fetchall()
        if any(not _is_in(number, part.other_ranges) or name is None for number, name in rows):
            return "continued"
        return "later_import" if rows else None

    def _descendants(self, connection: Connection, part: AddedMessages, removed: Collection[str]) -> Reason | None:
        rows = connection.execute(
            "SELECT id FROM sessions WHERE parent_session_id = ?"
            " UNION SELECT successor_id FROM sessions WHERE id = ? AND successor_id IS NOT NULL"
            " UNION SELECT m.session_id FROM messages m JOIN messages original ON original.id = m.copy_of"
            "  WHERE original.session_id = ? AND m.session_id <> ? AND original.id BETWEEN ? AND ?",
            (part.session_id,) * 4 + (part.first, part.last),
        ).fetchall()
        return "branched" if any(name not in removed for (name,) in rows) else None


def _is_in(number: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _is_edited(connection: Connection, ids: tuple[Any, ...]) -> bool:
    """Whether a message was rewound or redacted here, or a text in it was forgotten: an import would restore it."""
    row = connection.execute(
        "SELECT 1 FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? AND (rewound > 0 OR rewound < 0"
        " OR extra LIKE ? OR extra LIKE ? OR content LIKE ? OR tool_calls LIKE ? OR reasoning LIKE ?) LIMIT 1",
        (*ids, f'%"{REDACTED}":%', *(f"%{MARK}%",) * 4),
    ).fetchone()
    return row is not None


def _remove(connection: Connection, part: AddedMessages, found: UndoneSession) -> None:
    if found.whole:
        delete_row(connection, part.session_id, remember=False)
        return
    retire_message_ids(connection)
    connection.execute(
        "DELETE FROM messages WHERE session_id = ? AND id BETWEEN ? AND ? AND external_id IS NOT NULL",
        (part.session_id, part.first, part.last),
    )
    connection.execute(
        "UPDATE sessions SET title = ?, model = ? WHERE id = ?", (part.title, part.model, part.session_id)
    )
    recount(connection, part.session_id)
    _end_with_last_message(connection, part.session_id)
    note_change(connection, part.session_id, part.first)
