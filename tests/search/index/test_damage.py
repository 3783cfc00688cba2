"""Whatever happens to the files of the index: appends work, searches answer, and it is rebuilt."""

import logging
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record.record import accept_store
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.search.index import generations
from memoranda.search.index.generations import PAGE_SIZE
from memoranda.search.index.index_file import IndexFile
from memoranda.search.index.postings import Word
from memoranda.search.index.search_index import SearchIndex
from tests.conftest import unprivileged
from tests.search.index.conftest import EVERYONE, ids

# Run in a process of its own: closing a file drops this process's locks on it, as another program's would not.
_OVERWRITE = """
import sys
path, offset, seed, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
import random
with open(path, "r+b") as file:
    file.seek(offset)
    file.write(random.Random(seed).randbytes(size) if seed else bytes(size))
"""


def _overwrite(path: Path, offset: int, seed: int, size: int) -> None:
    arguments = [str(path), str(offset), str(seed), str(size)]
    subprocess.run([sys.executable, "-IS", "-c", _OVERWRITE, *arguments], check=True)


def _fill(sessions: SessionStore, count: int = 20, session: str = "s") -> list[int]:
    sessions.sessions.create_session(session, "cli", title=f"About {session}")
    messages = [{"role": "user", "content": f"weasel number{n} 数据库"} for n in range(count)]
    return sessions.messages.append_messages(session, messages)


def _delete(path: Path) -> None:
    path.unlink()


def _delete_all(path: Path) -> None:
    generations.remove(path)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 100)


def _garble(path: Path) -> None:
    path.write_bytes(b"this is no database" * 1000)


def _drop_a_table(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE docs")
    connection.close()


def _drop_words(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE postings")
    connection.close()


def _garble_sets(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE postings SET docs = x'ff'")
    connection.commit()
    connection.close()


def _lose_the_state(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM state")
    connection.commit()
    connection.close()


HARM = [
    _delete, _delete_all, _empty, _cut, _garble, _drop_a_table, _drop_words, _garble_sets, _lose_the_state
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("opened", [True, False])
def test_it_heals(tmp_path: Path, sessions: SessionStore, harm: Callable[[Path], None], opened: bool) -> None:
    """Harmed while it is open or while it is not, every message is found, and the next file is whole."""
    made = _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    if not opened:
        index.close()
    harm(index.files[0])
    made.append(sessions.messages.append_message("s", "user", "another weasel"))
    assert ids(index, "weasel") == made[::-1]
    made.append(sessions.messages.append_message("s", "user", "one more weasel"))
    assert ids(index, "weasel") == made[::-1]
    index.close()
    fresh = SearchIndex(tmp_path / "index.db", sessions.feed)
    assert ids(fresh, "weasel") == made[::-1]
    assert fresh.state().complete
    assert len(fresh.files) == 1
    fresh.close()


def test_damage_is_logged(tmp_path: Path, sessions: SessionStore, caplog: pytest.LogCaptureFixture) -> None:
    """Once, with the file and what is done about it."""
    _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    index.close()
    _garble(index.files[0])
    with caplog.at_level(logging.WARNING):
        assert len(ids(index, "weasel")) == 20
        assert len(ids(index, "weasel")) == 20
    assert len(caplog.records) == 1
    assert "It will be rebuilt" in caplog.text
    index.close()


def test_damage_that_is_met_in_the_middle_of_a_search_is_answered_around(
    tmp_path: Path, sessions: SessionStore
) -> None:
    """The same view continues with the record itself and says so."""
    made = _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    with index.reading() as reader:
        connection = reader._view.view.connection  # type: ignore[union-attr]
        connection.execute("ROLLBACK")
        connection.execute("UPDATE postings SET docs = x'ff'")
        connection.execute("BEGIN")
        found = reader.postings(Word("weasel"), EVERYONE, 100)
        assert [posting.message for posting in found] == made[::-1]
        assert [session.id for session in reader.sessions({p.session for p in found}).values()] == ["s"]
        assert reader.note is not None
        assert "searched directly" in reader.note
    assert ids(index, "weasel") == made[::-1]
    index.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(7, marks=pytest.mark.torture)])
def test_every_page_overwritten_in_turn_while_others_append(tmp_path: Path, sessions: SessionStore, seed: int) -> None:
    """No append fails, every search finds what was acknowledged before it, and the index ends undamaged."""
    words = random.Random(1).sample(range(10_000), 300)
    sessions.sessions.create_session("s", "cli", title="Pages")
    for start in range(0, 300, 100):
        texts = [f"weasel w{n} v{n} u{n}x 数据{chr(0x4E00 + n)}库" for n in words[start : start + 100]]
        sessions.messages.append_messages("s", [{"role": "user", "content": text} for text in texts])
    made = [message["id"] for message in sessions.messages.get_messages("s")]
    acknowledged: list[int] = []
    done = threading.Event()

    def append() -> None:
        while not done.wait(0.005):
            acknowledged.append(sessions.messages.append_message("s", "user", "a stoat"))

    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    appender = threading.Thread(target=append)
    appender.start()
    page = 0
    while True:
        index.catch_up()
        index.close()
        file = index.files[0]
        if page * 8192 >= file.stat().st_size:
            break
        _overwrite(file, page * 8192, seed and page + 1, 8192)
        before = list(acknowledged)
        assert ids(index, "weasel") == made[::-1], page
        assert set(before) <= set(ids(index, "stoats")), page
        wanted = page * 7 % 300
        assert ids(index, f"u{words[wanted]}x {chr(0x4E00 + words[wanted])}") == [made[wanted]], page
        page += 1
    done.set()
    appender.join()
    assert page > 12
    assert ids(index, "stoat") == acknowledged[::-1]
    assert len(acknowledged) == len(sessions.messages.get_messages("s")) - 300
    index.close()


def test_an_index_of_another_store_is_not_believed(tmp_path: Path, sessions: SessionStore) -> None:
    """It is rebuilt for the current store."""
    _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    index.close()
    with open_store(tmp_path / "other.db") as other:
        (made,) = _fill(other, 1)
        stranger = SearchIndex(tmp_path / "index.db", other.feed)
        assert ids(stranger, "weasel") == [made]
        stranger.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE state SET format = '999.1'",
        "ALTER TABLE state DROP COLUMN next_doc",
        "ALTER TABLE state ADD COLUMN more INTEGER",
    ],
)
def test_an_index_of_another_version_is_rebuilt(tmp_path: Path, sessions: SessionStore, change: str) -> None:
    """Its tokens and its tables may differ, whether it is older or newer."""
    made = _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    index.close()
    old = index.files[0]
    connection = sqlite3.connect(old)
    connection.execute(change)
    connection.commit()
    connection.close()
    assert ids(index, "weasel") == made[::-1]
    assert index.files != [old]
    index.close()


def test_a_file_that_another_process_replaced_is_noticed(tmp_path: Path, sessions: SessionStore) -> None:
    """Before each use, without an error."""
    made = _fill(sessions)
    one, other = (SearchIndex(tmp_path / "index.db", sessions.feed) for _ in range(2))
    assert ids(one, "weasel") == ids(other, "weasel") == made[::-1]
    one.compact()
    made += _fill(sessions, 1, "t")
    assert ids(other, "weasel") == ids(one, "weasel") == made[::-1]
    assert len(one.files) == 1
    one.close()
    other.close()


@pytest.mark.slow
def test_a_full_disk_stops_following_but_not_searching(
    tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit into the index is read from the store; with room again it continues."""
    made = _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    file = index._current()
    file._writer.execute(f"PRAGMA max_page_count={_pages(file)}")
    # Words that are all different need new pages.
    text = " ".join(f"word{n}" for n in range(30_000))
    made.append(sessions.messages.append_message("s", "user", f"weasel {text}"))
    state = index.catch_up()
    assert state.problem == "the disk is full"
    assert not state.complete
    assert ids(index, "weasel") == made[::-1]
    file._writer.execute("PRAGMA max_page_count=1000000")
    assert index.catch_up().complete
    index.close()


def _pages(file: IndexFile) -> int:
    return int(file._writer.execute("PRAGMA page_count").fetchone()[0])


def test_a_search_does_not_wait_for_a_busy_index(
    tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process holds the write lock, missing messages are read from the store."""
    monkeypatch.setattr("memoranda.search.index.index_file._WAIT", 0.05)
    made = _fill(sessions)
    index = SearchIndex(tmp_path / "index.db", sessions.feed)
    index.catch_up()
    holder = sqlite3.connect(index.files[0], isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    made.append(sessions.messages.append_message("s", "user", "one more weasel"))
    sessions.edits.redact_message(made[0])
    assert ids(index, "weasel") == made[:0:-1]
    assert ids(index, "redacted") == [made[0]]
    assert ids(index, "about") == [0]
    holder.execute("ROLLBACK")
    holder.close()
    assert ids(index, "weasel") == made[:0:-1]
    index.close()


def test_a_directory_that_cannot_be_written() -> None:
    """The existing index is used, missing messages are read from the store, and no file is created."""
    with unprivileged() as directory:
        with open_store(directory / "state.db") as sessions:
            made = _fill(sessions)
            index = SearchIndex(directory / "index.db", sessions.feed)
            index.catch_up()
            index.close()
            made.append(sessions.messages.append_message("s", "user", "one more weasel"))
            sessions.edits.redact_message(made[0])
        directory.chmod(0o500)
        for path in directory.iterdir():
            path.chmod(0o400)
        try:
            with open_store(directory / "state.db") as sessions:
                index = SearchIndex(directory / "index.db", sessions.feed)
                assert ids(index, "weasel") == made[:0:-1]
                assert ids(index, "redacted") == [made[0]]
                index.close()
                none = SearchIndex(directory / "missing.db", sessions.feed)
                assert ids(none, "weasel") == made[:0:-1]
                assert none.state().problem == "Permission denied"
                with none.reading() as reader:
                    assert "Permission denied" in (reader.note or "")
                none.close()
        finally:
            directory.chmod(0o700)


@pytest.mark.slow
def test_a_torn_page_is_found_by_a_check(tmp_path: Path, sessions: SessionStore) -> None:
    """Half of each page in turn is lost, which a search may not notice; after the check everything is found again."""
    sessions.sessions.create_session("s", "cli")
    made = sessions.messages.append_messages(
        "s", [{"role": "user", "content": f"weasel{n} owl{n % 7}"} for n in range(3_000)]
    )
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        index.catch_up()
        whole = index.files[0].read_bytes()
    for place in range(0, len(whole), PAGE_SIZE):
        (file,) = generations.generations(tmp_path / "index.db")
        torn = bytearray(whole)
        torn[place + PAGE_SIZE // 2 : place + PAGE_SIZE] = bytes(PAGE_SIZE // 2)
        generations.remove(file)
        file.write_bytes(torn)
        with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
            index.check()
            index.catch_up()
            assert [ids(index, f"weasel{n}") for n in range(0, 3_000, 100)] == [[id_] for id_ in made[::100]], place


def test_a_sound_index_is_checked_once(tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often something is not found."""
    _fill(sessions)
    checks = []
    real = IndexFile.check

    def check(file: IndexFile) -> None:
        checks.append(file)
        real(file)

    monkeypatch.setattr(IndexFile, "check", check)
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        index.catch_up()
        for _ in range(3):
            index.check()
        assert len(checks) == 1
        assert ids(index, "weasel")


@pytest.mark.parametrize("more", [0, 5, 50])
def test_a_store_restored_from_an_older_copy_is_indexed_again(tmp_path: Path, more: int) -> None:
    """Ids are assigned again: lost messages are not found, and all newer messages are."""
    path = tmp_path / "state.db"
    with open_store(path) as store, closing(SearchIndex(tmp_path / "index.db", store.feed)) as index:
        _fill(store)
        index.catch_up()
    older = path.read_bytes()
    with open_store(path) as store, closing(SearchIndex(tmp_path / "index.db", store.feed)) as index:
        store.messages.append_messages("s", [{"role": "user", "content": "lost ferret"}] * 20)
        index.catch_up()
    path.write_bytes(older)
    accept_store(path)
    with open_store(path) as store, closing(SearchIndex(tmp_path / "index.db", store.feed)) as index:
        made = [store.messages.append_message("s", "user", "new stoat") for _ in range(more)]
        assert ids(index, "stoat") == made[::-1]
        assert ids(index, "ferret") == []
        assert len(ids(index, "weasel")) == 20


def test_deleting_the_last_messages_needs_no_new_index(tmp_path: Path, sessions: SessionStore) -> None:
    """Followed or not yet followed when the index is opened again."""
    _fill(sessions)
    _fill(sessions, 5, "t")
    for followed in (True, False):
        with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
            index.catch_up()
            files = index.files
            sessions.deletion.delete_session("t")
            if followed:
                index.catch_up()
        with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
            assert len(ids(index, "weasel")) == 20
            assert index.files == files
        _fill(sessions, 5, "t")


def test_a_directory_with_the_name_of_an_index_file_is_ignored(tmp_path: Path, sessions: SessionStore) -> None:
    """It is not an index, however new its name is."""
    (tmp_path / "index.db.9999999999999999999").mkdir()
    _fill(sessions)
    with closing(SearchIndex(tmp_path / "index.db", sessions.feed)) as index:
        assert index.catch_up().complete
        assert len(ids(index, "weasel")) == 20
