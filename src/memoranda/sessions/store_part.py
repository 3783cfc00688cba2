"""What the parts of the session store share: the database, the scope they may see, and the redactor."""

from typing import Any

from memoranda.db.sqlite import Connection, Database
from memoranda.errors import SessionError
from memoranda.safety.redaction import Redactor
from memoranda.sessions.scope import Scope


class StorePart:
    """A few methods of the store over the same database; `SessionStore` is all parts together."""

    _db: Database
    _scope: Scope
    _redactor: Redactor | None

    @property
    def _seen(self) -> str:
        """The scope as a condition on `sessions`; its values are `self._scope.values`."""
        return self._scope.condition("sessions")

    def _require(self, connection: Connection, session_id: str) -> None:
        """Raise unless the session is there for this scope."""
        if not self._exists(connection, session_id):
            raise unknown(session_id)

    def _exists(self, connection: Connection, session_id: str) -> bool:
        found = connection.execute(
            f"SELECT 1 FROM sessions WHERE id = ? AND {self._seen}", (session_id, *self._scope.values)
        )
        return found.fetchone() is not None

    def _require_everyone(self) -> None:
        """Raise unless this store sees every user: what is asked for is not one user's."""
        if not self._scope.all:
            raise SessionError("That concerns everybody's sessions; this store is open for one user.")

    def _redact(self, value: Any) -> tuple[Any, int]:
        """A value as it may be stored, and how many secrets were taken out of it."""
        try:
            return (value, 0) if self._redactor is None else self._redactor.value(value)
        except RecursionError:
            raise SessionError("What is to be stored is nested too deeply, or contains itself.") from None


def unknown(session_id: str) -> SessionError:
    return SessionError(f"There is no session {session_id!r} here.")


def count_redactions(connection: Connection, count: int) -> None:
    """Add to the number of secrets that were kept out, in the transaction that stores the rest."""
    if count:
        connection.execute(
            "INSERT INTO state_meta (key, value) VALUES ('redacted_secrets', ?)"
            " ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(state_meta.value AS INTEGER) + ? AS TEXT)",
            (str(count), count),
        )
