"""Jobs of the outbox as a person sees them: what waits for which provider, and why it was not delivered."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from memoranda.storage.connection import Connection
from memoranda.storage.sqlite.stored_texts import readable_rows


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One undelivered job; `texts` are the texts that the provider will receive, by the names of its arguments.

    `next_try` is a timestamp, in the past if it can be delivered now.
    """

    id: int
    provider: str
    kind: str
    session_id: str
    created: float
    attempts: int
    next_try: float
    last_error: str
    state: Literal["waiting", "parked"]
    texts: tuple[tuple[str, str], ...]


def list_jobs(connection: Connection, scope: str, limit: int, after: int = 0) -> list[ListedJob]:
    """The jobs of a scope in order, after the one with a number."""
    rows = readable_rows(
        connection,
        "SELECT id, provider, kind, session_id, created, attempts, next_try, last_error, state, payload FROM jobs"
        " WHERE scope = ? AND id > ? ORDER BY id LIMIT ?",
        (scope, after, limit),
    )
    return [
        ListedJob(number, provider, kind, session, created, attempts, next_try, error, state, _texts(payload))
        for number, provider, kind, session, created, attempts, next_try, error, state, payload in rows
    ]


def _texts(payload: str) -> tuple[tuple[str, str], ...]:
    try:
        args: Any = json.loads(payload)["args"]
    except (ValueError, TypeError, KeyError, RecursionError):
        # A damaged job; the doctor reports it.
        return ()
    if not isinstance(args, dict):
        return ()
    return tuple((str(name), value) for name, value in args.items() if isinstance(value, str) and value)
