"""Checks the session store for the doctor, and repairs it.

A damaged store is salvaged: its readable rows are saved into a new one, and the damaged file is kept.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError, StoreMismatchError
from memoranda.memory.record.checksums import CHECKSUM, is_damaged, mark_damaged
from memoranda.memory.record.message_rows import WRITTEN, checksum_of_row
from memoranda.memory.record.record import MarkerGuard, read_marker, write_marker
from memoranda.memory.record.schema import (
    DELETED_SESSIONS,
    ITEMS,
    MESSAGES,
    NOTIFICATIONS,
    SESSIONS,
    SYSTEM_PROMPTS,
    VERSION_TABLES,
)
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.memory.record.system_prompts import SharedPrompts, prompt_id
from memoranda.storage.health import check_file
from memoranda.storage.orphaned_wal import main_file_missing
from memoranda.storage.salvage.leaf_rows import PartialRow
from memoranda.storage.salvage.rebuild import DamagedDatabase, damaged_copy_path, is_database, list_kept_files, rebuild
from memoranda.storage.schema import STATE_META
from memoranda.support.health_issues import HealthIssue, Progress

DAMAGED_MESSAGES = "damaged messages"
"""The key of the number of messages that were saved with damage, and are marked."""

_ZEROS = "\0" * 8

_MAX_SHOWN = 5


def check(path: Path, deep: Progress | None = None) -> Iterator[HealthIssue]:
    """Yield the problems of `state.db`: whether it is readable, undamaged, complete, correctly counted and private.

    With `deep`, which is notified of the progress, the indexes of the tables are checked, too.
    """
    try:
        MarkerGuard(path).refuse_new()
    except StoreMismatchError as error:
        if not main_file_missing(path):
            yield _mismatch_issue(path, error)
            return
    yield from check_file(path, lambda: _check_content(path, deep), lambda problem: _damage_issue(path, problem))


def _check_content(path: Path, deep: Progress | None) -> Iterator[HealthIssue]:
    try:
        store = open_store(path, wait=2.0)
    except StoreMismatchError as error:
        yield _mismatch_issue(path, error)
        return
    with store:
        yield from _check_store(path, store, deep)


def _mismatch_issue(path: Path, error: StoreMismatchError) -> HealthIssue:
    """The issue for a store that is not the one of the home; only a person can say which one is right."""
    problem = str(error).removeprefix(f"{path} ").partition(". ")[0]
    if error.reason == "unrecognised":
        return _damage_issue(path, problem)
    if error.reason == "missing":
        remedy = (
            "put the file back from a backup, while nothing uses the home; if there is none, 'memoranda doctor "
            "--accept-store' starts with an empty store, and 'memoranda import' fills it from the programs that still "
            "have the conversations"
        )
    else:
        remedy = (
            "put the right file back, while nothing uses the home; if this one is right, for example a backup that you "
            "restored, 'memoranda doctor --accept-store'"
        )
    return HealthIssue("error", path, problem, remedy)


def _check_store(path: Path, store: SessionStore, deep: Progress | None) -> Iterator[HealthIssue]:
    marker = read_marker(path)
    if deep is not None:
        deep("pages of the record", 0, 1)
    problems = store.maintenance.check_integrity(thorough=deep is not None)
    if problems:
        yield _damage_issue(path, f"is damaged: {problems[0]}")
        return
    if store.maintenance.journal != "wal":
        yield HealthIssue(
            "note", path, "is on a disk without SQLite's write-ahead log: readers and writers wait for each other",
            "move the home to a local disk if it is slow",
        )  # fmt: skip
    if store.maintenance.read_only:
        yield HealthIssue("warning", path, "cannot be written", "make the file and its directory writable")
        return
    if missing := store.maintenance.count_lost(marker):
        yield HealthIssue(
            "error", path, f"has lost {missing:,} messages that it had when it was closed, and no program deleted them",
            "restore a backup; or keep what is there with 'memoranda doctor --accept-store'",
        )  # fmt: skip
    yield from check_rows(path, path, store, deep)


def check_rows(path: Path, location: Path | str, store: SessionStore, deep: Progress | None) -> Iterator[HealthIssue]:
    """Yield what is wrong with the rows of the store at a location; `path` is the file that the issues name."""
    yield from _check_checksums(path, location, store, deep)
    yield from _check_items(path, location, store)
    yield from _check_prompts(path, location, store)
    wrong = store.maintenance.miscounted_sessions()
    if wrong:
        yield HealthIssue(
            "warning", path, f"{len(wrong)} sessions have wrong message counts", "count the messages again",
            lambda: _repair(location, lambda store: store.maintenance.recount_sessions(wrong)), harmless=True,
        )  # fmt: skip
    lost = store.maintenance.lost_repetitions()
    if lost:
        yield HealthIssue(
            "warning", path, f"{len(lost)} messages are copies of messages that another program deleted",
            "replace each with a note that it is lost",
            lambda: _repair(location, lambda store: store.maintenance.give_up_lost_repetitions()),
        )  # fmt: skip


def _check_checksums(
    path: Path, location: Path | str, store: SessionStore, deep: Progress | None
) -> Iterator[HealthIssue]:
    report = store.checksums.check_messages(None if deep is None else partial(deep, "messages of the record"))
    if report.damaged:
        ids = [message.id for message in report.damaged]
        sessions = sorted({message.session_id for message in report.damaged})
        shown = ", ".join(f"{message.id} of {message.session_id}" for message in report.damaged[:_MAX_SHOWN])
        yield HealthIssue(
            "error", path, f"has {len(ids):,} messages in {len(sessions):,} sessions that changed on the disk: {shown}"
            + (" …" if len(ids) > _MAX_SHOWN else ""),
            "restore them from a backup, or mark them as damaged and keep them as they are",
            lambda: _repair(location, partial(_mark_damaged, ids)),
        )  # fmt: skip
    if report.without_checksum:
        yield HealthIssue(
            "note", path, f"has {report.without_checksum:,} messages without a checksum, so nothing notices damage",
            "add the checksums", lambda: _repair(location, lambda store: store.checksums.fill_checksums()),
            harmless=True,
        )  # fmt: skip


def _check_items(path: Path, location: Path | str, store: SessionStore) -> Iterator[HealthIssue]:
    damaged = store.item_passages.damaged()
    if damaged:
        ids = [number for number, _ in damaged]
        shown = ", ".join(dict.fromkeys(name for _, name in damaged[:_MAX_SHOWN]))
        yield HealthIssue(
            "error", path, f"has {len(ids):,} versions of items that changed on the disk: {shown}"
            + (" …" if len(ids) > _MAX_SHOWN else ""),
            "restore an earlier version with memory.items.restore, or from a backup; or accept them as they are",
            lambda: _repair(location, partial(_accept_items, ids)),
        )  # fmt: skip


def _check_prompts(path: Path, location: Path | str, store: SessionStore) -> Iterator[HealthIssue]:
    report = SharedPrompts(store.engine, store.scope, None).check()
    if report.damaged or report.sessions_without:
        lost = (
            f" and {len(report.sessions_without):,} sessions whose prompt is missing" if report.sessions_without else ""
        )
        yield HealthIssue(
            "error", path, f"has {len(report.damaged):,} system prompts that changed on the disk{lost}",
            "restore them from a backup, or remove them; the next turn of a session builds a new prompt",
            lambda: _repair(location, _drop_prompts),
        )  # fmt: skip


def _repair(location: Path | str, repair: Callable[[SessionStore], object]) -> str:
    """Open the store, repair something in it, and return what the repair says about it."""
    with open_store(location) as store:
        said = repair(store)
    return said if isinstance(said, str) else ""


def _drop_prompts(store: SessionStore) -> str:
    count = SharedPrompts(store.engine, store.scope, None).drop_damaged()
    return f"removed {count:,} damaged system prompts"


def _accept_items(ids: list[int], store: SessionStore) -> str:
    store.item_passages.accept_damage(ids)
    return f"accepted {len(ids):,} versions of items as they are"


def _mark_damaged(ids: list[int], store: SessionStore) -> str:
    store.checksums.accept_damage(ids)
    return f"marked {len(ids):,} messages as damaged; they keep the text that is there"


def _damage_issue(path: Path, problem: str) -> HealthIssue:
    return HealthIssue(
        "error",
        path,
        problem,
        "stop every program that uses it, then run 'memoranda doctor --fix': it keeps the damaged file and saves every "
        "session and message that can still be read. If that is none, move the file away and restore a backup",
        lambda: _save(path),
    )


def _save(path: Path) -> str:
    kept = damaged_copy_path(path)
    past_damage: Counter[str] = Counter()
    saved = salvage(path, kept, past_damage)
    after = f" ({past_damage.total():,} of them after damaged pages)" if past_damage else ""
    if saved[DAMAGED_MESSAGES]:
        after += f"; {saved[DAMAGED_MESSAGES]:,} of the messages are damaged or incomplete, and marked as such"
    return (
        f"saved {saved['sessions']:,} sessions and {saved['messages']:,} messages, which is all that could be "
        f"read{after}; the damaged file is kept as {list_kept_files(kept)}"
    )


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
                MESSAGES.name: _marked_rows(damaged.rows(MESSAGES), marks),
                DELETED_SESSIONS.name: damaged.rows(DELETED_SESSIONS),
                ITEMS.name: damaged.rows(ITEMS),
                NOTIFICATIONS.name: damaged.rows(NOTIFICATIONS),
                SYSTEM_PROMPTS.name: filter(_is_whole_prompt, damaged.rows(SYSTEM_PROMPTS)),
                STATE_META.name: (row for row in damaged.rows(STATE_META) if row.get("key") not in (None, "store_id")),
                **{table.name: damaged.rows(table) for table in VERSION_TABLES},
            }
        )
        with store.engine.writing() as connection:
            connection.execute(
                "UPDATE sessions SET started_at = (SELECT min(timestamp) FROM messages WHERE session_id = sessions.id)"
                " WHERE started_at = 0 AND id IN (SELECT session_id FROM messages)"
            )
    return {**saved, DAMAGED_MESSAGES: marks[DAMAGED_MESSAGES]}


def _marked_rows(rows: Iterable[dict[str, Any]], marks: Counter[str]) -> Iterator[dict[str, Any]]:
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
