"""Saves what can still be read of a damaged store into a new one; what was there is kept beside it."""

from collections import Counter
from pathlib import Path

from memoranda.db.salvage.rebuild import is_database, readable_rows, rebuild
from memoranda.db.schema import STATE_META
from memoranda.db.sqlite import Connection
from memoranda.errors import StorageError
from memoranda.sessions.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.sessions.store import SessionStore


def salvage(path: Path, keep_as: Path, past_damage: Counter[str] | None = None) -> dict[str, int]:
    """Build a new store from the readable rows, then put it in the place of the damaged one; rows saved per table.

    `past_damage` counts those among them that stood behind damaged pages.
    """
    known = is_database(path)

    def fill(damaged: Connection, fresh: Path) -> dict[str, int]:
        taken = _take(damaged, fresh, Counter() if past_damage is None else past_damage)
        if not known and not taken[SESSIONS.name] + taken[MESSAGES.name]:
            # Only a file that was ours is replaced; anything else is left for a person.
            raise StorageError(
                f"{path} is not a database at all. Move it away and restore it from a backup or an export."
            )
        return taken

    return rebuild(path, keep_as, lambda empty: SessionStore(empty).close(), fill)


def _take(damaged: Connection, fresh: Path, past_damage: Counter[str]) -> dict[str, int]:
    with SessionStore(fresh) as store:
        return store.take_rows(
            {
                SESSIONS.name: readable_rows(damaged, SESSIONS, past_damage),
                MESSAGES.name: readable_rows(damaged, MESSAGES, past_damage),
                DELETED_SESSIONS.name: readable_rows(damaged, DELETED_SESSIONS),
                STATE_META.name: (
                    row for row in readable_rows(damaged, STATE_META) if row.get("key") not in (None, "store_id")
                ),
            }
        )
