"""A missing or empty file with a log is damage: it is never treated as a new store, and the log is never deleted."""

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError
from memoranda.memory.record.store import open_store
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.orphaned_wal import database_exists, main_file_missing
from memoranda.storage.schema import Column, Schema, Table
from memoranda.storage.sqlite.database import Database
from tests.conftest import Strikes, tree
from tests.forked import Forked, Say, forking, in_child
from tests.storage.orphaned_stores import LOSSES, killed_store

NOTES = Schema(1, (Table("notes", "Notes.", (Column("id", "numbered"), Column("text", "text"))),), ())

pytestmark = forking


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_store_that_lost_its_file_is_refused_and_not_changed(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    """Every byte stays, and the error says what to do."""
    path = killed_store(tmp_path / "state.db")
    lose(path)
    before = tree(tmp_path)
    for _ in range(2):
        with pytest.raises(CorruptStoreError, match=r"its log state\.db-wal holds .* doctor --fix"):
            open_store(path)
    assert tree(tmp_path) == before
    assert database_exists(path)


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_database_that_is_opened_on_demand_is_not_taken_for_absent(
    tmp_path: Path, lose: Callable[[Path], object]
) -> None:
    """A caller that checks for a database would otherwise conclude that nothing was ever written."""
    path = tmp_path / "notes.db"

    def write_and_die() -> None:
        with LazyDatabase(path, NOTES, 7).open().writing() as connection:
            connection.execute("INSERT INTO notes (text) VALUES ('x')")
        os._exit(9)

    assert in_child(write_and_die) == 9
    lose(path)
    before = tree(tmp_path)
    file = LazyDatabase(path, NOTES, 7)
    assert file.exists()
    with pytest.raises(CorruptStoreError, match=r"notes\.db-wal"):
        file.open()
    assert tree(tmp_path) == before


def test_a_file_that_is_emptied_while_it_is_open_keeps_its_log(tmp_path: Path) -> None:
    """A connection that is opened later would let SQLite delete the log of those that are open already."""
    path = tmp_path / "notes.db"
    with closing(Database(path, application_id=7)) as database:
        with database.writing() as connection:
            connection.execute("CREATE TABLE notes (text TEXT)")
        os.truncate(path, 0)
        log = os.stat(f"{path}-wal")
        with pytest.raises(CorruptStoreError, match="is empty"), database.reading():
            pass
        assert os.path.samestat(os.stat(f"{path}-wal"), log)


def test_the_log_of_a_linked_file_is_where_sqlite_has_it(tmp_path: Path) -> None:
    """It is next to the file, not next to the link."""
    (tmp_path / "elsewhere").mkdir()
    path = killed_store(tmp_path / "elsewhere" / "real.db")
    (tmp_path / "state.db").symlink_to(path)
    path.unlink()
    before = tree(tmp_path)
    with pytest.raises(CorruptStoreError, match=r"is missing, but its log real\.db-wal"):
        open_store(tmp_path / "state.db")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("file", [True, False])
def test_an_empty_log_is_ignored(tmp_path: Path, file: bool) -> None:
    """A store is created as usual."""
    path = tmp_path / "state.db"
    Path(f"{path}-wal").touch()
    if file:
        path.touch()
    assert not main_file_missing(path)
    with open_store(path) as store:
        assert store.sessions.create_session("s", "cli")


@pytest.mark.slow
def test_a_store_that_others_make_at_this_moment_is_not_taken_for_lost(tmp_path: Path, strikes: Strikes) -> None:
    """Its file has content before it has a log."""
    for turn in range(strikes(32)):
        path = tmp_path / str(turn) / "state.db"

        def make(say: Say, path: Path = path) -> None:
            for number in range(20):
                with open_store(path) as store:
                    store.sessions.create_session(f"{os.getpid()}-{number}", "cli")

        makers = [Forked(make) for _ in range(3)]
        assert [maker.wait() for maker in makers] == [0, 0, 0]
        with open_store(path) as store:
            assert store.listing.session_count() == 60
