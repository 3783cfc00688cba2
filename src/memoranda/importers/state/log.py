"""The log of imports: which messages, items, states and proposals each import added, so that it can be undone.

An import has an id and writes its row before its first message, with the highest message id of the store at that time.
The part of each session is saved together with the checkpoint of its file. If an import is killed, the next one finds
the row without an end, and adds the parts that were not saved: nothing else imports meanwhile, because imports lock.
On a server the log is shared, and the lock is one for each user.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from memoranda.memory.curated.settings import Target
from memoranda.memory.record.framework_objects import user_mark
from memoranda.storage.connection import Connection
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass

# Whether an import has added something that was not undone.
_ADDED = (
    "(EXISTS (SELECT 1 FROM import_parts WHERE import_id = imports.id)"
    " OR EXISTS (SELECT 1 FROM import_proposals WHERE import_id = imports.id))"
)

# The owner of a home settles the killed imports of its users.
_USER_OF_IMPORT = "(SELECT user_id FROM imports WHERE id = ?)"
# Before the id of an item, where a part has the id of a session; its version is in place of the messages.
_ITEM = "item:"
# Before the names of a checkpoint as JSON, in the same place.
_STATE = "state:"
_IS_ITEM, _IS_STATE = (f"substr(session_id, 1, {len(prefix)}) = '{prefix}'" for prefix in (_ITEM, _STATE))
_IS_SESSION = f"NOT {_IS_ITEM} AND NOT {_IS_STATE}"


@dataclass(frozen=True, slots=True)
class ImportPart:
    """The messages that one import added to one session, and what the import may have changed in its row."""

    session_id: str
    first_message: int
    last_message: int
    title: str | None = None
    model: str | None = None

    def joined(self, later: "ImportPart") -> "ImportPart":
        """Return the part that covers both; the values before the import are those of the earlier one."""
        first, last = min(self.first_message, later.first_message), max(self.last_message, later.last_message)
        return ImportPart(self.session_id, first, last, self.title, self.model)


@dataclass(frozen=True, slots=True)
class LoggedImport:
    """One import: when it ran, what it read, and how many sessions, proposals, items and states it added or made."""

    id: str
    began: float
    ended: float | None
    sources: tuple[str, ...]
    sessions: int
    undone: float | None
    proposals: int = 0
    items: int = 0
    states: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedImport:
    """An import without an end: it runs, or it was killed."""

    id: str
    user: str
    after_message: int
    """The highest id of a message in the store when it started."""
    sources: tuple[str, ...]


class ImportLog:
    """The imports of one user into one store; `reading` and `writing` open the database of imports."""

    def __init__(
        self,
        user: str,
        reading: Callable[[], AbstractContextManager[Connection] | None],
        writing: Callable[[], AbstractContextManager[Connection]],
    ) -> None:
        """`reading` returns None while there is no database."""
        self._user = user
        self._reading = reading
        self._writing = writing

    def start(self, import_id: str, source: str, after_message: int) -> None:
        """Record that an import starts, or that it continues with another source."""
        with self._writing() as connection:
            row = connection.execute("SELECT sources FROM imports WHERE id = ?", (import_id,)).fetchone()
            sources = list(dict.fromkeys([*(json.loads(row[0]) if row else ()), source]))
            connection.execute(
                "INSERT INTO imports (id, user_id, began, after_message, sources) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (id) DO UPDATE SET sources = excluded.sources, ended = NULL, undone = NULL,"
                " after_message = excluded.after_message",
                (import_id, self._user, time.time(), after_message, json.dumps(sources)),
            )

    def finish(self, import_id: str) -> None:
        with self._writing() as connection:
            connection.execute("UPDATE imports SET ended = ? WHERE id = ?", (time.time(), import_id))
            connection.execute(f"DELETE FROM imports WHERE id = ? AND NOT {_ADDED}", (import_id,))

    def unfinished(self) -> list[UnfinishedImport]:
        """Return the imports without an end; on a server those of this user, in a file those of all users."""
        rows = self._rows("SELECT id, user_id, after_message, sources FROM imports WHERE ended IS NULL")
        return [UnfinishedImport(name, user, after, tuple(json.loads(sources))) for name, user, after, sources in rows]

    def save_parts(self, connection: Connection, import_id: str, parts: Iterable[ImportPart]) -> None:
        """Save the parts of sessions in the transaction that saves how far their file was read."""
        connection.executemany(
            "INSERT INTO import_parts (import_id, session_id, first_message, last_message, title, model, user_id)"
            f" VALUES (?, ?, ?, ?, ?, ?, {_USER_OF_IMPORT}) ON CONFLICT (import_id, session_id) DO UPDATE SET"
            " first_message = CASE WHEN excluded.first_message < import_parts.first_message"
            "  THEN excluded.first_message ELSE import_parts.first_message END,"
            " last_message = CASE WHEN excluded.last_message > import_parts.last_message"
            "  THEN excluded.last_message ELSE import_parts.last_message END",
            [(import_id, p.session_id, p.first_message, p.last_message, p.title, p.model, import_id) for p in parts],
        )

    def save_proposal(self, import_id: str, proposal_id: str, target: Target) -> None:
        """Save that an import makes a proposal, before the approval queue has it."""
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO import_proposals (import_id, proposal_id, target, user_id) VALUES (?, ?, ?, ?)",
                (import_id, proposal_id, target, self._user),
            )

    def proposals(self, import_id: str) -> list[str]:
        """Return the ids of the proposals that an import made."""
        query = "SELECT proposal_id FROM import_proposals WHERE import_id = ? ORDER BY proposal_id"
        return [proposal_id for (proposal_id,) in self._rows(query, import_id)]

    def settle(self, import_id: str, ranges: Mapping[str, tuple[int, int]]) -> None:
        """Give a killed import the messages that it added after its last checkpoint, by session, and end it."""
        with self._writing() as connection:
            self.save_parts(connection, import_id, [ImportPart(name, *ids) for name, ids in ranges.items()])
            connection.execute("UPDATE imports SET ended = began WHERE id = ? AND ended IS NULL", (import_id,))

    def imports(self) -> list[LoggedImport]:
        """Return all imports of this user, the newest first."""
        rows = self._rows(
            "SELECT id, began, ended, sources, undone,"
            f" (SELECT count(*) FROM import_parts WHERE import_id = imports.id AND {_IS_SESSION}),"
            " (SELECT count(*) FROM import_proposals WHERE import_id = imports.id),"
            f" (SELECT count(*) FROM import_parts WHERE import_id = imports.id AND {_IS_ITEM}),"
            f" (SELECT count(*) FROM import_parts WHERE import_id = imports.id AND {_IS_STATE})"
            " FROM imports WHERE user_id = ? ORDER BY began DESC, id DESC",
            self._user,
        )
        return [
            LoggedImport(name, began, ended, tuple(json.loads(sources)), sessions, undone, *others)
            for name, began, ended, sources, undone, sessions, *others in rows
        ]

    def parts(self, import_id: str) -> list[ImportPart]:
        """Return the parts of an import, the newest first, so that a branch precedes the session it came from."""
        return self._parts(f"{_IS_SESSION} AND import_id = ?", import_id)

    def items(self, import_id: str) -> dict[str, int]:
        """Return the items that an import wrote, by id, with the version that it added."""
        parts = self._parts(f"{_IS_ITEM} AND import_id = ?", import_id)
        return {part.session_id.removeprefix(_ITEM): part.last_message for part in parts}

    def save_items(self, import_id: str, versions: Iterable[tuple[str, int]]) -> None:
        """Save that an import adds these versions to items, before the record has them."""
        parts = [ImportPart(f"{_ITEM}{item_id}", version, version) for item_id, version in versions]
        with self._writing() as connection:
            self.save_parts(connection, import_id, parts)

    def states(self, import_id: str) -> list[list[str]]:
        """Return the names of the checkpoints that an import stored: thread, namespace and id."""
        parts = self._parts(f"{_IS_STATE} AND import_id = ?", import_id)
        return [json.loads(part.session_id.removeprefix(_STATE)) for part in parts]

    def save_states(self, import_id: str, names: Iterable[Sequence[str]]) -> None:
        """Save that an import stores these checkpoints, before they are stored."""
        with self._writing() as connection:
            self.save_parts(connection, import_id, [ImportPart(f"{_STATE}{json.dumps(each)}", 0, 0) for each in names])

    def all_parts(self, session_id: str) -> list[ImportPart]:
        return self._parts("session_id = ?", session_id)

    def _parts(self, condition: str, value: str) -> list[ImportPart]:
        columns = "session_id, first_message, last_message, title, model"
        query = f"SELECT {columns} FROM import_parts WHERE {condition} ORDER BY first_message DESC"
        return [ImportPart(*row) for row in self._rows(query, value)]

    def _rows(self, query: str, *values: str) -> list[Any]:
        """Return the rows of a query; none while there is no database."""
        reading = self._reading()
        if reading is None:
            return []
        with reading as connection:
            return connection.execute(query, values).fetchall()

    def remove_parts(self, import_id: str, session_ids: Iterable[str], *, proposals: bool = False) -> None:
        """Remove the parts that were undone, the items, the states, and perhaps the proposals.

        Without any part it counts as undone.
        """
        with self._writing() as connection:
            connection.executemany(
                "DELETE FROM import_parts WHERE import_id = ? AND session_id = ?",
                [(import_id, session_id) for session_id in session_ids],
            )
            connection.execute(f"DELETE FROM import_parts WHERE import_id = ? AND NOT ({_IS_SESSION})", (import_id,))
            if proposals:
                connection.execute("DELETE FROM import_proposals WHERE import_id = ?", (import_id,))
            connection.execute(f"UPDATE imports SET undone = ? WHERE id = ? AND NOT {_ADDED}", (time.time(), import_id))


class ImportRecorder:
    """Collects what one import adds, and passes it to the log; without an id, nothing is logged."""

    def __init__(self, log: ImportLog, source: str, import_id: str | None, last_message_id: Callable[[], int]) -> None:
        """`last_message_id` returns the highest id of a message in the store."""
        self._log = log
        self._last_message_id = last_message_id
        self._source = source
        self._import_id = import_id
        self._started = False
        self._parts: dict[str, ImportPart] = {}

    def start(self) -> None:
        """Log the import before its first message or proposal."""
        if self._import_id is not None and not self._started:
            self._log.start(self._import_id, self._source, self._last_message_id())
            self._started = True

    def add_proposal(self, proposal_id: str, target: Target) -> None:
        """Log a proposal before it is made."""
        self.start()
        if self._import_id is not None:
            self._log.save_proposal(self._import_id, proposal_id, target)

    def add_items(self, versions: Collection[tuple[str, int]]) -> None:
        """Log the versions that are about to be added to items."""
        if versions and self._import_id is not None:
            self.start()
            self._log.save_items(self._import_id, versions)

    def add_states(self, names: Collection[Sequence[str]]) -> None:
        """Log the checkpoints that are about to be stored."""
        if self._import_id is not None:
            self.start()
            self._log.save_states(self._import_id, names)

    def add(self, session_id: str, row: Mapping[str, Any] | None, message_ids: Collection[int]) -> None:
        """Remember the messages that were added to a session; `row` is its row before, if it had one."""
        if not message_ids:
            return
        before = row or {}
        part = ImportPart(session_id, min(message_ids), max(message_ids), before.get("title"), before.get("model"))
        self._parts[session_id] = self._parts[session_id].joined(part) if session_id in self._parts else part

    def take_parts(self) -> tuple[str, list[ImportPart]] | None:
        """Return the id of the import with the parts since the last call."""
        parts, self._parts = list(self._parts.values()), {}
        return (self._import_id, parts) if self._import_id is not None else None

    def finish(self) -> None:
        if self._import_id is not None and self._started:
            self._log.finish(self._import_id)


def is_import_of(importing_user: str, session_id: str, user: str | None) -> bool:
    """Whether a user ('' is the owner of the home) has imported a session, which belongs to a user of the record.

    The owner imports sessions of users, too; their names have no mark of the user who imports.
    """
    by_framework = session_id.partition(":")[0].endswith(user_mark(user or ""))
    is_named_by_user = bool(user) and (session_id.endswith(user_ending(user or "")) or by_framework)
    return is_named_by_user and user == importing_user if importing_user else not is_named_by_user


def user_ending(user: str) -> str:
    """How the names of the sessions end that a user of a gateway imports."""
    return f"-{digest(user)[:12]}"
