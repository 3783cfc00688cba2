"""A fork while threads are at work in SQLite: the child can use its stores, and the threads continue."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from tests.examples import examples
from tests.forked import forking, in_child
from tests.timing import wait_until

FORKS = examples(60)


def _use(path: Path) -> None:
    with SessionDB(path) as db:
        db.create_session("s", source="cli")
        db.append_message("s", "user", "A heron in the child")
        assert [each["session_id"] for each in db.search_messages("heron")] == ["s"]


def _write_and_index(db: SessionDB) -> None:
    db.append_messages("s", [{"role": "user", "content": f"heron {number} " * 50} for number in range(100)])
    db.index.catch_up()


@pytest.mark.slow
@forking
@pytest.mark.parametrize(
    "work",
    [_write_and_index, lambda db: db.search_messages("heron"), lambda db: db.index.compact()],
    ids=["indexing", "searching", "rebuilding"],
)
def test_a_child_forked_while_a_thread_is_in_sqlite_does_not_hang(
    tmp_path: Path, work: Callable[[SessionDB], object]
) -> None:
    """What SQLite had locked in the parent would be locked for ever in the child."""
    ending, done = threading.Event(), 0
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", source="cli")
        _write_and_index(db)

        def keep_working() -> None:
            nonlocal done
            while not ending.is_set():
                work(db)
                done += 1

        thread = threading.Thread(target=keep_working)
        thread.start()
        try:
            for number in range(FORKS):
                before = done
                assert in_child(lambda: _use(tmp_path / str(number) / "state.db"), longest=10) == 0  # noqa: B023
                wait_until(lambda: done > before or not thread.is_alive(), every=0.001)  # noqa: B023
        finally:
            ending.set()
            thread.join()
    assert done >= FORKS
