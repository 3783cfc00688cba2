"""The session_search tool: its modes, what stays out of sight, and the size of every answer."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import SessionError
from memoranda.home.session_db import SessionDB
from memoranda.memory.record.scope import Scope
from memoranda.search.guidance import BEST_ONLY
from memoranda.search.request import NAMES
from memoranda.search.settings import RecallSettings
from memoranda.search.tool import PARAMETERS, SessionSearchTool
from memoranda.support.shorten import json_size
from tests.examples import examples
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        yield opened


def test_without_arguments_the_latest_conversations_are_listed(db: SessionDB, call: Call) -> None:
    """By last activity, with what a reader needs to choose."""
    tell(db, "old", ["first words of the old one", "yes"], at=BEGIN, title="Old")
    tell(db, "new", ["first words of the new one"], at=BEGIN + 1000)
    tell(db, "helper", ["go and look"], at=BEGIN + 2000, source="subagent")
    answer = call()
    assert answer["mode"] == "browse"
    assert [row["session_id"] for row in answer["results"]] == ["new", "old"]
    assert answer["results"][1] == {
        "session_id": "old",
        "title": "Old",
        "source": "cli",
        "started": "2025-06-15T15:06:40Z",
        "last_active": "2025-06-15T15:07:40Z",
        "message_count": 2,
        "preview": "first words of the old one",
        "last_question": "first words of the old one",
        "last_answer": "yes",
    }


def test_an_empty_store_says_so(call: Call) -> None:
    """Browsing and searching an empty store is not an error."""
    assert call()["message"] == "There are no past conversations yet."
    assert call(query="anything")["message"] == "Nothing in past conversations matches."
    assert call(query="?!…")["message"] == "That query has no word to look for."


def test_browsing_continues_where_it_ended(db: SessionDB, call: Call) -> None:
    """Every conversation is listed once, by following the cursor."""
    for number in range(8):
        tell(db, f"s{number}", ["hello"], at=BEGIN + number)
    seen: list[str] = []
    cursor: str | None = "0"
    while cursor is not None:
        answer = call(limit=3, cursor=cursor)
        seen += [row["session_id"] for row in answer["results"]]
        cursor = answer.get("cursor")
    assert seen == [f"s{number}" for number in reversed(range(8))]


def test_a_match_comes_with_what_was_said_around_it(db: SessionDB, call: Call) -> None:
    """The window is anchored on the match, the bookends show how the conversation began and ended."""
    words = [f"line number {number}" for number in range(40)]
    words[20] = "the zebra crossed here"
    ids = tell(db, "s", words, title="Animals", model="m/1")
    (result,) = call(query="zebra")["results"]
    assert result["session_id"] == "s"
    assert result["title"] == "Animals"
    assert result["model"] == "m/1"
    assert result["matched_role"] == "user"
    assert result["match_message_id"] == ids[20]
    assert result["when"] == "2025-06-15T15:26:40Z"
    assert result["snippet"] == "the >>>zebra<<< crossed here"
    assert [message["id"] for message in result["messages"]] == ids[15:26]
    assert [message["id"] for message in result["messages"] if message.get("anchor")] == [ids[20]]
    assert [message["id"] for message in result["bookend_start"]] == ids[:3]
    assert [message["id"] for message in result["bookend_end"]] == ids[-3:]
    assert (result["messages_before"], result["messages_after"]) == (15, 14)


@pytest.mark.parametrize(
    ("size", "shape"),
    [
        (80, (3, 11, 3)),
        pytest.param(200, (3, 11, 3), marks=pytest.mark.slow),
        (1_500, (1, 11, 1)),
        pytest.param(20_000, (1, 11, 1), marks=pytest.mark.slow),
    ],
)
def test_every_hit_has_its_surroundings_at_every_size_of_message(
    db: SessionDB, call: Call, size: int, shape: tuple[int, ...]
) -> None:
    """Windows are complete, and so are bookends unless messages are long; then the very first and last one remain."""
    for session in range(3):
        words = [f"line number {number} " + "x" * size for number in range(40)]
        words[20] = "the zebra crossed here" + "x" * size
        tell(db, f"s{session}", words)
    results = call(query="zebra", limit=3)["results"]
    parts = ("bookend_start", "messages", "bookend_end")
    assert (len(results), tuple(min(len(result[part]) for result in results) for part in parts)) == (3, shape)


@pytest.mark.parametrize("size", [300, 600])
def test_messages_are_shown_whole_while_there_is_room(db: SessionDB, call: Call, size: int) -> None:
    """Five on either side of the match and three at each end, however long they are."""
    words = [f"line number {number} " + "x" * size for number in range(40)]
    words[20] = "the zebra crossed here " + "x" * 3 * size
    ids = tell(db, "s", words)
    (result,) = call(query="zebra")["results"]
    shown = [*result["bookend_start"], *result["messages"], *result["bookend_end"]]
    assert [message["id"] for message in shown] == [*ids[:3], *ids[15:26], *ids[-3:]]
    assert not any(message.get("truncated") for message in shown)


def test_long_messages_fill_the_answer(db: SessionDB, call: Call) -> None:
    """At least nine tenths of the size that an answer may have are used."""
    tell(db, "s", [f"the zebra crossed here {number} " + "x " * 5_000 for number in range(40)])
    assert 0.9 * 16_000 < json_size(call(query="zebra")) <= 16_000


def test_the_ends_of_a_short_conversation_are_shown_where_its_middle_has_no_room(db: SessionDB) -> None:
    """The window would reach them, but the messages in between are long."""
    ids = tell(db, "s", ["zebra" if number == 5 else f"line {number} " + "x" * 3_000 for number in range(11)])
    (result,) = SessionSearchTool(lambda: db, RecallSettings(answer_chars=1_900)).call({"query": "zebra"})["results"]
    assert [message["id"] for message in result["bookend_start"]] == ids[:1]
    assert [message["id"] for message in result["bookend_end"]] == ids[-1:]
    assert (result["messages_before"], result["messages_after"]) == (5, 4)


def test_a_hit_without_a_title_is_titled_by_the_question_of_its_turn(db: SessionDB, call: Call) -> None:
    """Not by the first prompt of the session; a reply such as "yes" says nothing, so the words before it count."""
    said = [
        "Good morning, please **format** this file",
        "Done.",
        "Where does the *zebra* sleep at night?",
        "Shall I look?",
    ]
    tell(db, "s", [*said, "yes", "The zebra sleeps in the barn."])
    assert call(query="zebra barn")["results"][0]["title"] == "Where does the zebra sleep at night?"
    db.set_session_title("s", "Animals")
    assert call(query="zebra barn")["results"][0]["title"] == "Animals"


def test_a_hit_before_which_nobody_asked_is_titled_by_its_own_words(db: SessionDB, call: Call) -> None:
    """Shortened to one line."""
    tell(db, "s", [("assistant", "The zebra\nsleeps " + "well " * 50)])
    title = call(query="zebra")["results"][0]["title"]
    assert title.startswith("The zebra sleeps well") and len(title) <= 80


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 5, 10])
@pytest.mark.parametrize("size", [30, 150, 700, 5_000])
def test_nothing_is_cut_to_a_few_words(db: SessionDB, call: Call, size: int, limit: int) -> None:
    """A message is shown whole, or with at least a hundred characters, or omitted and counted."""
    for session in range(limit):
        words = [f"line {number} " + "x" * size for number in range(30)]
        for number in (3, 10, 20, 29):
            words[number] = f"the zebra crossed here {number} " + "y " * (size // 2)
        tell(db, f"s{session}", words)
    results = call(query="zebra", limit=limit)["results"]
    assert len(results) == limit
    for result in results:
        shown = [*result["messages"], *result["bookend_start"], *result["bookend_end"], *result["other_matches"]]
        assert all(len(message["content"]) >= 100 for message in shown if message.get("truncated"))
        assert result["messages_before"] + len(result["messages"]) + result["messages_after"] == 30
        assert len({message["id"] for message in shown}) == len(shown)


def test_the_other_good_matches_of_a_session_are_shown_whole(db: SessionDB, call: Call) -> None:
    """However far they are from the best one; a message that hardly matches is not among them."""
    words = [f"line number {number}" for number in range(60)]
    words[5] = "the zebra crossed the river at dawn " + "w" * 500
    words[30] = "the zebra crossed the river at noon"
    words[50] = "somewhere a river " + "and more of it " * 30
    ids = tell(db, "s", words)
    (result,) = call(query="when did the zebra cross the river?")["results"]
    assert result["match_message_id"] == ids[30]
    assert [(message["id"], message["content"]) for message in result["other_matches"]] == [(ids[5], words[5])]


def test_a_match_beside_the_best_one_is_shown_once(db: SessionDB, call: Call) -> None:
    """It belongs to the window then, and is as whole as elsewhere."""
    words = [f"line number {number}" for number in range(20)]
    words[10], words[12] = "the zebra crossed the river", "the zebra and the river " + "w" * 500
    ids = tell(db, "s", words)
    (result,) = call(query="when did the zebra cross the river?")["results"]
    assert "other_matches" not in result
    assert next(message["content"] for message in result["messages"] if message["id"] == ids[12]) == words[12]


def test_the_match_is_what_the_named_person_said(db: SessionDB, call: Call) -> None:
    """A message to that person may match better; by time, the first match stays the match."""
    words = ["Omar: I saw Nadia paint. The lamp that Nadia painted is a lovely lamp.", "Omar: Yes."]
    words += ["Nadia: I did paint that lamp in green.", "Nadia: It was fun."]
    ids = tell(db, "s", words)
    question = "What lamp did Nadia paint?"
    assert call(query=question)["results"][0]["match_message_id"] == ids[2]
    assert call(query=question, sort="oldest")["results"][0]["match_message_id"] == ids[0]


@pytest.mark.slow
def test_ten_hits_keep_their_first_and_last_message(db: SessionDB, call: Call) -> None:
    """With little room, the neighbours further away are omitted."""
    for session in range(10):
        words = ["zebra" if number == 20 else f"line number {number} " + "x" * 3_000 for number in range(40)]
        tell(db, f"s{session}", words)
    results = call(query="zebra", limit=10)["results"]
    assert len(results) == 10
    assert all(result["bookend_start"] and result["bookend_end"] for result in results)


@pytest.mark.parametrize("size", [10, 400, 20_000])
def test_scrolling_with_the_largest_window_shows_all_of_it(db: SessionDB, call: Call, size: int) -> None:
    """Twenty messages on either side, shortened if necessary."""
    ids = tell(db, "s", [f"line {number} " + "x" * size for number in range(60)])
    answer = call(session_id="s", around_message_id=ids[30], window=20)
    assert [message["id"] for message in answer["messages"]] == ids[10:51]


def test_scrolling_reads_on_from_any_message(db: SessionDB, call: Call) -> None:
    """All roles, and true counts of what lies beyond."""
    ids = tell(db, "s", [f"line {number}" for number in range(30)])
    answer = call(session_id="s", around_message_id=ids[10], window=2)
    assert answer["mode"] == "scroll"
    assert [message["id"] for message in answer["messages"]] == ids[8:13]
    assert (answer["messages_before"], answer["messages_after"]) == (8, 17)
    assert len(call(session_id="s", around_message_id=ids[15], window=99)["messages"]) == 30


def test_scrolling_in_little_room_counts_the_omitted_messages(db: SessionDB) -> None:
    """The messages shown and those counted add up to the whole conversation."""
    ids = tell(db, "s", [f"line {number} " + "word " * 200 for number in range(100)])
    tool = SessionSearchTool(lambda: db, RecallSettings(answer_chars=4_000))
    answer = tool.call({"session_id": "s", "around_message_id": ids[50], "window": 20})
    shown = [message["id"] for message in answer["messages"]]
    assert shown == ids[ids.index(shown[0]) : ids.index(shown[-1]) + 1]
    assert (answer["messages_before"], answer["messages_after"]) == (ids.index(shown[0]), 99 - ids.index(shown[-1]))


def test_a_query_that_asks_what_was_done_gets_the_last_work(db: SessionDB, call: Call) -> None:
    """That of the time it names, whatever its words find, and without conversations that only asked the same."""
    noon = datetime.now().replace(hour=12)
    last_week = (noon - timedelta(days=7)).timestamp()
    tell(db, "export", ["write the invoice export", "It is done."], at=last_week)
    tell(db, "asking", ["what did we do last week?", "I do not know."], at=last_week)
    tell(db, "login", ["fix the login form", "It is fixed."], at=noon.timestamp())
    (work,) = call(query="what did we do last week")["last_work"]
    assert (work["session_id"], work["last_question"], work["last_answer"]) == (
        "export",
        "write the invoice export",
        "It is done.",
    )
    everything = call(query="where were we?")
    assert [work["session_id"] for work in everything["last_work"]] == ["login", "export"]
    # A conversation in which only an agent spoke is no work of the user's, however many there are.
    for number in range(5):
        tell(db, f"notes-{number}", [("assistant", "All done.")], at=noon.timestamp() + 60)
    assert call(query="where were we?")["last_work"] == everything["last_work"]
    assert not any("last_work" in call(query=query) for query in ("login form", "fix the login form", "yesterday"))
    for more in ({"source": "cli"}, {"sort": "newest"}, {"cursor": "1"}):
        assert "last_work" not in call(query="where were we?", **more)
    assert "matches" in call(query="what did we do in March 2019?")["message"]


def test_the_last_work_is_that_of_the_latest_such_time(db: SessionDB, call: Call) -> None:
    """A month is that of the last year in which something was done, a weekday the last one."""
    tell(db, "older", ["write the parser", "Done."], at=BEGIN - 365 * 86_400)
    tell(db, "newer", ["write the lexer", "Done."], at=BEGIN)
    (work,) = call(query="what did we do in June?")["last_work"]
    assert work["session_id"] == "newer"
    day = datetime.now().replace(hour=12) - timedelta(days=3)
    tell(db, "review", ["review the cart", "Done."], at=day.timestamp())
    (work,) = call(query=f"what did we do on {day:%A}?")["last_work"]
    assert work["session_id"] == "review"


def test_the_last_work_leaves_half_of_the_room_to_what_is_found(db: SessionDB) -> None:
    """However long the questions and answers are."""
    for number in range(4):
        tell(
            db,
            f"long-{number}",
            [f"zebra {number} " + "where were we? " * 40, "It is done. " * 90],
            title=f"{number} " + "T" * 90,
        )
    tool = SessionSearchTool(lambda: db, RecallSettings(answer_chars=4000))
    answer = tool.call({"query": "where were we?"})
    assert 0 < len(answer["last_work"]) < 3
    assert answer["results"]
    assert json_size(answer["last_work"]) <= 2000


def test_the_pages_of_a_search_are_its_results_in_order(db: SessionDB, call: Call) -> None:
    """Following the cursor shows every result once, in order."""
    for number in range(12):
        tell(db, f"s{number}", ["alpha beta", "yes"] if number % 3 else ["alpha", "beta"], at=BEGIN + number)
    for sort in (None, "newest", "oldest"):
        whole = [result["session_id"] for result in call(query="alpha beta", limit=10, sort=sort)["results"]]
        seen: list[str] = []
        cursor: str | None = "0"
        while cursor is not None and len(seen) < 10:
            answer = call(query="alpha beta", limit=1, sort=sort, cursor=cursor)
            seen += [result["session_id"] for result in answer["results"]]
            cursor = answer.get("cursor")
        assert seen[: len(whole)] == whole
        assert len(set(seen)) == len(seen)


@pytest.mark.slow
def test_the_last_page_says_that_worse_matches_exist(db: SessionDB, call: Call) -> None:
    """Only the last page says so; if everything was listed, there is no note."""
    for number in range(260):
        tell(db, f"s{number}", ["the heron sighting"], at=BEGIN + number)
    tell(db, "other", ["one okapi"])
    assert "note" not in call(query="what about the heron sighting?", limit=10)
    last = call(query="what about the heron sighting?", limit=10, cursor="230")
    assert last["note"] == BEST_ONLY
    assert "cursor" not in last and last["sessions_matched"] == 240
    assert "note" not in call(query="what about the okapi?")


def test_what_makes_no_sense_is_refused_by_the_store_too(db: SessionDB) -> None:
    """Rather than finding nothing, or something else."""
    odd: list[dict[str, Any]] = [{"sort": "bogus"}, {"limit": None}, {"offset": "1"}, {"since": "30d"}, {"query": None}]
    for options in odd:
        with pytest.raises(SessionError):
            db.search_messages(**{"query": "zebra"} | options)


def test_what_a_group_excludes_stays_excluded_when_the_query_is_relaxed(db: SessionDB, call: Call) -> None:
    """A word that was not wanted is not brought back."""
    tell(db, "both", ["alpha beta"])
    tell(db, "one", ["alpha alone"])
    answer = call(query="(alpha NOT beta) AND gamma")
    assert [result["session_id"] for result in answer["results"]] == ["one"]


def test_the_current_conversation_is_not_found_by_its_title(db: SessionDB) -> None:
    """The model is in it."""
    tell(db, "now", ["hello"], title="Zebra plans")
    assert SessionSearchTool(lambda: db, current_session_id="now").call({"query": "zebra"})["results"] == []


def test_reading_goes_through_a_conversation_to_its_end(db: SessionDB, call: Call) -> None:
    """Every message is shown once, by following the cursor."""
    ids = tell(db, "s", ["word " * 400 for _ in range(100)])
    seen: list[int] = []
    cursor: str | None = "0"
    while cursor is not None:
        answer = call(session_id="s", cursor=cursor)
        assert len(json.dumps(answer, ensure_ascii=False)) <= 16_000
        seen += [message["id"] for message in answer["messages"]]
        cursor = answer.get("cursor")
    assert seen == ids


def test_a_branch_says_where_it_has_its_beginning(db: SessionDB, call: Call) -> None:
    """So that its middle is not taken for the start; an independent conversation has no such note."""
    tell(db, "whole", ["the zebra", "yes"])
    db.branch_session("whole", "branch")
    db.append_message("branch", "user", "only here")
    answer = call(session_id="branch")
    assert answer["parent_session_id"] == "whole"
    assert "parent_session_id" in answer["note"]
    assert "note" not in call(session_id="whole")


def test_a_long_message_is_read_to_its_end(db: SessionDB, call: Call) -> None:
    """Piece by piece, without a character lost."""
    text = "".join(f'{number:07d}\n"' for number in range(9_000))
    ids = tell(db, "s", ["before", text, "after"])
    pieces: list[str] = []
    cursor: str | None = "0"
    while cursor is not None:
        answer = call(session_id="s", around_message_id=ids[1], window=1, cursor=cursor)
        assert len(json.dumps(answer, ensure_ascii=False)) <= 16_000
        pieces.append(next(message["content"] for message in answer["messages"] if message.get("anchor")))
        cursor = answer.get("cursor")
    assert "".join(pieces) == text


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3, 10])
def test_no_answer_is_larger_than_allowed(tmp_path: Path, limit: int) -> None:
    """However long the messages are, in whatever characters."""
    with SessionDB(tmp_path / "state.db") as db:
        for number in range(12):
            tell(db, f"s{number}", [f"zebra {char * 5_000}" for char in 'a"\n漢\x01😀'], title=f"Zebra {number}")
        for size in (4_000, 8_000, 16_000):
            tool = SessionSearchTool(lambda: db, RecallSettings(answer_chars=size))
            for arguments in ({"query": "zebra", "limit": limit, "why": True}, {"session_id": "s1"}, {"limit": limit}):
                answer = tool.call(arguments)
                assert answer["success"]
                assert len(json.dumps(answer, ensure_ascii=False)) <= size


def test_messages_taken_back_are_in_no_answer(db: SessionDB, call: Call) -> None:
    """Not found, not in windows, not in bookends, not read."""
    ids = tell(db, "s", ["the zebra stays", "yes", "the giraffe goes", "no"])
    db.rewind_to_message("s", ids[2])
    assert call(query="giraffe")["results"] == []
    assert "giraffe" not in json.dumps(call(query="zebra"))
    assert "giraffe" not in json.dumps(call(session_id="s"))
    refused = SessionSearchTool(lambda: db).call({"session_id": "s", "around_message_id": ids[2]})
    assert refused["reason"] == "not_found"


def test_the_current_conversation_is_omitted_as_far_as_the_model_still_sees_it(db: SessionDB) -> None:
    """What was compressed away is found and can be scrolled; what is in context is not repeated."""
    ids = tell(db, "now", ["the zebra was early", "I see", "the giraffe is late", "so it is"])
    tool = SessionSearchTool(lambda: db, current_session_id="now")
    assert tool.call({"query": "zebra"})["results"] == []
    assert tool.call({})["results"] == []
    db.archive_and_compact(
        "now",
        [
            {"role": "user", "content": "summary: a zebra", "is_summary": 1},
            {"role": "user", "content": "the giraffe is late", "copy_of": ids[2]},
        ],
    )
    (result,) = tool.call({"query": "zebra"})["results"]
    assert result["match_message_id"] == ids[0]
    assert tool.call({"query": "giraffe"})["results"] == []
    assert tool.call({"session_id": "now", "around_message_id": ids[0]})["success"]
    assert tool.call({"session_id": "now", "around_message_id": ids[2]})["reason"] == "in_context"


def test_a_compressed_conversation_is_one_result(db: SessionDB, call: Call) -> None:
    """Found in whichever session it was said, scrolled across the border."""
    first = tell(db, "a", ["the zebra came", "yes"], title="Zoo")
    db.end_session("a", "compression")
    second = tell(db, "b", ["the zebra left", "no"], at=BEGIN + 5000, parent_session_id="a")
    answer = call(query="zebra")
    assert len(answer["results"]) == 1
    scrolled = call(session_id="b", around_message_id=second[0], window=5)
    assert [message["id"] for message in scrolled["messages"]] == first + second
    assert len(call()["results"]) == 1


def test_hidden_sources_show_only_when_they_are_named(db: SessionDB, call: Call) -> None:
    """Delegated work is noise unless it is asked for."""
    tell(db, "person", ["the zebra is mine"])
    tell(db, "helper", ["the zebra is theirs"], source="subagent")
    assert [result["session_id"] for result in call(query="zebra")["results"]] == ["person"]
    assert [result["session_id"] for result in call(query="zebra", source="subagent")["results"]] == ["helper"]


def test_filters_limit_what_is_found(db: SessionDB, call: Call) -> None:
    """Time, source and role."""
    tell(db, "june", [("user", "zebra one")], at=BEGIN)
    tell(db, "july", [("assistant", "zebra two")], at=BEGIN + 30 * 86_400, source="telegram")

    def found(**some: str) -> list[str]:
        return [result["session_id"] for result in call(query="zebra", **some)["results"]]

    assert found(since="2025-07-01") == ["july"]
    assert found(until="2025-07-01") == ["june"]
    assert found(source="telegram") == ["july"]
    assert found(role_filter="user") == ["june"]
    assert found(sort="newest") == ["july", "june"]
    assert found(sort="oldest") == ["june", "july"]


def test_one_user_never_sees_another(db: SessionDB) -> None:
    """Not by searching, browsing, scrolling or reading."""
    ids = tell(db, "anas", ["Ana's zebra secret"], user_id="ana", title="Ana's")
    bob = SessionSearchTool(lambda: db.scoped(Scope.of("bob")))
    owner = SessionSearchTool(lambda: db.scoped(Scope.of(None)))
    for tool in (bob, owner):
        assert tool.call({"query": "zebra"})["results"] == []
        assert tool.call({})["results"] == []
        assert "last_work" not in tool.call({"query": "where were we?"})
        assert tool.call({"session_id": "anas"})["reason"] == "not_found"
        assert tool.call({"session_id": "anas", "around_message_id": ids[0]})["reason"] == "not_found"
    own = SessionSearchTool(lambda: db.scoped(Scope.of("ana")))
    assert own.call({"query": "zebra"})["count"] == len(own.call({"query": "where were we?"})["last_work"]) == 1


def test_why_names_the_signals_and_the_filters(db: SessionDB, call: Call) -> None:
    """Only when asked."""
    tell(db, "s", ["the zebra"])
    answer = call(query="zebra", since="2020-01-01", why=True)
    assert answer["results"][0]["why"]["score"] > 0
    assert answer["why"]["filters"]["since"].startswith("20")
    assert "why" not in call(query="zebra")["results"][0]


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_why_says_that_the_order_is_by_time(db: SessionDB, call: Call, sort: str) -> None:
    """With the signals that the result has, though they do not decide, in every stage of a search."""
    for number in range(4):
        tell(db, f"s{number}", ["the zebra", "a heron"], at=BEGIN + number)
    assert call(query="zebra", why=True)["why"]["order"] == "by relevance, scheduled jobs last"
    for query in ("zebra", "zebra heron", "zebra okapi", "where did I see the zebra?"):
        answer = call(query=query, sort=sort, why=True)
        assert answer["why"]["order"] == f"by time, {sort} first"
        assert answer["why"]["filters"]["hidden_sources"] == ["subagent", "tool"]
        for result in answer["results"]:
            assert result["why"]["order"] == f"by time, {sort} first"
            assert result["why"]["score"] > 0
            assert {"message", "conversation"} <= result["why"].keys()


def test_a_cursor_after_the_last_result_gets_an_ordinary_answer(db: SessionDB, call: Call) -> None:
    """It has no results and says so; the same is true after the last message of a conversation."""
    ids = tell(db, "s", ["the zebra", "yes"])
    answer = call(query="zebra", cursor="100")
    assert (answer["results"], answer["count"]) == ([], 0)
    assert answer["message"] == "There are no further results: the list of matching conversations ends at 1."
    answer = call(session_id="s", cursor=str(ids[-1]))
    assert (answer["messages"], answer["message"]) == ([], "There are no further messages.")


def test_a_title_leads_to_its_conversation(db: SessionDB, call: Call) -> None:
    """Even when no message has its words."""
    ids = tell(db, "s", ["hello", "yes"], title="Quarterly zebra plan")
    (result,) = call(query="zebra plan")["results"]
    assert result["matched_role"] == "session_title"
    assert result["match_message_id"] == ids[0]


@pytest.mark.parametrize(
    "arguments",
    [
        {"around_message_id": 5},
        {"session_id": "s", "around_message_id": "five"},
        {"query": 7},
        {"query": "x", "sort": "sideways"},
        {"query": "x", "since": "next year or so"},
        {"query": "x", "limit": "many"},
        {"query": "x", "role_filter": 5},
        {"query": "x", "limit": 2.5},
        {"querry": "x", "limit": 2},
        {"query": "x", "sort": 10**5_000},
        ["query"],
        None,
        7,
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_a_reason(db: SessionDB, arguments: Any) -> None:
    """A JSON answer that says what is wrong."""
    answer = SessionSearchTool(lambda: db).call(arguments)
    assert answer["success"] is False
    assert answer["reason"] == "invalid"
    assert answer["error"]


def test_every_parameter_is_known_by_its_name() -> None:
    """What the schema offers is what a request reads."""
    assert tuple(PARAMETERS["properties"]) == NAMES


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200))
@given(
    arguments=st.dictionaries(
        st.sampled_from(sorted(PARAMETERS["properties"])),
        st.one_of(st.text(), st.integers(), st.none(), st.booleans(), st.floats(), st.lists(st.text(), max_size=3)),
    )
)
def test_whatever_a_model_sends_the_answer_is_a_json_object(db: SessionDB, arguments: dict[str, Any]) -> None:
    """Never an exception, and nothing internal."""
    answer = SessionSearchTool(lambda: db).call(arguments)
    assert json.loads(json.dumps(answer, ensure_ascii=False)) is not None
    assert answer["success"] or answer["reason"] != "internal", answer


def test_a_store_that_cannot_be_opened_is_an_answer_too() -> None:
    """The tool says so instead of raising."""

    def fail() -> SessionDB:
        from memoranda.errors import StorageError

        raise StorageError("the disk is gone")

    assert SessionSearchTool(fail).call({}) == {"success": False, "reason": "unavailable", "error": "the disk is gone"}


def test_relative_dates_refer_to_the_clock(db: SessionDB) -> None:
    """With the time of a question, "two weeks ago" means two weeks before it, whenever the search runs."""
    day = 86_400.0
    for number in range(6):
        tell(db, f"s{number}", ["I repaired the fence of the garden.", "Well done."], at=BEGIN + 14 * day * number)
    tool = SessionSearchTool(lambda: db, clock=lambda: BEGIN + 14 * day * 3)
    found = tool.call({"query": "What did I repair in the garden two weeks ago?"})
    assert found["results"][0]["session_id"] == "s2"
