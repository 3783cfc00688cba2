"""Saves what can still be read of a damaged store into a new one; what was there is kept beside it."""

from pathlib import Path

from memoranda.db.damaged import readable_rows, rebuild
from memoranda.db.schema import STATE_META
from memoranda.db.sqlite import Connection
from memoranda.sessions.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.sessions.store import SessionStore


def salvage(path: Path, keep_as: Path) -> dict[str, int]:
    """Build a new store from the readable rows, then put it in the place of the damaged one; rows saved per table."""
    return rebuild(path, keep_as, lambda empty: SessionStore(empty).close(), _take)


def _take(damaged: Connection, fresh: Path) -> dict[str, int]:
    with SessionStore(fresh) as store:
        return store.take_rows(
            {
                SESSIONS.name: readable_rows(damaged, SESSIONS),
                MESSAGES.name: readable_rows(damaged, MESSAGES),
                DELETED_SESSIONS.name: readable_rows(damaged, DELETED_SESSIONS),
                STATE_META.name: (
                    row for row in readable_rows(damaged, STATE_META) if row.get("key") not in (None, "store_id")
                ),
            }
        )
