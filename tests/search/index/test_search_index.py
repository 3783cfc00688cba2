"""What the index finds, and how it follows the store."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.memory.record import feed
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.search.index import search_index, unindexed_scan
from memoranda.search.index.postings import (
    ASSISTANT,
    TITLE,
    TOOL,
    USER,
    And,
    Filters,
    Or,
    Pattern,
    Phrase,
    Prefix,
    Without,
    Word,
)
from memoranda.search.index.search_index import SearchIndex
from memoranda.storage.position import START, Position
from tests.search.index.conftest import EVERYONE, Find, ids, postings


def test_own_writes_are_seen(sessions: SessionStore, find: Find) -> None:
    """A message that was appended before a search is found by it."""
    sessions.sessions.create_session("s", "cli")
    for number in range(3):
        wanted = sessions.messages.append_message("s", "user", f"The parrot number{number} sings")
        assert find(f"parrots number{number}") == [wanted]
    assert len(find("parrot")) == 3


def test_newest_come_first_and_no_more_than_asked(sessions: SessionStore, index: SearchIndex) -> None:
    """The order is that of recording."""
    sessions.sessions.create_session("s", "cli")
    made = sessions.messages.append_messages("s", [{"role": "user", "content": "again"} for _ in range(5)])
    with index.reading() as reader:
        assert [posting.message for posting in reader.postings(Word("again"), EVERYONE, 3)] == made[:1:-1]


def test_patterns(sessions: SessionStore, index: SearchIndex) -> None:
    """Words, prefixes, phrases, and their combinations, across scripts."""
    sessions.sessions.create_session("s", "cli")
    a = sessions.messages.append_message("s", "user", "red apples and green pears")
    b = sessions.messages.append_message("s", "user", "green apples 数据库迁移 with docker")
    c = sessions.messages.append_message("s", "user", "pears, pears, pears in the 数据中心")
    with index.reading() as reader:

        def found(pattern: Pattern) -> list[int]:
            return [posting.message for posting in reader.postings(pattern, EVERYONE, 10)]

        assert found(Word("appl")) == [b, a]
        assert found(Prefix("app")) == [b, a]
        assert found(Phrase(("green", "pear"))) == [a]
        assert found(And((Word("green"), Word("pear")))) == [a]
        assert found(Or((Word("red"), Word("docker")))) == [b, a]
        assert found(Without(Word("pear"), Word("red"))) == [c]
        assert found(Word("数据")) == [c, b]
        assert found(Word("库")) == [b]
        assert found(Word("心")) == [c]
        assert found(Phrase(("数据", "据库"))) == [b]
        assert found(And((Word("appl"), Word("数据")))) == [b]
        assert found(Or((Word("red"), Word("中心"), Word("迁移")))) == [c, b, a]
        assert found(Without(Word("数据"), Word("docker"))) == [c]
        assert found(Or((And((Word("docker"), Word("迁移"))), Without(Word("pear"), Word("数据"))))) == [b, a]
        assert found(And(())) == found(Or(())) == found(Phrase(())) == found(Word("")) == found(Word('"*')) == []
        assert reader.frequency(Word("pear")) == 2
        assert reader.frequency(And((Word("appl"), Word("数据")))) == 1


def test_a_count_is_of_the_record_as_it_is(sessions: SessionStore, index: SearchIndex) -> None:
    """Readers of the same record count a word once; after a new message, and in a new file, they count again."""

    def count() -> int:
        with index.reading() as reader:
            return reader.frequency(Word("pear"))

    for name in ("s", "t"):
        sessions.sessions.create_session(name, "cli")
    assert count() == count() == 0
    sessions.messages.append_message("s", "user", "A pear")
    sessions.messages.append_message("t", "user", "Another pear")
    assert count() == 2
    with index.reading() as first, index.reading() as second:
        assert first.frequency(Word("pear")) == 2
        # The second reader does not ask its file again.
        second._ask_file = lambda _: pytest.fail("counted twice")  # type: ignore[assignment, method-assign]
        assert second.frequency(Word("pear")) == 2
    sessions.messages.append_message("t", "user", "A third pear")
    assert count() == 3
    sessions.deletion.delete_session("s")
    index.compact()
    assert count() == 2


def test_no_phrase_matches_across_the_end_of_a_text(sessions: SessionStore, index: SearchIndex) -> None:
    """The parts of a camelCase word can be found, but not as a phrase with the text before them."""
    sessions.sessions.create_session("s", "cli")
    made = sessions.messages.append_message("s", "user", "call getUserName now")
    with index.reading() as reader:
        assert [p.message for p in reader.postings(Phrase(("user", "name")), EVERYONE, 9)] == [made]
        assert reader.postings(Phrase(("now", "get")), EVERYONE, 9) == []


def test_roles_and_places(sessions: SessionStore, index: SearchIndex) -> None:
    """A posting says who spoke, where in the session, how long and when."""
    sessions.sessions.create_session("s", "cli", title="About fish", started_at=10.0)
    calls = [{"id": "1", "function": {"name": "shell", "arguments": json.dumps({"cmd": "fish --version"})}}]
    said = [
        sessions.messages.append_message("s", "user", "fish one", timestamp=1.0),
        sessions.messages.append_message("s", "assistant", "fish two", timestamp=2.0),
        sessions.messages.append_message("s", "assistant", None, tool_calls=calls, timestamp=3.0),
        sessions.messages.append_message("s", "tool", "fish three", tool_name="shell", timestamp=4.0),
    ]
    found = sorted(postings(index, "fish"))
    assert [posting.message for posting in found] == [0, *said]
    assert [posting.role for posting in found] == [TITLE, USER, ASSISTANT, TOOL, TOOL]
    assert [posting.ordinal for posting in found] == [-1, 0, 1, 2, 3]
    assert [posting.time for posting in found] == [10.0, 1.0, 2.0, 3.0, 4.0]
    assert [posting.length for posting in found] == [2, 2, 2, 3, 3]


def test_filters(sessions: SessionStore, index: SearchIndex) -> None:
    """Scope, source, role, time and titles each leave out what they should."""
    sessions.sessions.create_session("mine", "cli", title="Owl notes", started_at=100.0)
    sessions.sessions.create_session("hers", "telegram", user_id="ann", started_at=200.0)
    a = sessions.messages.append_message("mine", "user", "owl", timestamp=100.0)
    b = sessions.messages.append_message("mine", "assistant", "owl", timestamp=101.0)
    c = sessions.messages.append_message("hers", "user", "owl", timestamp=200.0)

    def found(**filters: object) -> set[int]:
        return set(ids(index, "owls", Filters(**({"scope": Scope.everyone()} | filters))))  # type: ignore[arg-type]

    assert found() == {0, a, b, c}
    assert found(scope=Scope.of(None)) == {0, a, b}
    assert found(scope=Scope.of("ann")) == {c}
    assert found(scope=Scope.of("bob")) == set()
    assert found(columns=(("source", frozenset({"telegram"})),)) == {c}
    assert found(columns=(("source", frozenset()),)) == set()
    assert found(excluded_sources=frozenset({"telegram", "cron"})) == {0, a, b}
    assert found(roles=frozenset({"user"}), titles=False) == {a, c}
    assert found(roles=frozenset({"assistant", "tool"}), titles=False) == {b}
    assert found(since=101.0) == {b, c}
    assert found(until=100.0) == {0, a}
    assert found(titles=False) == {a, b, c}


def test_sessions_and_size(sessions: SessionStore, index: SearchIndex) -> None:
    """What a search needs to know besides postings."""
    sessions.sessions.create_session("s", "cli", title="A title", started_at=5.0)
    sessions.messages.append_message("s", "user", "one two three")
    with index.reading() as reader:
        (posting,) = reader.postings(Word("two"), EVERYONE, 9)
        session = reader.sessions([posting.session, 999])[posting.session]
        assert (session.id, session.conversation_id, session.user_id) == ("s", "s", None)
        assert (session.source, session.title, session.started_at) == ("cli", "A title", 5.0)
        assert reader.size() == (1, 1, 5)
        assert reader.note is None


def test_changes_reach_the_index_at_once(sessions: SessionStore, find: Find) -> None:
    """Rewound, restored, redacted, renamed and deleted: the next search knows."""
    sessions.sessions.create_session("s", "cli", title="Heron")
    a, b, c = sessions.messages.append_messages("s", [{"role": "user", "content": f"heron {word}"} for word in "abc"])
    assert find("heron") == [c, b, a, 0]
    sessions.edits.rewind_to_message("s", b)
    assert find("heron") == [a, 0]
    sessions.edits.restore_rewound("s", b)
    assert sorted(find("heron")) == [0, a, b, c]
    sessions.edits.redact_message(b, "nothing")
    assert sorted(find("heron")) == [0, a, c]
    assert find("nothing") == [b]
    sessions.titles.set_session_title("s", "Stork")
    assert sorted(find("heron")) == [a, c]
    assert find("stork") == [0]
    sessions.deletion.delete_session("s")
    assert find("heron") == find("stork") == []


def test_a_session_made_again_under_the_same_name_is_another_one(sessions: SessionStore, find: Find) -> None:
    """Nothing of the deleted one is found, not even as another user's."""
    sessions.sessions.create_session("s", "cli", user_id="ann", started_at=1.0)
    sessions.messages.append_message("s", "user", "secret lynx")
    assert len(find("lynx")) == 1
    sessions.deletion.delete_session("s")
    sessions.sessions.create_session("s", "cli", user_id="bob", started_at=2.0)
    again = sessions.messages.append_message("s", "user", "public lynx")
    assert find("lynx", Filters(Scope.of("bob"))) == [again]
    assert find("lynx", Filters(Scope.of("ann"))) == []


def test_a_session_imported_again_is_found_once(sessions: SessionStore, find: Find) -> None:
    """Deleted and imported between two updates, it has new messages, and the old ones are not found."""
    sessions.sessions.create_session("s", "cli", started_at=1.0)
    sessions.messages.append_message("s", "user", "mole")
    assert len(find("mole")) == 1
    exported = sessions.transfer.export_session("s")
    sessions.deletion.delete_session("s")
    assert exported is not None
    sessions.transfer.import_sessions([exported])
    assert find("mole") == [message["id"] for message in sessions.messages.get_messages("s")]


def test_compressed_messages_stay_and_copies_do_not_count(sessions: SessionStore, find: Find) -> None:
    """After compression everything that was said is found once; the summary is not found."""
    sessions.sessions.create_session("s", "cli")
    (a,) = sessions.messages.append_messages("s", [{"role": "user", "content": "the ibex"}])
    assert find("ibex") == [a]
    sessions.edits.archive_and_compact(
        "s",
        [
            {"role": "user", "content": "summary: an ibex", "is_summary": True},
            {"role": "user", "content": "the ibex", "copy_of": a},
        ],
    )
    assert find("ibex") == [a]
    assert find("ibex", Filters(Scope.everyone(), roles=frozenset({"user"}))) == [a]


def test_unchanged_messages_are_not_indexed_again(sessions: SessionStore, index: SearchIndex) -> None:
    """A change names where to look; only what differs is taken."""
    sessions.sessions.create_session("s", "cli")
    made = sessions.messages.append_messages("s", [{"role": "user", "content": f"kiwi {n}"} for n in range(20)])
    index.catch_up()
    before = {posting.message: posting for posting in postings(index, "kiwi")}
    sessions.edits.redact_message(made[0])
    after = {posting.message: posting for posting in postings(index, "kiwi")}
    assert after == {message: posting for message, posting in before.items() if message != made[0]}
    with sqlite3.connect(index.files[0]) as connection:
        assert connection.execute("SELECT count(*) FROM dead").fetchone() == (1,)


def test_catching_up_says_how_far_it_is(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In batches, with progress, and no further than asked."""
    monkeypatch.setattr(search_index, "BATCH", 10)
    sessions.sessions.create_session("s", "cli")
    sessions.messages.append_messages("s", [{"role": "user", "content": f"word{n}"} for n in range(35)])
    assert index.state() == search_index.IndexProgress(START, Position(0, 35), None)
    steps: list[tuple[int, int]] = []
    state = index.catch_up(limit=20, progress=lambda done, total: steps.append((done, total)))
    assert (state.indexed.count, state.head.count, state.complete) == (20, 35, False)
    assert steps == [(10, 35), (20, 35)]
    assert index.catch_up().complete
    assert index.state() == search_index.IndexProgress(Position(0, 35), Position(0, 35), None)


def test_what_is_not_indexed_yet_is_searched_directly(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part of the answer comes from the index, the rest from the store, and a note says so."""
    monkeypatch.setattr(search_index, "MAX_READ_ALL", 5)
    monkeypatch.setattr(unindexed_scan, "MAX_READ_ALL", 5)
    sessions.sessions.create_session("s", "cli", title="Tapir talk")
    made = sessions.messages.append_messages(
        "s", [{"role": "user", "content": f"The tapirs ran {n} 数据库"} for n in range(30)]
    )
    index.catch_up(limit=10)
    with index.reading() as reader:
        for pattern in (Word("tapir"), Word("run"), Phrase(("tapir", "run")), Word("数据"), Word("库")):
            found = reader.postings(pattern, Filters(Scope.everyone(), titles=False), 100)
            assert [posting.message for posting in found] == made[::-1]
            assert len({posting.session for posting in found}) == 1
        assert set(reader.sessions([found[0].session])) == {found[0].session}
        assert reader.size().messages == 30
        assert reader.note == "33 % of the messages are indexed; the rest was searched directly."


def test_deletions_reach_a_half_built_index_too(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is missing, nothing deleted is found."""
    monkeypatch.setattr(search_index, "MAX_READ_ALL", 5)
    monkeypatch.setattr(unindexed_scan, "MAX_READ_ALL", 5)
    for name in ("gone", "here"):
        sessions.sessions.create_session(name, "cli", title=f"{name} gecko")
        sessions.messages.append_messages(name, [{"role": "user", "content": f"gecko {n}"} for n in range(20)])
    index.catch_up(limit=25)
    sessions.deletion.delete_session("gone")
    with index.reading() as reader:
        found = reader.postings(Word("gecko"), EVERYONE, 100)
        assert {session.id for session in reader.sessions({p.session for p in found}).values()} == {"here"}
        assert len(found) == 21


def test_compacting_removes_the_words_of_deleted_messages(sessions: SessionStore, index: SearchIndex) -> None:
    """The file no longer contains a deleted word."""
    sessions.sessions.create_session("s", "cli")
    sessions.sessions.create_session("t", "cli")
    sessions.messages.append_message("s", "user", "xylophonesecret")
    kept = sessions.messages.append_message("t", "user", "something else")
    index.catch_up()
    sessions.deletion.delete_session("s")
    assert ids(index, "xylophonesecret") == []
    assert b"xylophonesecret" in _bytes(index)
    seen: list[tuple[int, int]] = []
    index.compact(lambda done, total: seen.append((done, total)))
    assert b"xylophonesecret" not in _bytes(index)
    assert len(index.files) == 1
    assert seen[-1] == (kept, kept)
    assert ids(index, "something") == [kept]


def _bytes(index: SearchIndex) -> bytes:
    directory = index.files[0].parent
    return b"".join(path.read_bytes() for path in directory.glob("index.db.*"))


def test_the_file_is_private(sessions: SessionStore, index: SearchIndex) -> None:
    """Other users of the machine cannot read which words were used."""
    sessions.sessions.create_session("s", "cli")
    sessions.messages.append_message("s", "user", "x")
    index.catch_up()
    for path in index.files[0].parent.glob("index.db.*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_long_messages_are_indexed_a_few_at_a_time(
    sessions: SessionStore, index: SearchIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text in memory is limited, and no message is skipped, however long it is."""
    monkeypatch.setattr(feed, "MAX_CHARACTERS", 1_000)
    sessions.sessions.create_session("s", "cli")
    made = [sessions.messages.append_message("s", "user", "needle " * many) for many in (1, 100, 100, 1_000, 1)]
    assert [message.id for message in sessions.feed.messages_after(START, 10).messages] == made[:3]
    assert index.catch_up().complete
    assert ids(index, "needle") == made[::-1]


def test_an_empty_store_has_an_empty_index(tmp_path: Path, index: SearchIndex) -> None:
    """Nothing to find, nothing wrong."""
    with index.reading() as reader:
        assert reader.postings(Word("x"), EVERYONE, 10) == []
        assert reader.size() == (0, 0, 0)
        assert reader.note is None
    assert index.catch_up().complete


def test_the_first_search_of_a_store_waits_for_no_writer(sessions: SessionStore, find: Find) -> None:
    """Everything that it needs to know of the store was written when that was made."""
    sessions.sessions.create_session("s", "cli")
    said = sessions.messages.append_message("s", "user", "an abalone")
    with closing(sqlite3.connect(Path(sessions.engine.location), isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert find("abalone") == [said]


def test_a_call_is_found_by_the_name_of_its_function(sessions: SessionStore, index: SearchIndex) -> None:
    """Also before the tool has answered."""
    sessions.sessions.create_session("s", "cli")
    calls = [{"id": "1", "function": {"name": "terraform_plan", "arguments": "{}"}}]
    made = sessions.messages.append_message("s", "assistant", None, tool_calls=calls)
    assert [posting.message for posting in postings(index, "terraform")] == [made]
