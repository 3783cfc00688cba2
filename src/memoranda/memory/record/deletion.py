"""Deletes sessions: named ones, or old ones. Nothing is deleted without an explicit call."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from memoranda.memory.record.copies import promote_copies
from memoranda.memory.record.feed import note_change
from memoranda.memory.record.message_rows import delete_messages, recount
from memoranda.memory.record.notifications import remove_of_session
from memoranda.memory.record.rotation import drop_compression_state
from memoranda.memory.record.schema import hour_of
from memoranda.memory.record.session_list import SessionFilter
from memoranda.memory.record.store_part import StoredName, StorePart
from memoranda.storage.connection import Connection

_DAY = 86_400
_COLUMNS = ("id", "title", "source", "started_at", "last_active", "own_message_count", "conversation_id")
_NAMES = tuple("message_count" if name == "own_message_count" else name for name in _COLUMNS)
_BATCH_SIZE = 500
# Deleting this many takes less than a turn notices.
_STEP_MESSAGES = 200
_STEP_SESSIONS = 20
_PAUSE = 0.005


class Deletion(StorePart):
    """Deletes sessions. Deleted text is overwritten in the database, and the feed notifies followers."""

    def delete_session(self, session_id: str) -> bool:
        """Delete a session, its messages and the work it delegated; False if it does not exist.

        Its continuations and branches stay, without a parent.
        """
        return self.delete_sessions([session_id]) > 0

    def list_deletion(self, session_ids: Iterable[str]) -> list[dict[str, Any]]:
        """What `delete_sessions` would delete: these sessions and all work they delegated, each once."""
        session_ids = self._stored_names(session_ids)
        with self._engine.reading() as connection:
            return list(self._with_delegates(connection, session_ids).values())

    def delete_sessions(self, session_ids: Iterable[str]) -> int:
        """Delete sessions and the work they delegated in one transaction; return how many sessions were deleted."""
        session_ids = self._stored_names(session_ids)
        with self._engine.writing() as connection:
            count = self._delete(connection, session_ids)
        if count:
            self._engine.shrink_log()
        return count

    def deleted_sessions(self, session_ids: Iterable[str]) -> set[str]:
        """Which of these ids belonged to deleted sessions; the store keeps only their ids."""
        ids = self._stored_names(session_ids)
        found: set[str] = set()
        with self._engine.reading() as connection:
            for start in range(0, len(ids), _BATCH_SIZE):
                condition, values = self._dialect.one_of("id", ids[start : start + _BATCH_SIZE])
                rows = connection.execute(
                    f"SELECT id FROM deleted_sessions WHERE {condition}"
                    " AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = deleted_sessions.id)",
                    values,
                )
                found |= {row[0] for row in rows}
        return found

    def list_prune_candidates(
        self, /, older_than_days: float = 90, source: str | None = None, **filters: Any
    ) -> list[dict[str, Any]]:
        """What `prune_sessions` would delete, with delegated work: id, title, source, started_at, message_count."""
        source = self._stored_name(source)
        with self._engine.reading() as connection:
            return self._candidates(connection, older_than_days, source, SessionFilter.of(filters))

    def prune_sessions(
        self,
        /,
        older_than_days: float = 90,
        source: str | None = None,
        *,
        confirmed: Collection[str] | None = None,
        stopped: Callable[[], bool] = lambda: False,
        **filters: Any,
    ) -> int:
        """Delete ended sessions without a message for this many days, and the work they delegated; return how many.

        A session stays if its delegated work was active since, with all of that work. `confirmed` limits pruning to
        sessions that a person has confirmed; of those, a session that became active since stays. `filters` are the
        fields of `SessionFilter`. A few conversations are deleted at a time, so that other writers never wait long, and
        `stopped` is asked in between.
        """
        source = self._stored_name(source)
        confirmed = None if confirmed is None else frozenset(self._stored_names(confirmed))
        chosen, count = SessionFilter.of(filters), 0
        with self._engine.reading() as connection:
            found = self._candidates(connection, older_than_days, source, chosen, confirmed)
        rows = [row for row in found if confirmed is None or row["id"] in confirmed]
        for step in _steps(rows):
            if stopped():
                break
            time.sleep(_PAUSE if count else 0)
            with self._engine.writing() as connection:
                # A session that became active in the meantime stays.
                old = self._candidates(connection, older_than_days, source, chosen, step)
                count += self._delete(connection, [row["id"] for row in old if row["id"] in step])
        if count:
            self._engine.shrink_log()
        return count

    def archive_sessions(self, /, older_than_days: float = 90, source: str | None = None, **filters: Any) -> int:
        """Archive the conversations that `prune_sessions` would delete, with all their messages; return how many.

        Sessions that are archived already do not count.
        """
        source = self._stored_name(source)
        chosen = SessionFilter.of({"archived": False, **filters})
        with self._engine.writing() as connection:
            rows = self._candidates(connection, older_than_days, source, chosen)
            conversations = {row["conversation_id"] for row in rows}
            for conversation in conversations:
                connection.execute(
                    f"UPDATE sessions SET archived = 1 WHERE conversation_id = ? AND {self._in_scope}",
                    (conversation, *self._scope.values),
                )
                note_change(connection, conversation)
        return len(conversations)

    def count_empty_sessions(self) -> int:
        """How many ended sessions have no message and are not archived."""
        with self._engine.reading() as connection:
            return len(self._empty(connection))

    def delete_empty_sessions(self) -> int:
        """Delete the ended sessions without a message that are not archived; return how many."""
        with self._engine.writing() as connection:
            return self._delete(connection, self._empty(connection))

    def empty_log(self) -> bool:
        """Remove deleted text also from the write-ahead log; False while another process still reads it."""
        return self._engine.shrink_log()

    def release_space(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Return the space of deleted messages to the file system in short steps; returns what is left if `stopped`."""
        left = self._engine.release_space(stopped)
        # The file becomes smaller when the log is copied into it.
        self._engine.shrink_log()
        return left

    def vacuum(self) -> None:
        """Rewrite the file without the space of deleted messages; nothing can be recorded meanwhile."""
        self._engine.vacuum()

    def _empty(self, connection: Connection) -> list[StoredName]:
        rows = connection.execute(
            f"SELECT id FROM sessions WHERE {self._in_scope} AND ended_at IS NOT NULL AND archived = 0"
            " AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.session_id = sessions.id)"
            " AND NOT EXISTS (SELECT 1 FROM sessions child WHERE child.parent_session_id = sessions.id)",
            self._scope.values,
        )
        return [row[0] for row in rows]

    def _candidates(
        self,
        connection: Connection,
        days: float,
        source: StoredName | None,
        chosen: SessionFilter,
        confirmed: Collection[StoredName] | None = None,
    ) -> list[dict[str, Any]]:
        condition, values = self._old_condition(days, source)
        narrowing = chosen.condition(self._dialect)
        condition, values = f"{condition} AND {narrowing.text}", [*values, *narrowing.values]
        if confirmed is not None and len(confirmed) <= _BATCH_SIZE:
            # Whether a conversation is old depends on no other one, so a few need not wait for the search of all.
            ids = self._dialect.one_of("id", confirmed)
            condition += f" AND conversation_id IN (SELECT conversation_id FROM sessions WHERE {ids.text})"
            values += ids.values
        old = dict(connection.execute(f"SELECT id, conversation_id FROM sessions WHERE {condition}", values))
        cutoff = time.time() - days * _DAY
        families = {session_id: self._with_delegates(connection, [session_id]) for session_id in old}
        active = {
            old[session_id]
            for session_id, family in families.items()
            if any(member["last_active"] >= cutoff for member in family.values())
        }
        found = {
            member["id"]: member
            for session_id, family in families.items()
            if old[session_id] not in active
            for member in family.values()
        }
        return sorted(found.values(), key=lambda row: (row["last_active"], row["id"]))

    def _delete(self, connection: Connection, session_ids: Iterable[StoredName]) -> int:
        family = self._with_delegates(connection, session_ids)
        for session_id in sorted(family):
            self._engine.lock_session(connection, session_id)
        # Sessions of other users may link to these, and lose the link.
        with self._engine.across_users(connection):
            for session_id in family:
                delete_row(connection, session_id)
        return len(family)

    def _with_delegates(self, connection: Connection, session_ids: Iterable[StoredName]) -> dict[str, dict[str, Any]]:
        """Sessions and the work they delegated, with its continuations and the work those delegated."""
        step = "SELECT sessions.id FROM sessions JOIN below ON sessions.parent_session_id = below.id"
        found: dict[str, dict[str, Any]] = {}
        for session_id in dict.fromkeys(session_ids):
            rows = connection.execute(
                "WITH RECURSIVE below (id) AS ("
                f" SELECT id FROM sessions WHERE parent_session_id = ? AND relation = 'delegation' AND {self._in_scope}"
                f" UNION {step} WHERE sessions.relation IN ('delegation', 'compression') AND {self._in_scope})"
                f" SELECT {', '.join(_COLUMNS)} FROM sessions WHERE id = ? AND {self._in_scope}"
                f" UNION ALL SELECT {', '.join(_COLUMNS)} FROM sessions WHERE id IN (SELECT id FROM below)",
                (session_id, *self._scope.values * 2, session_id, *self._scope.values),
            )
            found |= {row[0]: dict(zip(_NAMES, row, strict=True)) for row in rows}
        return found

    def _old_condition(self, days: float, source: StoredName | None) -> tuple[str, list[Any]]:
        cutoff = time.time() - days * _DAY
        # The hour has an index, so that only sessions that may be old are read.
        condition = f"{self._in_scope} AND active_hour <= ? AND ended_at IS NOT NULL AND last_active < ?"
        values: list[Any] = [*self._scope.values, hour_of(cutoff), cutoff]
        if source is not None:
            condition += " AND source = ?"
            values.append(source)
        # A conversation is old if its last session is: earlier sessions of an active conversation stay.
        condition += (
            " AND NOT EXISTS (SELECT 1 FROM sessions later WHERE later.conversation_id = sessions.conversation_id"
            " AND (later.ended_at IS NULL OR later.last_active >= ?))"
        )
        return condition, [*values, cutoff]


def _steps(rows: list[dict[str, Any]]) -> Iterator[frozenset[StoredName]]:
    """The ids of a few sessions at a time; those of one conversation stay together."""
    conversations: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        conversations.setdefault(row["conversation_id"], []).append(row)
    step: list[StoredName] = []
    messages = 0
    for members in conversations.values():
        step += [row["id"] for row in members]
        messages += sum(row["message_count"] for row in members)
        if len(step) >= _STEP_SESSIONS or messages >= _STEP_MESSAGES:
            yield frozenset(step)
            step, messages = [], 0
    if step:
        yield frozenset(step)


def delete_row(connection: Connection, session_id: str, *, remember: bool = True) -> None:
    """Delete one session and repair the links of its chain; with `remember`, no import restores it."""
    row = connection.execute(
        "SELECT parent_session_id, successor_id, conversation_id FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        return
    parent, successor, conversation = row
    relatives = connection.execute(
        "SELECT id FROM sessions WHERE parent_session_id = ? UNION SELECT id FROM sessions WHERE conversation_id = ?"
        " EXCEPT SELECT ?",
        (session_id, conversation, session_id),
    ).fetchall()
    connection.execute(
        "UPDATE sessions SET successor_id = NULL WHERE id = ? AND successor_id = ?", (parent, session_id)
    )
    connection.execute(
        "UPDATE sessions SET parent_session_id = NULL, relation = NULL WHERE parent_session_id = ?", (session_id,)
    )
    if successor is not None:
        # The continuation now starts a separate conversation.
        move_conversation(connection, successor, successor)
    for other_id in promote_copies(connection, session_id):
        recount(connection, other_id)
    for (relative,) in relatives:
        note_change(connection, relative)
    delete_messages(connection, session_id)
    remove_of_session(connection, session_id)
    connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    if remember:
        connection.execute("INSERT INTO deleted_sessions (id) VALUES (?) ON CONFLICT (id) DO NOTHING", (session_id,))
    drop_compression_state(connection, session_id)
    note_change(connection, session_id)


def move_conversation(connection: Connection, first: str, conversation: str) -> None:
    """Make a session and all that continues it a part of a conversation, which its first session gives its id."""
    member: str | None = first
    seen: set[str] = set()
    while member is not None and member not in seen:
        seen.add(member)
        changed = connection.execute(
            "UPDATE sessions SET conversation_id = ? WHERE id = ? AND conversation_id <> ?",
            (conversation, member, conversation),
        ).rowcount
        if changed:
            note_change(connection, member)
        row = connection.execute("SELECT successor_id FROM sessions WHERE id = ?", (member,)).fetchone()
        member = row[0] if row else None
