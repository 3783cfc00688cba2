"""Rows are read from a page as SQLite reads them, and nothing that a damaged page says is believed."""

import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.memory.record.schema import CHANGES, DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.memory.record.store import open_store
from memoranda.storage.salvage.leaf_rows import LeafRows, rows_past_damage
from memoranda.storage.salvage.pages import open_pages
from memoranda.storage.salvage.rebuild import open_damaged
from memoranda.storage.schema import STATE_META
from memoranda.storage.sqlite.database import PAGE_SIZE
from tests.examples import examples
from tests.storage.salvage.damaged_tables import (
    THINGS,
    make_things,
    overwrite,
    rows_by_sqlite,
    rows_in_pages,
    saved_rows,
)
from tests.timing import GIVE_UP


def test_rows_from_before_a_column_was_added_are_read(tmp_path: Path) -> None:
    """They are shorter than later rows, and the new column is the last one in the file."""
    path = tmp_path / "things.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT NOT NULL, weight REAL, note TEXT)")
        connection.execute("INSERT INTO things VALUES (1, 'old', 2, 'n')")
        connection.execute("ALTER TABLE things ADD COLUMN size INTEGER")
        connection.execute("ALTER TABLE things ADD COLUMN of_others TEXT")
        connection.execute("INSERT INTO things VALUES (2, 'new', 2.5, NULL, 7, 'unknown')")
    assert rows_in_pages(path, THINGS) == [
        {"id": 1, "name": "old", "weight": 2.0, "note": "n"},
        {"id": 2, "name": "new", "weight": 2.5, "note": None, "size": 7},
    ]


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.builds(
    lambda piece, times: piece * times, st.sampled_from(["a", "é", "漢字", "😀 "]), st.integers(0, 4_000)
)
_NUMBERS = st.integers(-(2**63), 2**63 - 1)
_THING = st.tuples(
    st.integers(1, 2**63 - 1),
    _TEXT,
    st.none() | st.floats(allow_nan=False) | st.integers(-1000, 1000).map(float),
    st.none() | _NUMBERS | st.sampled_from([0, 1, -1, 127, 128, 2**15, 2**23, 2**31, 2**47]),
    st.none() | st.binary(max_size=30),
    st.none() | _TEXT,
)


@given(
    things=st.lists(_THING, max_size=30, unique_by=lambda row: row[0]),
    page=st.sampled_from([512, 1024, 4096, 8192, 65536]),
    encoding=st.sampled_from(["UTF-8", "UTF-16le", "UTF-16be"]),
    reserved=st.sampled_from([0, 12, 32]),
)
def test_every_value_is_read_as_sqlite_reads_it(
    things: list[tuple[Any, ...]], page: int, encoding: str, reserved: int
) -> None:
    """In pages of any size, in any encoding, in as many pages as it needs."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "things.db"
        make_things(path, page, encoding, reserved, things)
        found = rows_in_pages(path, THINGS)
        assert {row["id"]: row for row in found} == rows_by_sqlite(path, THINGS)
        assert len(found) == len(things)
        assert {type(row["weight"]) for row in found} <= {float, type(None)}


def test_a_row_that_does_not_fill_its_cell_is_skipped(tmp_path: Path) -> None:
    """Its values would be read from the wrong places."""
    path = tmp_path / "things.db"
    make_things(path, PAGE_SIZE, "UTF-8", 0, [(1, "first", 1.5, 7, None, "note"), (2, "second", 1.5, 7, None, "note")])
    content = bytearray(path.read_bytes())
    (cell,) = struct.unpack_from(">H", content, PAGE_SIZE + 8)
    content[PAGE_SIZE + cell] -= 1
    path.write_bytes(content)
    assert [row["name"] for row in rows_in_pages(path, THINGS)] == ["second"]


def test_a_row_without_a_required_value_is_skipped(tmp_path: Path) -> None:
    """A time that is not a number counts as missing."""
    path = tmp_path / "state.db"
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        for number in range(3):
            store.messages.append_message("s", "user", f"m{number}", timestamp=1234.5678 + number)
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack(">d", 1235.5678), struct.pack(">d", float("nan"))))
    assert [row["content"] for row in rows_in_pages(path, MESSAGES)] == ["m0", "m2"]


def test_rows_that_are_known_are_not_read_again(tmp_path: Path) -> None:
    """By their numbers."""
    path = tmp_path / "things.db"
    make_things(path, PAGE_SIZE, "UTF-8", 0, [(number, "thing", None, None, None, None) for number in range(1, 6)])
    with closing(sqlite3.connect(path)) as connection:
        assert [row["id"] for row in rows_past_damage(connection, THINGS, [], {2, 4})] == [1, 3, 5]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with rows of all sizes, of which nothing is damaged."""
    path = tmp_path_factory.mktemp("whole") / "state.db"
    with open_store(path) as store:
        for session in ("a", "b", "c"):
            store.sessions.create_session(session, "cli")
            said = [
                {"role": "user", "content": f"{each} " * (each % 50 * (200 if each % 9 == 0 else 5))}
                for each in range(99)
            ]
            store.messages.append_messages(session, said)
        store.deletion.delete_session("b")
    return path.read_bytes()


@st.composite
def _damage(draw: st.DrawFn) -> list[tuple[float, bytes]]:
    """Bytes to write over others, each with its place as a share of the file."""
    pieces = st.binary(max_size=40) | st.sampled_from(
        [bytes(PAGE_SIZE), b"\xff" * 9, b"\x0d", b"\x05", b"\x0d\0\0\xff\xff"]
    )
    return draw(st.lists(st.tuples(st.floats(0, 1), pieces), max_size=30))


def _read_everything(path: Path) -> Iterator[dict[str, Any]]:
    with closing(open_damaged(path)) as damaged:
        for table in (SESSIONS, MESSAGES, CHANGES, DELETED_SESSIONS, STATE_META, THINGS):
            yield from rows_past_damage(damaged, table, [])
            yield from rows_past_damage(damaged, table, [column.name for column in table.columns])


def _check_bounds(path: Path) -> None:
    begun = time.monotonic()
    room = sum(each.stat().st_size for each in path.parent.iterdir())
    for row in _read_everything(path):
        assert sum(len(value) for value in row.values() if isinstance(value, str | bytes)) <= room
    assert time.monotonic() - begun < GIVE_UP


@given(file=st.binary(max_size=3_000), log=st.none() | st.binary(max_size=200), signed=st.booleans())
def test_any_bytes_are_read_without_an_error(file: bytes, log: bytes | None, signed: bool) -> None:
    """With or without a log, as a database or as nothing that was ever one."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "state.db"
        path.write_bytes(b"SQLite format 3\0" + file if signed else file)
        if log is not None:
            Path(f"{path}-wal").write_bytes(log)
        _check_bounds(path)


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(damage=_damage())
def test_any_damage_to_a_store_is_read_without_an_error(whole: bytes, damage: list[tuple[float, bytes]]) -> None:
    """Whatever length or place a damaged number names, in bounded time."""
    content = bytearray(whole)
    end = len(content)
    for share, piece in damage:
        place = int(share * (end - 1))
        content[place : place + len(piece)] = piece
    with TemporaryDirectory() as directory:
        path = Path(directory) / "state.db"
        path.write_bytes(content[:end])
        _check_bounds(path)


def _as_length(value: int) -> bytes:
    """A number as SQLite writes it before what it counts."""
    pieces = [value & 0x7F]
    while value := value >> 7:
        pieces.append(value & 0x7F | 0x80)
    return bytes(reversed(pieces))


def _page_that_lists_one_row(number: int, text: int, here: int) -> bytes:
    """As often as there is room for. Of its text `here` bytes are in the page, and the others from page 2 on."""
    kinds = bytes([0]) + _as_length(2 * text + 13) + bytes(4)
    header = bytes([len(kinds) + 1]) + kinds
    cell = _as_length(len(header) + text) + bytes([number]) + header + b"x" * here + struct.pack(">I", 2)
    start = PAGE_SIZE - len(cell)
    listed = (start - 8) // 2
    places = struct.pack(">H", start) * listed
    return (bytes([13]) + struct.pack(">HHHB", 0, listed, start, 0) + places).ljust(start, b"\0") + cell


def test_a_row_that_is_listed_many_times_is_read_once(tmp_path: Path) -> None:
    """And not even looked at more often than a page has room for."""
    path = tmp_path / "things.db"
    path.write_bytes(bytes(PAGE_SIZE) + _page_that_lists_one_row(5, 1_500, 1_500))
    with closing(open_damaged(path)) as damaged, open_pages(path) as pages:
        assert [(row["id"], row["name"]) for row in rows_past_damage(damaged, THINGS, [])] == [(5, "x" * 1_500)]
        assert len(list(LeafRows(pages, THINGS.columns, 6).outside((), ()))) <= PAGE_SIZE // 1_500


@pytest.mark.slow
def test_many_rows_that_claim_the_same_pages_are_given_up(tmp_path: Path) -> None:
    """Each would be as large as the file, and all together far larger."""
    path = tmp_path / "things.db"
    # So long that the row's own page has the least of it: 489 bytes, of which the header takes 9.
    text = 489 - 9 + 100 * (PAGE_SIZE - 4)
    endless = struct.pack(">I", 2) + b"x" * (PAGE_SIZE - 4)
    claims = [_page_that_lists_one_row(number, text, 489 - 9) for number in range(1, 120)]
    path.write_bytes(bytes(PAGE_SIZE) + endless + b"".join(claims))
    with closing(open_damaged(path)) as damaged:
        assert [len(row["name"]) for row in rows_past_damage(damaged, THINGS, [])] in ([text], [text] * 2)


def test_cycles_of_pages_end(tmp_path: Path) -> None:
    """A row that continues in its own page, and a page that refers to itself, are skipped."""
    path = tmp_path / "state.db"
    make_things(path, PAGE_SIZE, "UTF-8", 0, [(1, "x" * 100_000, None, None, None, None)])
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // PAGE_SIZE):
        content[page * PAGE_SIZE : page * PAGE_SIZE + 4] = struct.pack(">I", page + 1)
    path.write_bytes(content)
    _check_bounds(path)
    inner = bytes([5, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 0, 0, 2])
    overwrite(path, 2, inner + bytes(PAGE_SIZE - len(inner)))
    assert saved_rows(path, THINGS) == []
