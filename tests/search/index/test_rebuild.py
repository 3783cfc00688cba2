"""An index that followed the store answers like a rebuilt one, and scanning answers like either."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore, open_store
from memoranda.search.index import search_index, unindexed_scan
from memoranda.search.index.postings import And, Filters, Or, Pattern, Phrase, Posting, Prefix, Without, Word
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.query import prefix_pattern
from tests.examples import examples
from tests.search.index.conftest import EVERYONE, pattern

TEXTS = [
    "red fox",
    "getUserName fails",
    "数据库迁移",
    "deployed 部署 docker",
    "foxes, running",
    "C# or c++",
    "don't",
    "",
]
QUERIES: list[Pattern] = [
    *(Word(token) for token in ("red", "fox", "user", "run", "docker", "数", "部署", "csharp", "dont", "use", "titl")),
    Phrase(("red", "fox")),
    pattern("数据库迁移"),
    Prefix("dep"),
    And((Word("deploi"), Word("部署"))),
    Or((Word("fox"), Word("迁移"))),
    Without(Word("fox"), Word("red")),
    prefix_pattern("runni") or Word(""),
]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("abc"), st.sampled_from(TEXTS)),
        st.tuples(st.just("rewind"), st.sampled_from("abc"), st.integers(0, 5)),
        st.tuples(st.just("restore"), st.sampled_from("abc"), st.integers(0, 5)),
        st.tuples(st.just("redact"), st.sampled_from("abc"), st.integers(0, 5)),
        st.tuples(st.just("rename"), st.sampled_from("abc"), st.sampled_from(["title one", "fox title", None])),
        st.tuples(st.just("delete"), st.sampled_from("abc"), st.none()),
        st.tuples(st.just("follow"), st.none(), st.none()),
    ),
    max_size=30,
)


def _take(store: SessionStore, index: SearchIndex, step: tuple[str, str | None, object]) -> None:
    action, session, value = step
    if action == "follow":
        index.catch_up()
        return
    assert session is not None
    store.sessions.create_session(session, "cli", started_at=1.0)
    messages = [message["id"] for message in store.messages.get_messages(session)]
    if action == "append":
        store.messages.append_message(session, "user", str(value))
    elif action == "delete":
        store.deletion.delete_session(session)
    elif action == "rename":
        store.titles.set_session_title(session, None if value is None else f"{value} {session}")
    elif messages:
        assert isinstance(value, int)
        message = messages[value % len(messages)]
        if action == "rewind":
            store.edits.rewind_to_message(session, message)
        elif action == "redact":
            store.edits.redact_message(message)
        else:
            store.edits.restore_rewound(session, messages[-1] + 1)


def _answers(index: SearchIndex) -> list[list[tuple[int, str, int, int, float]]]:
    with index.reading() as reader:
        found = [reader.postings(query, EVERYONE, 1_000) for query in QUERIES]
        names = reader.sessions({posting.session for some in found for posting in some})
    return [sorted(_known(posting, names[posting.session].id) for posting in some) for some in found]


def _known(posting: Posting, session: str) -> tuple[int, str, int, int, float]:
    return (posting.message, session, posting.role, posting.length, posting.time)


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_a_followed_index_answers_as_a_rebuilt_one(steps: list[tuple[str, str | None, object]]) -> None:
    """Whatever happened to the store, and whenever the index looked."""
    with TemporaryDirectory() as name, open_store(Path(name) / "state.db") as store:
        followed = SearchIndex(Path(name) / "index.db", store.feed)
        for step in steps:
            _take(store, followed, step)
        rebuilt = SearchIndex(Path(name) / "fresh.db", store.feed)
        assert _answers(followed) == _answers(rebuilt)
        with followed.reading() as one, rebuilt.reading() as other:
            assert (one.size().messages, one.size().tokens) == (other.size().messages, other.size().tokens)
        followed.compact()
        assert _answers(followed) == _answers(rebuilt)
        followed.close()
        rebuilt.close()


@pytest.mark.parametrize("indexed", [0, pytest.param(7, marks=pytest.mark.slow)])
def test_scanning_answers_as_the_index_does(
    tmp_path: Path, sessions: SessionStore, monkeypatch: pytest.MonkeyPatch, indexed: int
) -> None:
    """For words of English and Chinese, in every kind of pattern, with none or some of the messages indexed."""
    for name in "abc":
        sessions.sessions.create_session(name, "cli", title=f"title {name}")
        for text in TEXTS * 2:
            sessions.messages.append_message(name, "user", text)
    full = SearchIndex(tmp_path / "full.db", sessions.feed)
    full.catch_up()
    monkeypatch.setattr(search_index, "MAX_READ_ALL", 3)
    monkeypatch.setattr(unindexed_scan, "MAX_READ_ALL", 3)
    part = SearchIndex(tmp_path / "part.db", sessions.feed)
    if indexed:
        part.catch_up(limit=indexed)
    else:
        # Titles come with changes, which any search applies.
        monkeypatch.setattr(part, "_refresh", lambda head: None)
    filters = Filters(Scope.everyone(), titles=False)
    for query in QUERIES:
        with full.reading() as one, part.reading() as other:
            assert [p.message for p in one.postings(query, filters, 99)] == [
                p.message for p in other.postings(query, filters, 99)
            ], query
            assert other.note is not None
    full.close()
    part.close()
