"""The content of a log is saved if its file is lost, and nothing else is invented."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.memory.record.health import salvage
from memoranda.memory.record.schema import MESSAGES
from memoranda.memory.record.store import open_store
from memoranda.storage.salvage.rebuild import make_main_file, open_damaged, readable_rows
from tests.examples import examples
from tests.forked import forking, in_child
from tests.storage.orphaned_stores import LOSSES, killed_store

pytestmark = forking


def _contents(path: Path) -> list[str]:
    with open_store(path) as store:
        return [row["content"] for row in store.messages.get_messages("s")]


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_what_is_in_the_log_is_saved_and_the_log_is_kept(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    """Although the pages that define the tables were only in the file."""
    path = killed_store(tmp_path / "state.db")
    log = Path(f"{path}-wal").read_bytes()
    lose(path)
    assert salvage(path, tmp_path / "kept")["messages"] == 20
    assert _contents(path) == [f"acknowledged {number}" for number in range(20)]
    assert {each.name for each in tmp_path.iterdir()} == {"state.db", "state.marker.json", "kept.wal"}
    assert (tmp_path / "kept.wal").read_bytes() == log


@pytest.mark.slow
def test_a_complete_log_needs_no_file(tmp_path: Path) -> None:
    """The killed process had created the store; many messages have separate pages."""
    path = tmp_path / "state.db"

    def write_and_die() -> None:
        store = open_store(path)
        store.sessions.create_session("s", "cli")
        store.messages.append_messages("s", [{"role": "user", "content": f"{each} " * 200} for each in range(500)])
        os._exit(9)

    assert in_child(write_and_die) == 9
    path.unlink()
    assert salvage(path, tmp_path / "kept")["messages"] == 500
    assert len(_contents(path)) == 500


@pytest.mark.slow
def test_the_newest_messages_of_a_large_store_are_saved(tmp_path: Path) -> None:
    """Messages that were only in the file are lost; messages in the log are saved."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_messages("s", [{"role": "user", "content": f"old {each} " * 100} for each in range(500)])
    killed_more = 100

    def write_and_die() -> None:
        store = open_store(path)
        for number in range(killed_more):
            store.messages.append_message("s", "user", f"new {number} " * 100)
        os._exit(9)

    assert in_child(write_and_die) == 9
    path.unlink()
    salvage(path, tmp_path / "kept")
    found = _contents(path)
    assert [f"new {number} " * 100 in found for number in range(killed_more)] == [True] * killed_more
    assert len(found) < 500


@pytest.mark.slow
@pytest.mark.parametrize(
    ("create", "insert"),
    [
        ("CREATE TABLE t (a, b, c)", "INSERT INTO t VALUES (1, 2, 3)"),
        ("CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID", "INSERT INTO t VALUES (1, 2)"),
        (f"CREATE TABLE t ({', '.join(f'c{each}' for each in range(36))})", "INSERT INTO t (c0) VALUES ('s')"),
    ],
    ids=["few columns", "an index", "one column more"],
)
def test_pages_of_other_tables_are_not_read_as_ours(tmp_path: Path, create: str, insert: str) -> None:
    """In the place where a store has its sessions the log has something else: nothing is saved, and it is kept."""
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in ("PRAGMA page_size=8192", "PRAGMA journal_mode=WAL", create):
            connection.execute(statement)

    def write_and_die() -> None:
        sqlite3.connect(path, isolation_level=None).execute(insert)
        os._exit(9)

    assert in_child(write_and_die) == 9
    path.unlink()
    log = Path(f"{path}-wal").read_bytes()
    saved = salvage(path, tmp_path / "kept")
    assert (saved["sessions"], saved["messages"]) == (0, 0)
    assert (tmp_path / "kept.wal").read_bytes() == log


@pytest.fixture(scope="module")
def log_and_empty_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    path = tmp_path_factory.mktemp("killed") / "state.db"
    empty = path.with_name("empty.db")
    open_store(empty).close()
    return Path(f"{killed_store(path)}-wal").read_bytes(), empty.read_bytes()


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_a_damaged_log_shows_nothing_that_was_not_written(
    log_and_empty_store: tuple[bytes, bytes], data: st.DataObject
) -> None:
    """Cut anywhere, with any bytes changed, or no log at all."""
    whole, empty = log_and_empty_store
    log = bytearray(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    for place in data.draw(st.lists(st.integers(0, 100) | st.integers(0, len(whole)), max_size=4)):
        log[place : place + 1] = data.draw(st.binary(min_size=1, max_size=40))
    with TemporaryDirectory() as directory:
        (file := Path(directory) / "log").write_bytes(log)
        make_main_file(file, scratch := Path(directory) / "scratch.db", lambda path: path.write_bytes(empty))
        file.rename(f"{scratch}-wal")
        with closing(open_damaged(scratch)) as connection:
            found = [row["content"] for row in readable_rows(connection, MESSAGES)]
    assert found == [f"acknowledged {number}" for number in range(len(found))]
