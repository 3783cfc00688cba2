"""Phrases and names are found in the whole store, however many messages have their words in another order."""

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.store import SessionStore
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.index.segments import check_segment, read_segments
from memoranda.search.index.sequences import CHUNK, encode_sequence, phrase_bytes
from tests.examples import examples
from tests.search.index.conftest import EVERYONE, ids
from tests.search.library import Library

pytestmark = pytest.mark.slow

WORDS = ["alpha", "beta", "gamma", "delta"]
BETWEEN = [" ", ".", "/", "_", "-", ", ", "\n", "::", "`", " 数据 "]


def append(sessions: SessionStore, texts: list[str]) -> list[int]:
    sessions.sessions.create_session("s", "cli")
    return sessions.messages.append_messages("s", [{"role": "tool", "content": text} for text in texts])


NAMES = [
    "os.path.join",
    "self._lock",
    "__init__.py",
    "NotImplementedError",
    "src/app/main.py",
    "--dry-run",
    "ana@example.com",
    "PROJ-1234",
    "v2.3.1",
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A library with each name in its oldest sessions, and then its parts in another order in many messages."""
    with closing(Library(tmp_path_factory.mktemp("names"))) as library:
        for name in NAMES:
            for number, text in enumerate((f"{name}: it works.", f"(`{name}`)", f"at x/{name}/y", f"{name},{name}.")):
                library.add(f"{name} {number}", text)
        for name in NAMES:
            parts = re.findall(r"[A-Z][a-z]+|[a-z]+|[A-Z]+|\d+", name)
            library.add(f"{name} apart", *[f"{' and '.join(reversed(parts))} {number}" for number in range(100)])
        library.index.catch_up()
        yield library


def test_a_name_that_only_the_oldest_messages_have_is_found(names: Library) -> None:
    """As typed, in backticks, before punctuation and inside a longer name; its parts alone are not the name."""
    for name in NAMES:
        for typed in (name, f"`{name}`", f"{name}?", f'"{name}"'):
            assert set(names.names(typed)) == {f"{name} {number}" for number in range(4)}, typed


def test_a_phrase_in_the_oldest_of_5000_messages_is_found_without_reading_the_others(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index knows the order of words, so that hardly any text is compared with the phrase."""
    first, *_ = append(sessions, ["return None", *(f"None {n} return" for n in range(5_000))])
    index.catch_up()
    read: list[int] = []
    by_id = sessions.feed.messages_by_id

    def count_and_read(wanted: Collection[int]) -> dict[int, FeedMessage]:
        read.extend(wanted)
        return by_id(wanted)

    monkeypatch.setattr(sessions.feed, "messages_by_id", count_and_read)
    assert ids(index, "return-None") == [first]
    assert first in read
    assert len(read) < 100


@given(
    texts=st.lists(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN)), max_size=6), max_size=12),
    typed=st.lists(st.sampled_from(WORDS), min_size=2, max_size=4),
)
@settings(max_examples=examples(150), deadline=None)
def test_a_phrase_is_found_exactly_where_an_expression_finds_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[list[tuple[str, str]]], typed: list[str]
) -> None:
    """Whatever stands between the words, and also where words of a script without spaces separate them."""
    written = ["".join(word + between for word, between in text) for text in texts]
    expression = re.compile(r"[^a-z数]+".join(typed))
    with closing(Library(tmp_path_factory.mktemp("library"))) as library:
        made = library.add("s", *written) if written else []
        library.index.catch_up()
        expected = [id_ for id_, text in zip(made, written, strict=True) if expression.search(text)]
        assert sorted(ids(library.index, "-".join(typed), EVERYONE)) == expected


def test_words_of_other_scripts_are_in_no_sequence() -> None:
    """They are found by their pairs of characters; words with spaces beside them keep their order."""
    assert phrase_bytes(["数据", "据库"]) == []
    (run,) = phrase_bytes(["foo", "bar", "数据", "baz"])
    assert run in encode_sequence([["foo", "bar", "baz"]])


def test_the_words_of_one_text_do_not_follow_those_of_another(sessions: SessionStore, index: SearchIndex) -> None:
    """Neither those of the next message, nor those of the arguments of a tool after what a model said."""
    sessions.sessions.create_session("s", "cli")
    call = {"id": "c", "type": "function", "function": {"name": "none", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "we return"},
        {"role": "user", "content": "none of it"},
        {"role": "assistant", "content": "they return", "tool_calls": [call]},
    ]
    sessions.messages.append_messages("s", messages)
    index.catch_up()
    assert ids(index, "return-none") == []
    assert len(ids(index, "return none")) == 1


def test_sequences_are_complete_however_messages_arrive(sessions: SessionStore, index: SearchIndex) -> None:
    """One by one and in groups, there is one row for each chunk, and nothing is missing."""
    made = append(sessions, [f"number n{n}x stands here" for n in range(10 * CHUNK + 10)])
    sizes = [1, 2, 3, CHUNK, 50, 5]
    while index.state().indexed.count < len(made):
        index.catch_up(limit=sizes[0])
        sizes = [*sizes[1:], sizes[0]]
    connection = index._current()._writer
    rows = connection.execute("SELECT words FROM sequences ORDER BY chunk").fetchall()
    assert [words.count(0) for (words,) in rows] == [*([CHUNK] * (len(made) // CHUNK)), len(made) % CHUNK]
    index.check()
    assert ids(index, "stands-here") == made[::-1]


def test_a_deleted_message_leaves_only_its_place(sessions: SessionStore, index: SearchIndex) -> None:
    """The order of its words is gone after a purge, and all others are found."""
    made = append(sessions, [f"number n{n}x stands here" for n in range(CHUNK + 3)])
    sessions.sessions.create_session("gone", "cli")
    sessions.messages.append_messages("gone", [{"role": "user", "content": "very secret words"}])
    index.catch_up()
    (secret,) = phrase_bytes(["secret", "word"])
    words = "SELECT words FROM sequences"
    assert any(secret in row for (row,) in index._current()._writer.execute(words))
    sessions.deletion.delete_session("gone")
    index.catch_up()
    index.purge()
    assert not any(secret in row for (row,) in index._current()._writer.execute(words))
    index.check()
    assert ids(index, "stands-here") == made[::-1]


def test_a_missing_sequence_is_damage(sessions: SessionStore, index: SearchIndex) -> None:
    """A check notices it, and so does the search that needs it: it then reads the record."""
    made = append(sessions, ["return None", "None to return"])
    index.catch_up()
    connection = index._current()._writer
    connection.execute("UPDATE sequences SET words = substr(words, 1, 2)")
    (segment,) = read_segments(connection)
    with pytest.raises(sqlite3.DatabaseError, match="sequence"):
        check_segment(connection, segment)
    connection.execute("DELETE FROM sequences")
    assert ids(index, "return-none") == made[:1]
