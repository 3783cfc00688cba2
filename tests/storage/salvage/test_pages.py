"""Rows are read from a file's pages when the pages that lead to them are damaged."""

import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import StorageError
from memoranda.memory.record.health import check
from memoranda.memory.record.schema import CHANGES, DELETED_SESSIONS, MESSAGES, SESSIONS
from memoranda.memory.record.store import open_store
from memoranda.storage.salvage.rebuild import open_damaged, readable_rows
from memoranda.storage.schema import STATE_META, Column, Table
from memoranda.storage.sqlite.database import PAGE_SIZE
from tests.examples import is_full_run
from tests.storage.salvage.damaged_tables import (
    THINGS,
    make_things,
    noise,
    overwrite,
    root_of,
    rows_by_sqlite,
    rows_in_pages,
    saved_rows,
)

pytestmark = pytest.mark.slow

COUNT = 1_000


def _said(number: int) -> str:
    """A text that identifies its message in every page; every hundredth needs several pages."""
    return f"<{number}>" * (6_000 if number % 100 == 0 else 20 + number % 37)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with many messages, of which nothing is damaged."""
    path = tmp_path_factory.mktemp("whole") / "state.db"
    with open_store(path) as store:
        for session in range(20):
            store.sessions.create_session(f"s{session}", "cli")
            numbers = range(session * COUNT // 20, (session + 1) * COUNT // 20)
            store.messages.append_messages(
                f"s{session}", [{"role": "user", "content": _said(each)} for each in numbers]
            )
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of the store, to be damaged."""
    return Path(shutil.copy(whole, tmp_path / "state.db"))


def _check_all_but_this_page(path: Path, page: int, content: bytes) -> None:
    before = overwrite(path, page, content)
    stood_there = {int(number) for number in re.findall(rb"<(\d+)>", before)}
    saved = [row["content"] for row in saved_rows(path, MESSAGES)]
    lost = {_said(number): number for number in range(COUNT)}
    for text in saved:
        lost.pop(text, None)
    assert set(lost.values()) <= stood_there, page
    assert len(saved) <= COUNT
    assert len(set(saved)) == len(saved)
    overwrite(path, page, before)


@pytest.mark.parametrize(
    "content", [pytest.param(bytes(PAGE_SIZE), id="zeros"), pytest.param(noise(1), id="noise", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", ["messages", "sessions", "idx_messages_session", "the first page", "half way"])
def test_all_messages_in_other_pages_are_saved(path: Path, name: str, content: bytes) -> None:
    """They are saved although the page that refers to them is lost."""
    places = {"the first page": 1, "half way": path.stat().st_size // PAGE_SIZE // 2}
    _check_all_but_this_page(path, places.get(name) or root_of(path, name), content)


@pytest.mark.parametrize("noisy", [False, True])
def test_one_lost_page_loses_nothing_in_other_pages(path: Path, noisy: bool) -> None:
    """This is true for every page; every fifth is tried, and all of them in a full run."""
    for page in range(2 if noisy else 1, path.stat().st_size // PAGE_SIZE + 1, 1 if is_full_run() else 5):
        _check_all_but_this_page(path, page, noise(page) if noisy else bytes(PAGE_SIZE))


def test_a_lost_root_is_not_tried_for_every_row_that_there_could_be(path: Path) -> None:
    """In a large file that would take hours, and the rows are in the pages anyway."""
    overwrite(path, root_of(path, "messages"), noise(7))
    with closing(open_damaged(path)) as damaged:
        tries: list[str] = []
        damaged.set_trace_callback(tries.append)
        assert len(list(readable_rows(damaged, MESSAGES))) == COUNT
    assert len(tries) < 11_000


@pytest.mark.parametrize("lost", [512, 1024, 4096, 5000])
def test_the_beginning_of_the_file_is_lost(path: Path, lost: int) -> None:
    """The page size is lost with it, and is guessed."""
    content = path.read_bytes()
    path.write_bytes(random.Random(2).randbytes(lost) + content[lost:])
    assert {row["content"] for row in saved_rows(path, MESSAGES)} == {_said(number) for number in range(COUNT)}
    assert {row["id"] for row in saved_rows(path, SESSIONS)} == {f"s{number}" for number in range(20)}


@pytest.mark.parametrize("name", ["messages", "the first page"])
def test_the_doctor_saves_all_messages_and_says_how(path: Path, name: str) -> None:
    """A lost root or first page does not lead to an empty store."""
    overwrite(path, 1 if name == "the first page" else root_of(path, name), noise(3))
    (found,) = [finding for finding in check(path) if finding.severity == "error"]
    assert found.repair is not None
    told = str(found.repair())
    assert "saved 20 sessions and 1,000 messages" in told
    assert "after damaged pages" in told
    with open_store(path) as store:
        said = [message["content"] for each in range(20) for message in store.messages.get_messages(f"s{each}")]
    assert said == [_said(number) for number in range(COUNT)]


def test_a_file_without_our_rows_is_not_replaced(tmp_path: Path) -> None:
    """However damaged it looks: it belongs to another program."""
    path = tmp_path / "state.db"
    path.write_bytes(noise(4) * 20)
    path.chmod(0o600)
    (found,) = list(check(path))
    assert found.repair is not None
    with pytest.raises(StorageError, match="not a database"):
        found.repair()
    assert path.read_bytes() == noise(4) * 20
    assert [each.name for each in tmp_path.iterdir()] == ["state.db"]


@pytest.mark.parametrize("name", ["messages", "sessions", "the first page"])
def test_deleted_messages_are_never_restored(path: Path, name: str) -> None:
    """Neither free pages nor reused pages restore them."""
    with open_store(path) as store:
        store.deletion.delete_sessions([f"s{number}" for number in range(20) if number % 3])
    left = {number for number in range(COUNT) if number // (COUNT // 20) % 3 == 0}
    overwrite(path, 1 if name == "the first page" else root_of(path, name), noise(5))
    assert {row["content"] for row in saved_rows(path, MESSAGES)} == {_said(number) for number in left}


def test_messages_deleted_without_overwriting_are_not_restored(path: Path) -> None:
    """Its pages keep the text, and are known to be free."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA secure_delete=0")
        connection.execute("DELETE FROM messages WHERE id > 500")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"<999><999>" in path.read_bytes()
    overwrite(path, root_of(path, "messages"), bytes(PAGE_SIZE))
    assert sorted(row["id"] for row in saved_rows(path, MESSAGES)) == list(range(1, 501))


@pytest.mark.parametrize("columns_known", [True, False])
@pytest.mark.parametrize("table", [SESSIONS, MESSAGES, CHANGES, DELETED_SESSIONS, STATE_META], ids=lambda it: it.name)
def test_the_pages_contain_what_sqlite_reads(path: Path, table: Table, columns_known: bool) -> None:
    """Each table has its own rows only, including those in the log, without those deleted in the log."""
    with open_store(path) as store:
        store.deletion.delete_session("s3")
        store.edits.rewind_to_message("s4", store.messages.get_messages("s4")[-5]["id"])
        store.messages.append_messages("s5", [{"role": "user", "content": "in the log " * 2_000}] * 5)
        asked = rows_by_sqlite(path, table)
        found = rows_in_pages(path, table, columns_known=columns_known)
        assert asked
        assert sorted(found, key=repr) == sorted(asked.values(), key=repr)


def test_data_after_the_end_of_the_file_is_not_restored(path: Path) -> None:
    """A file that shrank may still have old data after its end until a checkpoint."""
    before = path.read_bytes()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM messages WHERE id > 500")
        connection.execute("VACUUM")
        assert path.read_bytes()[PAGE_SIZE * 2 :] == before[PAGE_SIZE * 2 :]
        assert {row["id"] for row in rows_in_pages(path, MESSAGES)} == set(range(1, 501))
    after = path.read_bytes()
    path.write_bytes(after + before[len(after) :])
    assert {row["id"] for row in rows_in_pages(path, MESSAGES)} == set(range(1, 501))


def test_rows_of_a_table_that_looks_the_same_stay_there(tmp_path: Path) -> None:
    """The pages that can be reached from another table are that table's."""
    pairs = [
        Table(name, "", (Column("key", "text", "PRIMARY KEY"), Column("value", "text"))) for name in ("one", "two")
    ]
    path = tmp_path / "pairs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        for table in pairs:
            connection.execute(table.create())
            connection.execute("BEGIN")
            rows = ((f"{table.name}{number}", "x" * 200) for number in range(1_000))
            connection.executemany(f"INSERT INTO {table.name} VALUES (?, ?)", rows)
            connection.execute("COMMIT")
    overwrite(path, root_of(path, "two"), noise(6))
    assert {row["key"] for row in saved_rows(path, pairs[1])} == {f"two{number}" for number in range(1_000)}
    assert {row["key"] for row in saved_rows(path, pairs[0])} == {f"one{number}" for number in range(1_000)}


@pytest.mark.parametrize("size", [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536])
def test_the_size_of_a_page_is_found_without_the_first_page(tmp_path: Path, size: int) -> None:
    """By the pages themselves."""
    path = tmp_path / "things.db"
    # A row that fills most of a page lies in what would be the second half of a smaller one.
    notes = ["n" * (90 if number % 10 else size * 7 // 10) for number in range(1, 2_000)]
    things = [(number, f"thing {number}" * 5, 1.5, number, None, note) for number, note in enumerate(notes, start=1)]
    make_things(path, size, "UTF-8", 0, things)
    content = path.read_bytes()
    path.write_bytes(bytes(size) + content[size:])
    assert {row["id"] for row in saved_rows(path, THINGS)} == set(range(1, 2_000))
