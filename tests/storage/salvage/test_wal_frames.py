"""Of a log just that is taken which SQLite takes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.storage.salvage.damaged_tables import THINGS, make_things, rows_by_sqlite, rows_in_pages


@pytest.fixture(scope="module")
def with_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A small file, and a log that changes what is in it in several steps."""
    path = tmp_path_factory.mktemp("log") / "things.db"
    make_things(path, 512, "UTF-8", 0, [(number, f"old {number}", 1.5, number, None, None) for number in range(1, 90)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "PRAGMA secure_delete=0"):
            connection.execute(statement)
        for step in range(6):
            connection.execute("DELETE FROM things WHERE size BETWEEN ? AND ?", (step * 10, step * 10 + 5))
            connection.execute("INSERT INTO things (name, note) VALUES (?, ?)", (f"new {step}", "n" * 700))
        return path.read_bytes(), Path(f"{path}-wal").read_bytes()


@settings(max_examples=examples(80))
@given(data=st.data())
def test_of_a_damaged_log_just_that_is_read_which_sqlite_reads(
    with_log: tuple[bytes, bytes], data: st.DataObject
) -> None:
    """Cut anywhere, or with any bytes changed."""
    file, whole = with_log
    log = bytearray(whole[: data.draw(st.just(len(whole)) | st.integers(0, len(whole)))])
    for place in data.draw(st.lists(st.integers(0, len(whole)), max_size=2)):
        log[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
    with TemporaryDirectory() as directory:
        path = Path(directory) / "things.db"
        path.write_bytes(file)
        Path(f"{path}-wal").write_bytes(log)
        assert sorted(rows_in_pages(path, THINGS), key=repr) == sorted(rows_by_sqlite(path, THINGS).values(), key=repr)
