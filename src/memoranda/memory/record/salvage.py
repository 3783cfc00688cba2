"""Saves the readable rows of a damaged session store into a new one, and keeps the damaged file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.memory.record.checksums import CHECKSUM, is_damaged, mark_damaged
from memoranda.memory.record.item_tables import ITEMS
from memoranda.memory.record.message_rows import WRITTEN, checksum_of_row
from memoranda.memory.record.prompt_tables import SYSTEM_PROMPTS
from memoranda.memory.record.record import read_marker, write_marker
from memoranda.memory.record.schema import DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.memory.record.store import open_store
from memoranda.memory.record.system_prompts import prompt_id
from memoranda.storage.salvage.leaf_rows import PartialRow
from memoranda.storage.salvage.rebuild import DamagedDatabase, is_database, rebuild
from memoranda.storage.schema import STATE_META

DAMAGED_MESSAGES = "damaged messages"
"""The key of the number of messages that were saved with damage, and are marked."""

_ZEROS = "\0" * 8


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
    marks = Counter[str]()
    with open_store(fresh, guarded=False) as store:
        saved = store.maintenance.take_rows(
            {
                SESSIONS.name: map(_complete_session, damaged.rows(SESSIONS)),
                MESSAGES.name: _mark_damaged(damaged.rows(MESSAGES), marks),
                DELETED_SESSIONS.name: damaged.rows(DELETED_SESSIONS),
                ITEMS.name: damaged.rows(ITEMS),
                SYSTEM_PROMPTS.name: filter(_is_whole_prompt, damaged.rows(SYSTEM_PROMPTS)),
                STATE_META.name: (row for row in damaged.rows(STATE_META) if row.get("key") not in (None, "store_id")),
            }
        )
        with store.engine.writing() as connection:
            connection.execute(
                "UPDATE sessions SET started_at = (SELECT min(timestamp) FROM messages WHERE session_id = sessions.id)"
                " WHERE started_at = 0 AND id IN (SELECT session_id FROM messages)"
            )
    return {**saved, DAMAGED_MESSAGES: marks[DAMAGED_MESSAGES]}


def _mark_damaged(rows: Iterable[dict[str, Any]], marks: Counter[str]) -> Iterator[dict[str, Any]]:
    """The rows of messages; those that are not as they were stored get the field DAMAGED, and `marks` counts them."""
    latest: dict[Any, float] = {}
    for row in rows:
        damaged = is_damaged(row)
        if isinstance(row, PartialRow) or damaged or (damaged is None and _has_lost_text(row)):
            marks[DAMAGED_MESSAGES] += 1
            yield _as_damaged(row, latest.get(row.get("session_id"), 0.0))
            continue
        if isinstance(timestamp := row.get("timestamp"), float):
            latest[row.get("session_id")] = timestamp
        yield row


def _as_damaged(row: dict[str, Any], timestamp: float) -> dict[str, Any]:
    """A row with the mark of a damaged message, without the zeros that replace lost text.

    The columns after a lost text are lost as well; then the message has the time of the one before it.
    """
    marked = {name: _without_zeros(value) for name, value in row.items()}
    marked["extra"] = mark_damaged(marked.get("extra"))
    if not isinstance(marked.get("timestamp"), float) or not marked["timestamp"]:
        marked["timestamp"] = timestamp
    try:
        marked[CHECKSUM] = checksum_of_row(str(marked.get("session_id")), [marked.get(name) for name in WRITTEN])
    except UnicodeEncodeError:
        # It stays recognisable without a checksum, by its mark.
        marked[CHECKSUM] = None
    return marked


def _complete_session(row: dict[str, Any]) -> dict[str, Any]:
    """A session without zeros for lost text; a prompt that is lost in part is lost, because it is used as it is."""
    if not isinstance(row, PartialRow) and not _has_lost_text(row):
        return row
    return {
        **{name: _without_zeros(value) for name, value in row.items()},
        "system_prompt": None,
        "started_at": row.get("started_at") or 0.0,
    }


def _is_whole_prompt(row: Mapping[str, Any]) -> bool:
    text = row.get("text")
    return isinstance(text, str) and prompt_id(row.get("user_id"), text) == row.get("id")


def _has_lost_text(row: Mapping[str, Any]) -> bool:
    """Whether SQLite read zeros for a part of a text that is not in the file any more."""
    return any(isinstance(value, str) and value.endswith(_ZEROS) for value in row.values())


def _without_zeros(value: Any) -> Any:
    return value.rstrip("\0") or None if isinstance(value, str) and value.endswith("\0") else value
