"""`home.db`: several parts with tables of their own in one file."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError, NewerStoreError
from memoranda.storage.home_database import FILE_NAME, HomeDatabase
from memoranda.storage.schema import Column, Migration, Schema, Table

pytestmark = pytest.mark.slow

ONE = Schema(1, (Table("ones", "Ones.", (Column("id", "numbered"), Column("text", "text"))),), (), name="one")
TWO = Schema(3, (Table("twos", "Twos.", (Column("id", "numbered"), Column("text", "text"))),), (), name="two")


def _write(database: HomeDatabase, table: str) -> None:
    with database.open().writing() as connection:
        connection.execute(f"INSERT INTO {table} (text) VALUES ('x')")


def _count(database: HomeDatabase, table: str) -> int:
    with database.open().reading() as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_parts_share_the_connections_until_the_last_one_is_closed(tmp_path: Path) -> None:
    """Closing one part takes nothing from another."""
    one, two = HomeDatabase(tmp_path, ONE), HomeDatabase(tmp_path, TWO)
    assert not one.exists()
    _write(one, "ones")
    assert one.open() is two.open() and two.exists()
    engine = one.open()
    one.close()
    _write(two, "twos")
    assert not engine.closed
    two.close()
    assert engine.closed
    assert (_count(one, "ones"), _count(two, "twos")) == (1, 1)
    one.close()
    two.close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_each_part_has_a_version_of_its_own(tmp_path: Path) -> None:
    """A newer part is refused, an older one is upgraded once, and the others are not concerned."""
    applied: list[str] = []
    table = replace(ONE.tables[0], columns=(*ONE.tables[0].columns, Column("size", "integer", "NOT NULL DEFAULT 7")))
    migration = Migration("grow", lambda connection: applied.append("grow"))
    newer = replace(ONE, version=2, tables=(table,), migrations=(migration,))
    with closing(HomeDatabase(tmp_path, ONE)) as one, closing(HomeDatabase(tmp_path, TWO)) as two:
        _write(one, "ones")
        _write(two, "twos")
    for _ in range(2):
        with closing(HomeDatabase(tmp_path, newer)) as one, one.open().reading() as connection:
            assert connection.execute("SELECT text, size FROM ones").fetchall() == [("x", 7)]
    assert applied == ["grow"]
    with closing(HomeDatabase(tmp_path, ONE)) as one, pytest.raises(NewerStoreError, match="version 2"):
        one.open()
    with closing(HomeDatabase(tmp_path, TWO)) as two:
        assert _count(two, "twos") == 1


def test_a_version_that_is_no_number_is_damage(tmp_path: Path) -> None:
    """The part is refused with what the file says."""
    with closing(HomeDatabase(tmp_path, ONE)) as one:
        _write(one, "ones")
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 'abc'")
    with closing(HomeDatabase(tmp_path, ONE)) as one, pytest.raises(CorruptStoreError, match="'abc'"):
        one.open()
