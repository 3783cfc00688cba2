"""Answers to requests with an Idempotency-Key: a repeated request gets the first answer again, for a day."""

import time
from dataclasses import dataclass

from memoranda.home.access.service_database import ServiceDatabase

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
        if not self._database.exists():
            return None
        with self._database.open().reading() as connection:
            row = connection.execute(
                "SELECT fingerprint, status, body FROM answers WHERE token = ? AND at > ?",
                (token, time.time() - KEEP_SECONDS),
            ).fetchone()
        return None if row is None else StoredAnswer(row[0], int(row[1]), row[2])

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
