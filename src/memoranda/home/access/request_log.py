"""What the service keeps about requests: the audit log, and answers that a repeated request gets again.

The audit log says which key changed curated memory or deleted something, when, and in which request. The answers to
requests with an Idempotency-Key are kept for a day.
"""

import time

from memoranda.home.access.service_database import ServiceDatabase
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action; `user` is whose data it was, as stored, and None for the home's owner."""

    id: int
    at: float
    key_id: str
    tenant: str
    user: str | None
    action: str
    subject: str
    request_id: str


class AuditLog:
    """Appends and reads the audit log of one home."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database

    def add(self, *, key_id: str, tenant: str, user: str | None, action: str, subject: str, request_id: str) -> None:
        """Add an entry; it is durable when this returns."""
        with self._database.open().writing() as connection:
            connection.execute(
                "INSERT INTO audit_log (at, key_id, tenant, user_id, action, subject, request_id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (time.time(), key_id, tenant, user, action, subject[:300], request_id),
            )

    def read(
        self, *, tenant: str | None = None, user: str | None = None, before: int | None = None, limit: int = 50
    ) -> list[AuditEntry]:
        """The latest entries, newest first: of all tenants or one, of all users or one, before an entry's id."""
        conditions, values = ["1 = 1"], list[object]()
        for condition, value in (("tenant = ?", tenant), ("user_id = ?", user), ("id < ?", before)):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        rows = self._database.fetch_all(
            "SELECT id, at, key_id, tenant, user_id, action, subject, request_id FROM audit_log"
            f" WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
            (*values, limit),
        )
        return [AuditEntry(*row) for row in rows]


KEEP_SECONDS = 86_400.0
_CLEAN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to a request, and the fingerprint of that request."""

    fingerprint: str
    status: int
    body: str


class Answers:
    """The stored answers of one home."""

    def __init__(self, database: ServiceDatabase) -> None:
        self._database = database
        self._cleaned_at = 0.0

    def find(self, token: str) -> StoredAnswer | None:
        """The answer that was stored for a token within a day."""
        rows = self._database.fetch_all(
            "SELECT fingerprint, status, body FROM answers WHERE token = ? AND at > ?",
            (token, time.time() - KEEP_SECONDS),
        )
        return next((StoredAnswer(mark, int(status), body) for mark, status, body in rows), None)

    def store(self, token: str, answer: StoredAnswer) -> bool:
        """Store an answer; False if a request at the same time stored one first. Deletes old ones now and then."""
        now = time.time()
        with self._database.open().writing() as connection:
            added = connection.execute(
                "INSERT INTO answers (token, fingerprint, status, body, at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (token) DO UPDATE SET fingerprint = excluded.fingerprint, status = excluded.status,"
                " body = excluded.body, at = excluded.at WHERE answers.at <= ?",
                (token, answer.fingerprint, answer.status, answer.body, now, now - KEEP_SECONDS),
            )
            if now - self._cleaned_at > _CLEAN_SECONDS:
                connection.execute("DELETE FROM answers WHERE at <= ?", (now - KEEP_SECONDS,))
                self._cleaned_at = now
        return bool(added.rowcount)
