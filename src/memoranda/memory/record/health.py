"""Checks the session store for the doctor, and repairs or salvages it."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from memoranda.errors import StoreMismatchError
from memoranda.memory.record.record import MarkerGuard, read_marker
from memoranda.memory.record.salvage import DAMAGED_MESSAGES, salvage
from memoranda.memory.record.shared_prompts import SharedPrompts
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.storage.health import check_file
from memoranda.storage.orphaned_wal import main_file_missing
from memoranda.storage.salvage.rebuild import damaged_copy_path, list_kept_files
from memoranda.support.health_issues import HealthIssue, Progress

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
            lambda: _recount(location, wrong), harmless=True,
        )  # fmt: skip
    lost = store.maintenance.lost_repetitions()
    if lost:
        yield HealthIssue(
            "warning", path, f"{len(lost)} messages are copies of messages that another program deleted",
            "replace each with a note that it is lost", lambda: _mark_lost(location),
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
            lambda: _mark_damaged(location, ids),
        )  # fmt: skip
    if report.without_checksum:
        yield HealthIssue(
            "note", path, f"has {report.without_checksum:,} messages without a checksum, so nothing notices damage",
            "add the checksums", lambda: _fill_checksums(location), harmless=True,
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
            lambda: _accept_items(location, ids),
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
            lambda: _drop_prompts(location),
        )  # fmt: skip


def _drop_prompts(location: Path | str) -> str:
    with open_store(location) as store:
        count = SharedPrompts(store.engine, store.scope, None).drop_damaged()
    return f"removed {count:,} damaged system prompts"


def _accept_items(location: Path | str, ids: list[int]) -> str:
    with open_store(location) as store:
        store.item_passages.accept_damage(ids)
    return f"accepted {len(ids):,} versions of items as they are"


def _mark_damaged(location: Path | str, ids: list[int]) -> str:
    with open_store(location) as store:
        store.checksums.accept_damage(ids)
    return f"marked {len(ids):,} messages as damaged; they keep the text that is there"


def _fill_checksums(location: Path | str) -> None:
    with open_store(location) as store:
        store.checksums.fill_checksums()


def _mark_lost(location: Path | str) -> None:
    with open_store(location) as store:
        store.maintenance.give_up_lost_repetitions()


def _recount(location: Path | str, session_ids: list[str]) -> None:
    with open_store(location) as store:
        store.maintenance.recount_sessions(session_ids)


def _damage_issue(path: Path, problem: str) -> HealthIssue:
    return HealthIssue(
        "error",
        path,
        problem,
        "stop every program that uses it, then run 'memoranda doctor --fix': it keeps the damaged file and saves every "
        "session and message that can still be read",
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
