"""Past conversations for tests: a store with a few of them, each written in one line."""

from collections.abc import Iterable
from typing import Any

from memoranda.home.session_db import SessionDB

BEGIN = 1_750_000_000.0


def tell(db: SessionDB, session_id: str, messages: Iterable[Any], *, at: float = BEGIN, **session: Any) -> list[int]:
    """Record a session. A message is (role, content, fields), or text that user and assistant say by turns."""
    db.create_session(session_id, session.pop("source", "cli"), started_at=at, **session)
    rows = []
    for number, said in enumerate(messages):
        by_turns = ("assistant" if number % 2 else "user", said)
        role, content, *fields = by_turns if isinstance(said, str) else said
        rows.append({"role": role, "content": content, "timestamp": at + 60 * number, **(fields[0] if fields else {})})
    return db.append_messages(session_id, rows)
