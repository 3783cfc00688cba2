"""What the doctor looks at in the session store, and how it saves what is in a damaged one."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from memoranda.db.health import check_file
from memoranda.db.salvage.rebuild import damaged_copy_path, list_kept_files
from memoranda.sessions.salvage import salvage
from memoranda.sessions.store import SessionStore, open_store
from memoranda.support.health_issues import HealthIssue


def check(path: Path) -> Iterator[HealthIssue]:
    """Findings about `state.db`: can it be read, is it whole, do its counts hold, may others read it."""
    return check_file(path, lambda: _look_into(path), lambda problem: _damaged(path, problem))


def _look_into(path: Path) -> Iterator[HealthIssue]:
    with open_store(path, wait=2.0) as store:
        yield from _inside(path, store)


def _inside(path: Path, store: SessionStore) -> Iterator[HealthIssue]:
    problems = store.maintenance.check_integrity()
    if problems:
        yield _damaged(path, f"is damaged: {problems[0]}")
        return
    if store.maintenance.journal != "wal":
        yield HealthIssue("note", path, "lies where SQLite has no write-ahead log: readers and writers wait",
                      "move the home to a local disk if it is slow")  # fmt: skip
    if store.maintenance.read_only:
        yield HealthIssue("warning", path, "cannot be written", "make the file and its directory writable")
        return
    wrong = store.maintenance.miscounted_sessions()
    if wrong:
        yield HealthIssue("warning", path, f"{len(wrong)} sessions have wrong message counts", "count them again",
                      lambda: _recount(path, wrong))  # fmt: skip
    lost = store.maintenance.lost_repetitions()
    if lost:
        yield HealthIssue("warning", path, f"{len(lost)} messages repeat one that another program has deleted",
                      "say in their place that they are lost", lambda: _give_up_lost(path))  # fmt: skip


def _give_up_lost(path: Path) -> None:
    with open_store(path) as store:
        store.maintenance.give_up_lost_repetitions()


def _recount(path: Path, session_ids: list[str]) -> None:
    with open_store(path) as store:
        store.maintenance.recount_sessions(session_ids)


def _damaged(path: Path, problem: str) -> HealthIssue:
    return HealthIssue(
        "error",
        path,
        problem,
        "stop every program that uses it, then 'memoranda doctor --fix': it keeps what is there beside it and "
        "saves every session and message that can still be read",
        lambda: _save(path),
    )


def _save(path: Path) -> str:
    kept = damaged_copy_path(path)
    past_damage: Counter[str] = Counter()
    saved = salvage(path, kept, past_damage)
    behind = f" ({past_damage.total():,} of them behind damaged pages)" if past_damage else ""
    return (
        f"saved {saved['sessions']:,} sessions and {saved['messages']:,} messages, which is all that could be "
        f"read{behind}; what was there is kept as {list_kept_files(kept)}"
    )
