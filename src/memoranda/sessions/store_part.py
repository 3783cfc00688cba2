"""The base of all parts of the session store: the engine, the scope that it may see, and the redactor."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memoranda.db.connection import Connection
from memoranda.db.engine import Engine
from memoranda.errors import SessionError
from memoranda.sessions.scope import Scope

if TYPE_CHECKING:
    # A part that only reads, for example in a hook, need not load the scanner.
    from memoranda.safety.redaction import Redactor


class StorePart:
    """Some operations on the tables of one store, for one scope."""

    def __init__(self, engine: Engine, scope: Scope, redactor: "Redactor | None") -> None:
        self._engine = engine
        self._dialect = engine.dialect
        self._scope = scope
        self._redactor = redactor
        # A condition on `sessions`; its values are `self._scope.values`.
        self._in_scope = scope.condition("sessions")

    def _require(self, connection: Connection, session_id: str) -> None:
        """Raise SessionError unless the session exists in this scope."""
        if not self._exists(connection, session_id):
            raise unknown_session(session_id)

    def _exists(self, connection: Connection, session_id: str) -> bool:
        found = connection.execute(
            f"SELECT 1 FROM sessions WHERE id = ? AND {self._in_scope}", (session_id, *self._scope.values)
        )
        return found.fetchone() is not None

    def _require_everyone(self) -> None:
        """Raise SessionError unless this store sees every user, because the answer would concern all of them."""
        if not self._scope.all:
            raise SessionError("This call covers the sessions of all users; this store is open for one user.")

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


def unknown_session(session_id: str) -> SessionError:
    return SessionError(f"There is no session {session_id!r}.")


def count_redactions(connection: Connection, count: int) -> None:
    """Add to the number of removed secrets, in the transaction that stores the rest."""
    if count:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('redacted_secrets', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(state_meta.value AS INTEGER) + ? AS TEXT)",
            (str(count), count),
        )
