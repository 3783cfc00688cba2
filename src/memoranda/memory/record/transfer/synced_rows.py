"""Reads and writes whole rows of sessions and messages for the synchronisation of two homes.

Unlike an import, it also changes what exists: another machine may have redacted, rewound or compressed a message. What
the rows of both machines have in common is decided in `upkeep/sync/`; this part only knows the tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from memoranda.errors import SessionError
from memoranda.memory.record.checksums import seal
from memoranda.memory.record.copies import CHECKED_COLUMNS, JOIN_ORIGINAL, SAME, decode_checked, promote_copies
from memoranda.memory.record.deletion import move_conversation
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import (
    DAMAGED,
    WRITTEN,
    Message,
    decode_json,
    dump_json,
    encode_redacted,
    recount,
    renumber_references,
    retire_message_ids,
)
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.schema import SESSIONS
from memoranda.memory.record.sessions import RELATIONS, TODOS, add_version, insert_session, read_todos, tidy
from memoranda.memory.record.store_part import StorePart, count_redactions
from memoranda.memory.record.system_prompts import PROMPT, select_list, update_columns
from memoranda.memory.record.transfer.row_versions import (
    MessageVersion,
    Row,
    RowVersions,
    SyncedSession,
    put_rows,
    put_sessions,
    put_versions,
    unnoticed,
)
from memoranda.storage.connection import Connection
from memoranda.storage.engine import readable_rows

FLAGS = ("active", "compacted", "rewound")
NEW_FLAGS = [1, 0, None]
"""Those of a message that was never rewound or compressed."""
# What a machine computes or only knows for itself.
_LOCAL = frozenset({
    "id", "user_id", "parent_session_id", "relation", "conversation_id", "successor_id", "message_count",
    "own_message_count", "tool_call_count", "last_active", "active_hour", "started_at", "source", "system_prompt_id",
})  # fmt: skip
FIELDS = (*(column.name for column in SESSIONS.columns if column.name not in _LOCAL), TODOS)
"""The columns of a session that may change, and its list of tasks."""
_STORE = ("id", "session_id", "copy_of", DAMAGED, *FLAGS)


class SyncedRows(StorePart):
    """Rows of the sessions of one scope."""

    def __init__(self, messages: Messages) -> None:
        super().__init__(*messages.common)
        self._messages = messages
        self.versions = RowVersions(*messages.common)

    def read_session(self, session_id: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What identifies a session (id, source, start, parent, relation), and its other fields; None without it."""
        session_id = self._stored_name(session_id)
        names = ("id", "source", "started_at", "parent_session_id", "relation")
        columns = tuple(name for name in FIELDS if name != TODOS)
        with self._engine.reading() as connection:
            row = connection.execute(
                f"SELECT {select_list((*names, *columns))} FROM sessions WHERE id = ? AND {self._in_scope}",
                (session_id, *self._scope.values),
            ).fetchone()
            if row is None:
                return None
            fields = dict(zip(columns, row[len(names) :], strict=True))
            for name in ("extra", "model_config"):
                fields[name] = None if fields[name] is None else decode_json(fields[name])
            fields[TODOS] = read_todos(self._dialect, connection, session_id)
        return dict(zip(names, row, strict=False)), fields

    def read_messages(
        self, session_id: str, first_id: int = 0
    ) -> list[tuple[int, Message, int | None, list[int | None]]]:
        """The messages of a session from an id on, rewound ones too: id, fields, the original's id, and the flags."""
        session_id = self._stored_name(session_id)
        with self._engine.reading() as connection:
            rows = readable_rows(
                connection,
                f"SELECT {CHECKED_COLUMNS} FROM messages m {JOIN_ORIGINAL} WHERE m.session_id = ? AND m.id >= ?"
                " ORDER BY m.id",
                (session_id, first_id),
            )
            messages = [decode_checked(row) for row in rows]
        return [
            (
                message["id"],
                {name: value for name, value in message.items() if value is not None and name not in _STORE},
                message["copy_of"],
                [message[name] for name in FLAGS],
            )
            for message in messages
        ]

    def fingerprints(self) -> dict[str, str]:
        """A text for each session of the scope that differs whenever one of its columns does, in order of start."""
        names = [f"length({PROMPT})" if name == "system_prompt" else name for name in FIELDS if name != TODOS]
        rows = self._fetch_all(
            f"SELECT id, last_active, message_count, own_message_count, parent_session_id, {', '.join(names)}"
            f" FROM sessions WHERE {self._in_scope} ORDER BY started_at, id",
            self._scope.values,
        )
        return {row[0]: sha256(repr(tuple(row)).encode("utf-8", "replace")).hexdigest()[:16] for row in rows}

    def changed_since(self, message_id: int, change: int) -> tuple[set[str], int]:
        """The sessions with messages or changes after these, and the last change by now."""
        rows = self._fetch_all(
            "SELECT DISTINCT session_id, 0 FROM messages WHERE id > ?"
            " UNION ALL SELECT session_id, max(seq) FROM changes WHERE seq > ? GROUP BY session_id",
            (message_id, change),
        )
        return {row[0] for row in rows}, max((row[1] for row in rows), default=0) or change

    def is_taken(self, session_id: str) -> bool:
        """Whether any user has a session with this id."""
        session_id = self._stored_name(session_id)
        return self._fetch_one("SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is not None

    def first_external_id(self, session_id: str) -> str | None:
        """The external id of the first message of a session; None if it has none."""
        row = self._fetch_one(
            "SELECT external_id FROM messages WHERE session_id = ? ORDER BY id LIMIT 1",
            (self._stored_name(session_id),),
        )
        return None if row is None else row[0]

    def add_session(self, head: Mapping[str, Any], synced: SyncedSession) -> None:
        """Add a session without messages and without relatives, with the key by which other machines know it."""
        session_id = self._stored_name(synced.session_id)
        with self._engine.writing() as connection:
            values = {"id": session_id, "source": self._stored_name(head["source"]), "user_id": self._scope.user}
            insert_session(
                self._engine, connection, values | {"started_at": head["started_at"], "conversation_id": session_id}
            )
            note_change(connection, session_id)
            put_sessions(connection, [synced])

    def starts_of(self, session_ids: Iterable[str]) -> dict[str, float]:
        """When those of these sessions started that exist in the scope."""
        session_ids = self._stored_names(session_ids)
        found: dict[str, float] = {}
        with self._engine.reading() as connection:
            for session_id in session_ids:
                row = connection.execute(
                    f"SELECT started_at FROM sessions WHERE id = ? AND {self._in_scope}",
                    (session_id, *self._scope.values),
                ).fetchone()
                if row is not None:
                    found[session_id] = row[0]
        return found

    def link_children(self, parent: str, continuation: str | None, relations: Mapping[str, str]) -> None:
        """Link sessions to their parent, each with its relation; `continuation` is the one that continues it."""
        with self._engine.writing() as connection:
            found = connection.execute(
                "SELECT conversation_id, successor_id FROM sessions WHERE id = ?", (parent,)
            ).fetchone()
            if found is None:
                return
            conversation, successor = found
            if successor != continuation and (continuation is not None or successor in relations):
                connection.execute("UPDATE sessions SET successor_id = ? WHERE id = ?", (continuation, parent))
                note_change(connection, parent)
            for child, relation in relations.items():
                known = relation if relation in RELATIONS else None
                linked = connection.execute(
                    "SELECT parent_session_id, relation FROM sessions WHERE id = ?", (child,)
                ).fetchone()
                if linked is not None and tuple(linked) != (parent, known):
                    connection.execute(
                        "UPDATE sessions SET parent_session_id = ?, relation = ? WHERE id = ?", (parent, known, child)
                    )
                    note_change(connection, child)
                move_conversation(connection, child, conversation if child == continuation else child)

    def set_fields(self, session_id: str, fields: Mapping[str, Any], rows: Mapping[str, Row]) -> None:
        """Set columns of a session and its list of tasks, with the stamps of this change; no other has its title."""
        session_id = self._stored_name(session_id)
        clean, redacted = self._redact(dict(fields))
        if clean.get("title"):
            clean["title"] = tidy(clean["title"])
        todos = clean.pop(TODOS, None)
        for name in ("extra", "model_config"):
            if clean.get(name) is not None:
                clean[name] = dump_json(clean[name])
        with self._changing(session_id) as connection:
            if clean:
                update_columns(self._engine, connection, session_id, clean)
                note_change(connection, session_id)
            if isinstance(todos, list):
                add_version(connection, session_id, todos)
            put_rows(connection, rows)
            count_redactions(connection, redacted)

    def title_holder(self, title: str, session_id: str) -> tuple[str, float] | None:
        """Another session with this title: its id and start."""
        session_id = self._stored_name(session_id)
        row = self._fetch_one(
            f"SELECT id, started_at FROM sessions WHERE title = ? AND id <> ? AND {self._in_scope}",
            (tidy(title), session_id, *self._scope.values),
        )
        return None if row is None else (row[0], row[1])

    def put_messages(
        self,
        session_id: str,
        states: Sequence[tuple[MessageVersion, Mapping[str, Any], int | None, Sequence[int | None]]],
        new_id: Callable[[int], int | None],
    ) -> None:
        """Insert messages, or replace those that exist, with their versions in one transaction.

        Each is a version, fields, the id of the original, and the flags.
        """
        session_id = self._stored_name(session_id)
        cleaned = self._messages.redact_all(fields for _, fields, _, _ in states)
        encoded = [
            encode_redacted(renumber_references({**clean, "copy_of": original}, new_id), redacted, 0.0)
            for (_, _, original, _), (clean, redacted) in zip(states, cleaned, strict=True)
        ]
        new = [message for (version, *_), message in zip(states, encoded, strict=True) if not version.is_here]
        with self._changing(session_id) as connection:
            placed, first_changed, is_appended = [], None, len(new) == len(states)
            with unnoticed(connection):
                ids, added = self._messages.insert_all(connection, session_id, new)
                numbers, are_new = iter(ids), len(added) == len(new)
                for (version, _, _, flags), message in zip(states, encoded, strict=True):
                    number = version.number if version.is_here else next(numbers)
                    if version.is_here:
                        self._replace(connection, number, message.row)
                        first_changed = min(number, first_changed or number)
                    if version.is_here or not are_new or flags != NEW_FLAGS:
                        is_appended = False
                        assignments = ", ".join(f"{name} = ?" for name in FLAGS)
                        connection.execute(f"UPDATE messages SET {assignments} WHERE id = ?", (*flags, number))
                    placed.append(version._replace(number=number))
            count_redactions(connection, sum(redacted for _, redacted in cleaned))
            put_versions(connection, session_id, placed)
            if is_appended:
                self._messages.count(connection, session_id, added)
            else:
                recount(connection, session_id)
            note_change(connection, session_id, first_changed)
        self._messages.notify_appended()

    def remove_messages(self, session_id: str, versions: Sequence[MessageVersion]) -> None:
        """Delete messages of a session that another machine has deleted; copies elsewhere become originals."""
        session_id = self._stored_name(session_id)
        with self._changing(session_id) as connection:
            for other in promote_copies(connection, session_id):
                recount(connection, other)
            retire_message_ids(connection)
            with unnoticed(connection):
                for version in versions:
                    connection.execute(
                        "DELETE FROM messages WHERE id = ? AND session_id = ?", (version.number, session_id)
                    )
            put_versions(connection, session_id, versions)
            recount(connection, session_id)
            note_change(connection, session_id)

    def _replace(self, connection: Connection, message_id: int, row: Sequence[Any]) -> None:
        values = {name: value for name, value in zip(WRITTEN, row, strict=True) if name != "copy_of"}
        found = connection.execute("SELECT content_format FROM messages WHERE id = ?", (message_id,)).fetchone()
        if found is None:
            raise SessionError(f"Message {message_id} does not exist any more.")
        if found[0] == SAME:
            # Its text is that of the original, which changes in the same way.
            values["content_format"] = SAME
        assignments = ", ".join(f"{name} = ?" for name in values)
        connection.execute(f"UPDATE messages SET {assignments} WHERE id = ?", (*values.values(), message_id))
        seal(connection, [message_id])
