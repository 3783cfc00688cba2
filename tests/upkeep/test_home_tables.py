"""Every table of `home.db` is in one list, and whatever is done with a home covers the whole list."""

import importlib
import importlib.util
import json
import pkgutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.storage.home_database import FILE_NAME, HomeDatabase
from memoranda.storage.schema import COMPONENT_VERSIONS, STATE_META, Column, Schema
from memoranda.support.home import Home
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.backup.archive import BackupOptions, write_backup
from memoranda.upkeep.backup.restore import restore_backup
from memoranda.upkeep.doctor import examine
from memoranda.upkeep.forgetting.eraser import Eraser
from memoranda.upkeep.home_tables import component_schemas, home_schemas
from memoranda.upkeep.migration.tables import copy_parts_to_files, copy_parts_to_server

MARKER = "Zerlina Quill"
USERS = ("", "ben", "ada")
TABLES = [(schema, table) for schema in home_schemas() for table in schema.tables]
OWN_FILES = {
    "memoranda.external.holographic.schema.CACHE_SCHEMA",
    "memoranda.home.shards.directory.SCHEMA",
}
"""Tables that are not in the list: of files beside `home.db`, and of the directory of a fleet."""

_POSITIONS = ("position", "notified")
"""Columns with a number in the feed of the record, which is another one in another store."""


def _value(schema: Schema, column: Column, number: int, user: str) -> Any:
    if column.name == "user_id":
        return user
    if column.name in _POSITIONS:
        return "0"
    if column.kind == "text":
        is_id = column.name.endswith("_id") or "PRIMARY KEY" in column.rules or "UNIQUE" in column.rules
        has_text = schema.forgetting.texts is None or column.name in schema.forgetting.texts
        return (
            f"{column.name} {number}" if is_id or not has_text else json.dumps([f"{column.name} of {MARKER} {number}"])
        )
    return number if column.kind in ("integer", "numbered") else float(number)


def _fill(home: Path, marker: str = MARKER) -> None:
    """A row of the owner and of two users in every table."""
    home.mkdir(exist_ok=True)
    for schema, table in TABLES:
        with closing(HomeDatabase(home, schema)) as database, database.open().writing() as connection:
            for number, user in enumerate(USERS, 1):
                row = {column.name: _value(schema, column, number, user) for column in table.columns}
                if "tenant" in row:
                    row["tenant"] = "default"
                connection.execute(
                    f"INSERT INTO {table.name} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                    [value.replace(MARKER, marker) if isinstance(value, str) else value for value in row.values()],
                )


def _rows(home: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / FILE_NAME)) as connection:
        return {
            table.name: connection.execute(f"SELECT * FROM {table.name} ORDER BY 1").fetchall() for _, table in TABLES
        }


def test_every_schema_of_the_package_is_in_the_list() -> None:
    """A part whose tables are not in it would be forgotten by all that loops over it."""
    listed, unlisted = {id(schema.tables) for schema in component_schemas()}, set()
    for module in pkgutil.walk_packages(memoranda.__path__, "memoranda."):
        if not module.name.rpartition(".")[2].startswith("__") and ".plugin" not in module.name:
            source = Path(importlib.util.find_spec(module.name).origin or "")  # type: ignore[union-attr]
            if source.suffix == ".py" and " = Schema(" in source.read_text("utf-8"):
                loaded = importlib.import_module(module.name)
                unlisted |= {
                    f"{module.name}.{name}"
                    for name, value in vars(loaded).items()
                    if isinstance(value, Schema) and id(value.tables) not in listed
                }
    assert unlisted == OWN_FILES


def test_every_table_of_the_file_is_in_the_list(tmp_path: Path) -> None:
    """Names are used once, and a table with rows of users says so."""
    _fill(tmp_path / "home")
    with closing(sqlite3.connect(tmp_path / "home" / FILE_NAME)) as connection:
        names = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "table"}
    assert {name for name in names if not name.startswith("sqlite_")} == {
        STATE_META.name, COMPONENT_VERSIONS.name, *(table.name for _, table in TABLES),
    }  # fmt: skip
    assert len({table.name for _, table in TABLES}) == len(TABLES)
    for schema, table in TABLES:
        assert any(column.name == "user_id" for column in table.columns) == (table.name in schema.user_tables)


@pytest.mark.slow
def test_a_text_is_forgotten_in_every_table(tmp_path: Path) -> None:
    """For the owner, whose rows are changed; the rows of users keep it. Then for everyone, and no byte is left."""
    home = tmp_path / "home"
    _fill(home)
    before = _rows(home)
    with memoranda.open(home) as memory:
        assert memory.forget(text=MARKER).complete
    rows = _rows(home)
    for schema, table in TABLES:
        kept = [row for row in before[table.name][1:] if MARKER in str(row) and table.name in schema.user_tables]
        assert [row for row in rows[table.name] if MARKER in str(row)] == kept, table.name
    assert Eraser(Home.at(home), all_users=True).forget_text(TextMatcher([MARKER])).complete
    assert not any(MARKER in str(row) for found in _rows(home).values() for row in found)
    assert not any(MARKER.encode() in path.read_bytes() for path in home.glob(f"{FILE_NAME}*"))


@pytest.mark.slow
def test_a_user_is_removed_from_every_table(tmp_path: Path) -> None:
    """No row names the user, and the rows of others are as they were."""
    home = tmp_path / "home"
    _fill(home, "nothing")
    before = _rows(home)
    with memoranda.open(home) as memory:
        # What the vendor of an unknown provider has received is listed as long as it was not deleted there.
        assert {place.area for place in memory.forget(user="ben").left} == {"provider"}
    after = _rows(home)
    for schema, table in TABLES:
        position = next((index for index, column in enumerate(table.columns) if column.name == "user_id"), None)
        if position is None or table.name in schema.forgetting.own_users:
            continue
        assert all(row[position] != "ben" for row in after[table.name]), table.name
        others = [row for row in before[table.name] if row[position] != "ben"]
        assert [row for row in after[table.name] if row in others] == others, table.name


def test_a_backup_has_every_row(tmp_path: Path) -> None:
    """Restored, they are the same."""
    _fill(tmp_path / "home")
    write_backup(tmp_path / "home", tmp_path / "backup.zip", BackupOptions())
    restore_backup(tmp_path / "backup.zip", Home(tmp_path / "restored"))
    assert _rows(tmp_path / "restored") == _rows(tmp_path / "home")


@pytest.mark.slow
def test_a_repair_saves_every_row(tmp_path: Path) -> None:
    """Of a file whose versions cannot be read."""
    home = tmp_path / "home"
    _fill(home)
    before = _rows(home)
    with closing(sqlite3.connect(home / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 'abc'")
    (issue,) = [issue for issue in examine(Home.at(home)) if issue.severity == "error"]
    assert issue.path.name == FILE_NAME and issue.repair is not None
    issue.repair()
    assert _rows(home) == before
    assert not any(issue.severity == "error" for issue in examine(Home.at(home)))


@pytest.mark.slow
@pytest.mark.parametrize("table", ["item_versions", "jobs", "checkpoint_writes"])
def test_a_missing_table_is_reported_and_made_again(tmp_path: Path, table: str) -> None:
    """In the record, in `home.db` and in the file of checkpoints; the other rows stay."""
    home = tmp_path / "home"
    with memoranda.open(home) as memory, memory.session() as session, session.turn("hello") as turn:
        turn.done("hi")
        assert memory.services.checkpoints_for(None).engine.check() == []
    _fill(home)
    before = _rows(home)
    for path in home.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
    (issue,) = [issue for issue in examine(Home.at(home)) if issue.severity == "error"]
    assert issue.problem == f"is damaged: the table {table} is missing" and issue.repair is not None
    issue.repair()
    assert not any(issue.severity == "error" for issue in examine(Home.at(home)))
    assert _rows(home) == before | ({table: []} if table in before else {})
    with memoranda.open(home) as memory:
        assert memory.sessions.statistics()["messages"] == 2


@pytest.mark.slow
def test_every_row_moves_to_a_server_and_back(tmp_path: Path, postgres_url: str) -> None:
    """And is the same in the new home."""
    home, back = Home.at(tmp_path / "home"), Home.at(tmp_path / "back")
    _fill(home.root)
    back.root.mkdir()
    counts = copy_parts_to_server(home, postgres_url, lambda *_: None)
    assert {table.name: counts[table.name] for _, table in TABLES} == {table.name: len(USERS) for _, table in TABLES}
    copy_parts_to_files(postgres_url, back, lambda *_: None)
    assert _rows(back.root) == _rows(home.root)
