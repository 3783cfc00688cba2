"""A search that finds nothing looks for longer words that contain what was typed, and says so."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.search import guidance
from memoranda.search.index import vocabulary
from memoranda.search.index.postings import Filters
from tests.search.library import Library

pytestmark = pytest.mark.slow

TEXTS = {
    "german": "Der Datenbankserver wurde neu gestartet",
    "russian": "Летом мы были в Новосибирске",
    "finnish": "Virhe oli tietokannassa",
    "hebrew": "הלכתי לבית הספר אתמול",
    "library": "The loader reports that libheronmath.so.6 is missing",
    "port": "The heron cluster listens on port 5433",
}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with memoranda.open(tmp_path_factory.mktemp("longer")) as opened:
        for text in TEXTS.values():
            with opened.session(source="cli") as session:
                session.record("user", text)
        yield opened


def test_a_part_of_a_word_is_found(memory: memoranda.Memory) -> None:
    """Words that are joined, have another ending, or are names in code."""
    for typed, name in [
        ("Datenbank", "german"),
        ("server", "german"),
        ("Datenbank Wartung", "german"),
        ("Новосибирск", "russian"),
        ("tietokanna", "finnish"),
        ("בית", "hebrew"),
        ("heronmath", "library"),
    ]:
        found = memory.search(typed)
        assert [hit["snippet"].replace(">>>", "").replace("<<<", "") for hit in found["results"]] == [TEXTS[name]]
        assert found["matched"] == guidance.LONGER_WORDS
        assert found["confidence"] == found["results"][0]["confidence"] == "unsure"


def test_the_whole_word_is_marked(memory: memoranda.Memory) -> None:
    """A reader sees which word it was."""
    assert ">>>Datenbankserver<<<" in memory.search("bankserv")["results"][0]["snippet"]
    assert memory.search("bankserv")["not_found"] == ["bankserv"]


def test_nothing_longer_is_searched_otherwise(memory: memoranda.Memory) -> None:
    """If the words occur, if they are meant literally, if they are short or no words, and if no word contains them."""
    for typed in ["heron", '"Datenbank"', "Datenbank NOT neu", "(Datenbank OR Bank)", "dat", "dbx", "5433", "ztenban"]:
        assert memory.search(typed).get("matched") != guidance.LONGER_WORDS


def test_words_of_other_users_find_nothing(tmp_path: Path) -> None:
    """Users share an index, and what it knows of one does not show in the answer to another."""
    with memoranda.open(tmp_path, user="ana") as ana, ana.session(source="cli") as session:
        session.record("user", TEXTS["german"])
    with memoranda.open(tmp_path, user="bo") as bo:
        found = bo.search("Datenbank")
    assert found["results"] == []
    assert "server" not in str(found).lower()


def test_words_of_other_users_hide_nothing(tmp_path: Path) -> None:
    """Another user's word begins with what was typed, and the user's own only contains it."""
    with memoranda.open(tmp_path, user="ana") as ana, ana.session(source="cli") as session:
        session.record("user", "We went bankserverless")
    with memoranda.open(tmp_path, user="bo") as bo:
        with bo.session(source="cli") as session:
            session.record("user", TEXTS["german"])
        assert [hit["confidence"] for hit in bo.search("bankserver")["results"]] == ["unsure"]


def test_messages_that_are_not_indexed_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is searched directly until the index has followed."""
    with memoranda.open(tmp_path) as memory:
        with memory.session(source="cli") as session:
            session.record("user", TEXTS["german"])
        monkeypatch.setattr("memoranda.search.index.search_index.open_newest", lambda *_: _fail())
        found = memory.search("bankserver")
    assert [hit["confidence"] for hit in found["results"]] == ["unsure"]
    assert "searched directly" in found["note"]


def _fail() -> None:
    raise OSError(28, "No space left on device")


def test_looking_inside_words_reads_no_postings(memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment has a list of its words: a search without a match does not read the whole index."""
    statements: list[str] = []
    looked = vocabulary.words_with

    def look(connection: sqlite3.Connection, *arguments: Any) -> list[str]:
        connection.set_trace_callback(statements.append)
        try:
            return looked(connection, *arguments)
        finally:
            connection.set_trace_callback(None)

    monkeypatch.setattr("memoranda.search.index.view.words_with", look)
    assert len(memory.search("bankserver")["results"]) == 1
    assert statements
    assert not any("postings" in statement for statement in statements)


def test_a_list_of_words_is_read_as_it_was_written() -> None:
    """Short ones as they are, long ones compressed, whatever bytes these have."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE words (segment INTEGER PRIMARY KEY, list BLOB NOT NULL)")
        for number in range(1_500):
            words = [f"{number}x{place}wort" for place in range(number % 140)]
            vocabulary.write_words(connection, 1, words)
            assert vocabulary.words_with(connection, [1], ["wort"], 200) == words, number


def test_words_are_found_in_every_segment_until_their_last_message_is_deleted(tmp_path: Path) -> None:
    """Also after segments were merged, and not those of numbers and keys."""
    with closing(Library(tmp_path)) as library:
        for number in range(20):
            library.add(f"s{number}", f"Wort{'abcdefghij'[number % 10]}kette und x{number}wort5y")
            library.index.catch_up()
        with library.index.reading() as reader:
            assert set(reader.longer_words(["kett"], inside=True)["kett"]) == {f"wort{c}kett" for c in "abcdefghij"}
            assert reader.longer_words(["wort5"], inside=True) == {"wort5": []}
        for number in range(0, 20, 10):
            library.store.deletion.delete_session(f"s{number}")
        library.index.catch_up()
        library.index.purge()
        with library.index.reading() as reader:
            assert "wortakett" not in reader.longer_words(["kett"], inside=True)["kett"]
            assert "wortbkett" in reader.longer_words(["kett"], inside=True)["kett"]


def test_a_hook_stays_silent(memory: memoranda.Memory) -> None:
    """It was not asked to search, so it does not guess."""
    assert memory.sessions.find("Datenbank", Filters(memory.sessions.scope), limit=3).hits == ()
