"""Checks the session store for the doctor, and repairs or salvages it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memoranda.db.health import check_file
from memoranda.db.orphaned_wal import main_file_missing
from memoranda.db.salvage.rebuild import damaged_copy_path, list_kept_files
from memoranda.errors import StoreMismatchError
from memoranda.sessions.record import MarkerGuard
from memoranda.sessions.salvage import salvage
from memoranda.sessions.store import SessionStore, open_store
from memoranda.support.health_issues import HealthIssue


def check(path: Path) -> Iterator[HealthIssue]:
    """Yield the problems of `state.db`: whether it is readable, undamaged, correctly counted and private."""
    try:
        MarkerGuard(path).refuse_new()
    except StoreMismatchError as error:
        if not main_file_missing(path):
            yield _mismatch_issue(path, error)
            return
    yield from check_file(path, lambda: _check_content(path), lambda problem: _damage_issue(path, problem))


def _check_content(path: Path) -> Iterator[HealthIssue]:
    try:
        store = open_store(path, wait=2.0)
    except StoreMismatchError as error:
        yield _mismatch_issue(path, error)
        return
    with store:
        yield from _check_store(path, store)


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


def _check_store(path: Path, store: SessionStore) -> Iterator[HealthIssue]:
    problems = store.maintenance.check_integrity()
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
    wrong = store.maintenance.miscounted_sessions()
    if wrong:
        yield HealthIssue(
            "warning", path, f"{len(wrong)} sessions have wrong message counts", "count the messages again",
            lambda: _recount(path, wrong),
        )  # fmt: skip
    lost = store.maintenance.lost_repetitions()
    if lost:
        yield HealthIssue(
            "warning", path, f"{len(lost)} messages are copies of messages that another program deleted",
            "replace each with a note that it is lost", lambda: _mark_lost(path),
        )  # fmt: skip


def _mark_lost(path: Path) -> None:
    with open_store(path) as store:
        store.maintenance.give_up_lost_repetitions()


def _recount(path: Path, session_ids: list[str]) -> None:
    with open_store(path) as store:
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
    return (
        f"saved {saved['sessions']:,} sessions and {saved['messages']:,} messages, which is all that could be "
        f"read{after}; the damaged file is kept as {list_kept_files(kept)}"
    )
