"""The child of a fork refuses what its parent had open, and whatever it does, the parent loses nothing."""

import gc
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from memoranda.errors import StorageError
from memoranda.home.session_db import SessionDB
from memoranda.search.meaning import vector_file
from memoranda.storage.sqlite.database import Database
from tests.forked import Forked, forking, in_child
from tests.timing import GIVE_UP

pytestmark = [forking, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]
_REFUSED = "Open Memoranda after the fork"


# The child ends when its parent has closed the file and another process was killed, which leaves a log.
_END = """
import os, sys
from pathlib import Path
from memoranda.storage.sqlite.database import Database

def write(text):
    database.write(lambda connection: connection.execute("INSERT INTO t VALUES (?)", (text,)))

path = Path(sys.argv[1])
reading, writing = os.pipe()
database = Database(path, application_id=1)
database.write(lambda connection: connection.execute("CREATE TABLE t (a)"))
write("of the parent")
child = os.fork()
if child == 0:
    os.read(reading, 1)
    sys.exit(0)
database.close()
killed = os.fork()
if killed == 0:
    database = Database(path, application_id=1)
    write("of another process")
    os._exit(0)
os.waitpid(killed, 0)
os.write(writing, b"x")
assert os.waitpid(child, 0)[1] == 0
"""


def _contents(path: Path) -> list[str]:
    """What a new connection finds in the record, after a check of the whole file."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [content for (content,) in connection.execute("SELECT content FROM messages ORDER BY id")]


def _refuse(do: Callable[[], object]) -> None:
    with pytest.raises(StorageError, match=_REFUSED):
        do()


def test_a_child_refuses_an_open_store_and_its_parent_continues(tmp_path: Path) -> None:
    """Every use raises the same error, closing does nothing, and so does a store that it opens on the same file."""
    path = tmp_path / "state.db"
    with SessionDB(path) as db:
        db.create_session("s", source="cli")
        db.append_message("s", "user", "A heron")
        assert db.search_messages("heron")

        def use() -> None:
            _refuse(lambda: db.append_message("s", "user", "of the child"))
            _refuse(lambda: db.get_messages("s"))
            _refuse(lambda: db.search_messages("heron"))
            _refuse(lambda: db.delete_session("s"))
            _refuse(db.index.catch_up)
            db.close()
            _refuse(lambda: SessionDB(path))

        assert in_child(use) == 0
        db.append_message("s", "user", "Another heron")
        assert len(db.search_messages("heron")) == 2
    assert _contents(path) == ["A heron", "Another heron"]


def test_a_child_opens_what_its_parent_has_closed_and_other_files(tmp_path: Path) -> None:
    """Only the files that were open during the fork are refused."""

    def use(path: Path) -> None:
        with SessionDB(path) as db:
            db.create_session("s", source="cli")
            db.append_message("s", "user", "of the child")
            assert db.search_messages("child")

    SessionDB(tmp_path / "closed.db").close()
    with SessionDB(tmp_path / "open.db"):
        for name in ("closed.db", "new.db"):
            assert in_child(lambda: use(tmp_path / name)) == 0  # noqa: B023
            assert _contents(tmp_path / name) == ["of the child"]


@pytest.mark.parametrize("transaction", ["reading", "writing"])
def test_a_transaction_of_the_parent_does_not_end_in_the_child(tmp_path: Path, transaction: str) -> None:
    """The block raises the error there, and the parent commits what it wrote before and after."""
    path = tmp_path / "data.db"
    with closing(Database(path, application_id=1)) as database:
        database.write(lambda connection: connection.execute("CREATE TABLE t (a)"))
        pid = -1
        try:
            with getattr(database, transaction)() as connection:
                if transaction == "writing":
                    connection.execute("INSERT INTO t VALUES (1)")
                pid = os.fork()
                if pid:
                    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
                    connection.execute("SELECT * FROM t").fetchall()
                    if transaction == "writing":
                        connection.execute("INSERT INTO t VALUES (2)")
        except StorageError as error:
            os._exit(7 if pid == 0 and _REFUSED in str(error) else 1)
        finally:
            if pid == 0:
                os._exit(1)
        with database.reading() as connection:
            assert connection.execute("SELECT a FROM t").fetchall() == (
                [(1,), (2,)] if transaction == "writing" else []
            )


def test_a_connection_of_the_parent_is_neither_used_nor_closed(tmp_path: Path) -> None:
    """That of a part that has no home to ask, too."""
    with closing(vector_file.connect(tmp_path / "vectors.db")) as connection:

        def use() -> None:
            for name in ("execute", "executemany", "executescript", "commit", "rollback", "cursor", "backup"):
                _refuse(getattr(connection, name))
            connection.close()

        assert in_child(use) == 0
        assert connection.execute("SELECT count(*) FROM state").fetchone() == (0,)


def test_a_child_waits_for_no_thread_of_its_parent_in_sqlite(tmp_path: Path) -> None:
    """Threads that open, use and close files leave nothing locked that a child needs for a file of its own."""
    ended = threading.Event()

    def use(path: Path) -> None:
        with closing(vector_file.connect(path)) as connection:
            connection.execute("SELECT count(*) FROM state").fetchone()

    def use_often(path: Path) -> None:
        while not ended.is_set():
            use(path)

    threads = [threading.Thread(target=use_often, args=(tmp_path / f"parent{number}.db",)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert [in_child(partial(use, tmp_path / f"child{number}.db"), longest=20) for number in range(20)] == [0] * 20
    finally:
        ended.set()
        for thread in threads:
            thread.join(GIVE_UP)


def test_the_end_of_a_child_leaves_the_log_to_others(tmp_path: Path) -> None:
    """Its interpreter drops every connection, and SQLite would delete the log by its name."""
    path = tmp_path / "data.db"
    ended = subprocess.run(
        [sys.executable, "-c", _END, str(path)], capture_output=True, text=True, timeout=GIVE_UP, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [("of the parent",), ("of another process",)]


@pytest.mark.slow
def test_nothing_is_lost_while_a_parent_writes_forks_and_closes(tmp_path: Path) -> None:
    """Children try to write while their parent's threads write, and while it closes and opens the same file."""
    path, rounds, writes = tmp_path / "state.db", 6, 30
    SessionDB(path).close()

    def write(name: str, db: SessionDB) -> None:
        db.create_session(name, source="cli")
        for number in range(writes):
            db.append_message(name, "user", f"{name} {number}")
            if number % 10 == 0:
                db.search_messages(name)

    def try_to_write(db: SessionDB) -> None:
        for _ in range(writes):
            _refuse(lambda: db.append_message("s", "user", "of a child"))
        db.close()
        gc.collect()

    children = []
    for number in range(rounds):
        with SessionDB(path) as db:
            thread = threading.Thread(target=write, args=(f"parent{number}", db))
            thread.start()
            children += [Forked(lambda say: try_to_write(db)) for _ in range(2)]
            thread.join(GIVE_UP)
    assert [child.wait() for child in children] == [0] * len(children)
    names = [f"parent{number}" for number in range(rounds)]
    assert sorted(_contents(path)) == sorted(f"{name} {number}" for name in names for number in range(writes))
    with SessionDB(path) as db:
        assert db.index.catch_up().complete
        assert all(db.search_messages(name, limit=1) for name in names)
