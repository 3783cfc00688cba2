"""The audit log: which key changed curated memory or deleted something, when, and in which request."""

import time
from dataclasses import dataclass

from memoranda.home.access.service_database import ServiceDatabase


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
        if not self._database.exists():
            return []
        conditions, values = ["1 = 1"], list[object]()
        for condition, value in (("tenant = ?", tenant), ("user_id = ?", user), ("id < ?", before)):
            if value is not None:
                conditions.append(condition)
                values.append(value)
        with self._database.open().reading() as connection:
            rows = connection.execute(
                "SELECT id, at, key_id, tenant, user_id, action, subject, request_id FROM audit_log"
                f" WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
        return [AuditEntry(*row) for row in rows]
