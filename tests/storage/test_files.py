"""What is not ours, or is damaged, is refused with a clear error and never changed."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import CorruptStoreError, StorageError
from memoranda.memory.record.store import open_store
from tests.conftest import tree


def _filled(path: Path, messages: int = 300) -> Path:
    with open_store(path) as store:
        store.sessions.create_session("s", "cli")
        store.messages.append_messages(
            "s", [{"role": "user", "content": f"message {each} " * 20} for each in range(messages)]
        )
    return path


def _foreign(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


FOREIGN: dict[str, Callable[[Path], object]] = {
    "random bytes": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "a few random bytes": lambda path: path.write_bytes(b"\x00\x01\x02"),
    "text": lambda path: path.write_text("dear diary"),
    "a header and nothing": lambda path: path.write_bytes(b"SQLite format 3\x00"),
    "a header and zeros": lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(8000)),
    "another program's database": lambda path: _foreign(path, "CREATE TABLE notes (id INTEGER, text TEXT)"),
    "a database with our tables' names": lambda path: _foreign(
        path, "CREATE TABLE sessions (id TEXT PRIMARY KEY)", "CREATE TABLE messages (id INTEGER)"
    ),
    "another program's empty database": lambda path: _foreign(
        path, "PRAGMA application_id=77", "PRAGMA user_version=3"
    ),
    "another program's view": lambda path: _foreign(path, "CREATE VIEW v AS SELECT 1"),
    "another program's log": lambda path: _foreign(path, "PRAGMA journal_mode=WAL", "CREATE TABLE notes (text TEXT)"),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_a_file_that_is_not_ours_is_refused_and_not_changed(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """Every byte stays, and no other file is created."""
    path = tmp_path / "state.db"
    make(path)
    before = tree(tmp_path)
    with pytest.raises(CorruptStoreError, match="was not changed"):
        open_store(path)
    assert tree(tmp_path) == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """There is nothing in it that could be lost."""
    path = tmp_path / "state.db"
    path.touch()
    with open_store(path) as store:
        assert store.sessions.create_session("s", "cli")


@pytest.mark.parametrize("keep", [100, 512, 1024, 4096, 5000, 20_000, 0.5, 0.9])
def test_a_truncated_file_is_never_made_worse(tmp_path: Path, keep: float) -> None:
    """Opening, reading or writing it says that it is damaged, or shows what is left; no other error comes through."""
    path = _filled(tmp_path / "state.db")
    whole = path.read_bytes()
    left = whole[: int(keep if keep > 1 else len(whole) * keep)]
    path.write_bytes(left)
    try:
        with open_store(path) as store:
            store.listing.list_sessions_rich()
            store.messages.get_messages("s")
    except CorruptStoreError as error:
        assert "was not changed" in str(error)
    assert path.read_bytes()[: len(left)] == left


@pytest.mark.slow
def test_damaged_pages_give_clear_errors_and_no_surprises(tmp_path: Path) -> None:
    """Every page overwritten in turn: an operation works, or says that the file is damaged."""
    source = _filled(tmp_path / "source.db", 100)
    whole = source.read_bytes()
    page = int.from_bytes(whole[16:18], "big")
    noise = random.Random(7).randbytes(page)
    failed = 0
    for number in range(len(whole) // page):
        path = tmp_path / f"{number}.db"
        path.write_bytes(whole[: number * page] + noise + whole[(number + 1) * page :])
        try:
            with open_store(path) as store:
                problems = store.maintenance.check_integrity()
                store.messages.get_messages("s")
                store.listing.list_sessions_rich()
                assert problems or store.sessions.get_session("s") is not None
        except CorruptStoreError:
            failed += 1
        path.unlink()
    assert failed > 3


def test_damage_is_found_by_the_check(tmp_path: Path) -> None:
    """Also where opening does not look."""
    path = _filled(tmp_path / "state.db")
    content = bytearray(path.read_bytes())
    content[40960:45056] = random.Random(3).randbytes(4096)
    path.write_bytes(content)
    with open_store(path) as store:
        assert store.maintenance.check_integrity() != []


@pytest.mark.slow
def test_a_damaged_log_loses_only_transactions_after_the_damage(tmp_path: Path) -> None:
    """After a power cut the log may end in garbage; whole transactions before it are read."""
    with open_store(tmp_path / "state.db") as store:
        store.sessions.create_session("s", "cli")
        for number in range(10):
            store.messages.append_messages(
                "s", [{"role": "user", "content": f"{number}a"}, {"role": "user", "content": f"{number}b"}]
            )
        log = Path(f"{Path(store.engine.location)}-wal").read_bytes()
        shown = set()
        for cut in range(0, len(log), 9000):
            copy = tmp_path / f"copy{cut}"
            copy.mkdir()
            shutil.copy(tmp_path / "state.db", copy)
            (copy / "state.db-wal").write_bytes(log[:cut] + random.Random(cut).randbytes(500))
            with open_store(copy / "state.db") as torn:
                contents = [row["content"] for row in torn.messages.get_messages("s")]
                assert contents == [f"{each // 2}{'ab'[each % 2]}" for each in range(len(contents))]
                assert len(contents) % 2 == 0
                assert torn.maintenance.miscounted_sessions() == []
                shown.add(len(contents))
        assert len(shown) > 5


def test_names_with_odd_characters_are_plain_names(tmp_path: Path) -> None:
    """Nothing in a path is taken for an option."""
    for name in ("a b?mode=memory&x=%41#y.db", "é 部.db", "100%.db", "file:x.db"):
        path = tmp_path / "homes" / name
        with open_store(path) as store:
            store.sessions.create_session("s", "cli")
        assert path.exists()
    assert len(list((tmp_path / "homes").iterdir())) == 4


def test_a_link_to_a_store_is_followed_and_a_dangling_one_is_refused(tmp_path: Path) -> None:
    """A dangling link is not written through."""
    _filled(tmp_path / "real.db", 1)
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with open_store(tmp_path / "link.db") as store:
        assert store.sessions.get_session("s") is not None
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere.db")
    with pytest.raises(StorageError):
        open_store(tmp_path / "dangling.db")
    assert not (tmp_path / "nowhere.db").exists()
