"""Saves the readable rows of a damaged session store into a new one, and keeps the damaged file."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from memoranda.db.salvage.rebuild import DamagedDatabase, is_database, rebuild
from memoranda.db.schema import STATE_META
from memoranda.errors import StorageError
from memoranda.sessions.record import read_marker, write_marker
from memoranda.sessions.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.sessions.store import open_store


def salvage(path: Path, keep_as: Path, past_damage: Counter[str] | None = None) -> dict[str, int]:
    """Replace a damaged store with a new one with its readable rows; return how many rows of each table were saved.

    `past_damage` counts the saved rows that were read from after damaged pages.
    """
    was_database = is_database(path)
    marker = read_marker(path)

    def fill(damaged: DamagedDatabase, fresh: Path) -> dict[str, int]:
        saved = _copy_rows(damaged, fresh)
        if past_damage is not None:
            counts = damaged.past_damage
            past_damage.update({name: counts[name] for name in (SESSIONS.name, MESSAGES.name) if counts[name]})
        if not was_database and not saved[SESSIONS.name] + saved[MESSAGES.name]:
            # Replaces only a file that was a database of ours; a person must look at anything else.
            raise StorageError(f"{path} is not a database. Move it away and restore it from a backup or an export.")
        if marker is not None:
            # Written before the file is replaced: whenever this process is killed, the store in place is recognised.
            write_marker(path, replace(marker, replaced_by=_store_id(fresh)))
        return saved

    known_columns = marker.columns if marker is not None else {}
    saved = rebuild(path, keep_as, lambda empty: open_store(empty, guarded=False).close(), fill, known_columns)
    # Writes the marker of the new store.
    open_store(path).close()
    return saved


def _store_id(path: Path) -> str:
    with open_store(path, guarded=False) as store:
        return store.feed.store_id()


def _copy_rows(damaged: DamagedDatabase, fresh: Path) -> dict[str, int]:
    with open_store(fresh, guarded=False) as store:
        return store.maintenance.take_rows(
            {
                SESSIONS.name: damaged.rows(SESSIONS),
                MESSAGES.name: damaged.rows(MESSAGES),
                DELETED_SESSIONS.name: damaged.rows(DELETED_SESSIONS),
                STATE_META.name: (row for row in damaged.rows(STATE_META) if row.get("key") not in (None, "store_id")),
            }
        )
