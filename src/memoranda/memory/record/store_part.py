"""The base of all parts of the session store: the engine, the scope that it may see, and the redactor.

A name that a caller chooses (an id, a source, a project) may contain a credential, which must not reach the file, and
the caller must still find its session by that id. So every public method converts its names to their stored form first.
What is called within a transaction takes a `StoredName`: the type checker refuses a name that was not converted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NewType, overload

from memoranda.errors import ContinuedError, SessionChangedError, SessionError, UnknownSessionError
from memoranda.memory.record.scope import Scope
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine, Statement

if TYPE_CHECKING:
    # A part that only reads, for example in a hook, need not load the scanner.
    from memoranda.safety.redaction import Redactor

StoredName = NewType("StoredName", str)
"""A name as the store has it: without credentials."""

ConvertName = Callable[[str], str]


class StorePart:
    """Some operations on the tables of one store, for one scope."""

    _scoped_table = "sessions"
    """The table that the condition `_in_scope` is about."""

    def __init__(self, engine: Engine, scope: Scope, redactor: "Redactor | None") -> None:
        self._engine = engine.acting_for(scope.user, everyone=scope.all)
        self.common = (engine, scope, redactor)
        self._dialect = engine.dialect
        self._scope = scope
        self._redactor = redactor
        self._name: ConvertName | None = None if redactor is None else redactor.name
        # Its values are `self._scope.values`.
        self._in_scope = scope.condition(self._scoped_table)

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """Everything read inside the block sees the same state of the store, and reading is faster."""
        with self._engine.reading():
            yield

    def view_in_file(self) -> AbstractContextManager[None]:
        """One view where it makes reading faster, which is in a file; a server would need a round trip to end it."""
        return nullcontext() if self._dialect.batches_reads else self.one_view()

    def _read_at_once(self, *statements: Statement) -> list[list[Any]]:
        """The rows of statements that do not need each other's; on a server in one round trip, outside a view."""
        with self._engine.reading() as view:
            return self._dialect.read_at_once(view, statements)

    def _fetch_all(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one statement, as a view of its own or as a part of the one that is open."""
        (rows,) = self._read_at_once((statement, values))
        return rows

    def _fetch_one(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first of these rows; None without any."""
        return next(iter(self._fetch_all(statement, values)), None)

    @contextmanager
    def _changing(self, session_id: StoredName) -> Iterator[Connection]:
        """A transaction that has locked a session; raises SessionError unless the session exists in this scope."""
        with self._engine.writing() as connection:
            self._engine.lock_session(connection, session_id)
            self._require(connection, session_id)
            yield connection

    def _require(self, connection: Connection, session_id: StoredName) -> None:
        """Raise SessionError unless the session exists in this scope."""
        if not self._exists(connection, session_id):
            raise unknown_session(session_id)

    def _read_successor(self, connection: Connection, session_id: StoredName) -> str | None:
        """The session that continues this one after compression; raises SessionError as `_require` does."""
        row = connection.execute(
            f"SELECT successor_id FROM sessions WHERE id = ? AND {self._in_scope}", (session_id, *self._scope.values)
        ).fetchone()
        if row is None:
            raise unknown_session(session_id)
        successor: str | None = row[0]
        return successor

    def _exists(self, connection: Connection, session_id: StoredName) -> bool:
        found = connection.execute(
            f"SELECT 1 FROM sessions WHERE id = ? AND {self._in_scope}", (session_id, *self._scope.values)
        )
        return found.fetchone() is not None

    def _require_everyone(self) -> None:
        """Raise SessionError unless this store sees every user, because the answer would concern all of them."""
        if not self._scope.all:
            raise SessionError("This call covers the sessions of all users; this store is open for one user.")

    @overload
    def _stored_name(self, name: str) -> StoredName: ...
    @overload
    def _stored_name(self, name: None) -> None: ...
    def _stored_name(self, name: Any) -> Any:
        """The stored form of a name; any other value as it is."""
        return name if self._name is None or not isinstance(name, str) else self._name(name)

    def _stored_names(self, names: Iterable[str]) -> list[StoredName]:
        """The stored forms of several names; a string is one name, not a list of letters."""
        return [self._stored_name(name) for name in ([names] if isinstance(names, str) else names)]

    def _redact(self, value: Any) -> tuple[Any, int]:
        """Return the value as it may be stored, and how many secrets were removed from it."""
        try:
            return (value, 0) if self._redactor is None else self._redactor.value(value)
        except RecursionError:
            raise SessionError("The value to be stored is nested too deeply, or contains itself.") from None

    def _is_clean(self, values: Sequence[Any]) -> bool:
        """Whether none of the values contains a secret; False if they must be redacted one by one."""
        try:
            return self._redactor is None or self._redactor.is_clean(values)
        except RecursionError:
            # One of them cannot be stored; `_redact` says why.
            return False


def unknown_session(session_id: str) -> UnknownSessionError:
    return UnknownSessionError(f"There is no session {session_id!r}.")


def refuse_continued(connection: Connection, session_id: str) -> None:
    """Raise ContinuedError if the session was compressed and has a continuation."""
    row = connection.execute("SELECT successor_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is not None and row[0] is not None:
        raise ContinuedError(session_id, row[0])


def count_redactions(connection: Connection, count: int) -> None:
    """Add to the number of removed secrets, in the transaction that stores the rest."""
    if count:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('redacted_secrets', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(state_meta.value AS INTEGER) + ? AS TEXT)",
            (str(count), count),
        )


@cache
def counting_statements(in_scope: str) -> tuple[str, str]:
    """The statements that add to a session's counters: one for messages within the same hour, one for all others."""
    latest = "{0} = CASE WHEN own_message_count = 0 OR last_active < ? THEN COALESCE(?, {0}) ELSE {0} END"
    counted = (
        "UPDATE sessions SET message_count = message_count + ?, own_message_count = own_message_count + ?,"
        " tool_call_count = tool_call_count + ?,"
        f" {latest.format('last_active')}"
    )
    return (
        f"{counted} WHERE active_hour = ? AND id = ? AND {in_scope}",
        f"{counted}, {latest.format('active_hour')} WHERE id = ? AND {in_scope}",
    )


def refuse_newer(connection: Connection, session_id: str, last_seen: int, names: Iterable[str | None]) -> None:
    """Raise SessionChangedError if a session has other messages after the last one that its writer has read.

    `names` are the external ids of what is written: an attempt whose answer was lost may have stored them already.
    """
    own = [name for name in names if name is not None]
    other = f" AND (external_id IS NULL OR external_id NOT IN ({', '.join('?' * len(own))}))" if own else ""
    (newest,) = connection.execute(
        f"SELECT max(id) FROM messages WHERE session_id = ? AND active = 1 AND id > ?{other}",
        (session_id, last_seen, *own),
    ).fetchone()
    if newest is not None:
        raise SessionChangedError(
            f"Session {session_id!r} ends with message {newest}, not with {last_seen}: it has changed since it was "
            "read. Nothing was appended."
        )
