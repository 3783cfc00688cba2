"""Summaries are an option that can only add."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.home.session_db import SessionDB
from memoranda.memory.record.conversations import Conversations
from memoranda.search.query import parse
from memoranda.search.settings import RecallSettings
from memoranda.search.summaries import cut_around_matches
from memoranda.search.tool import SessionSearchTool
from tests.search.past import tell
from tests.timing import GIVE_UP, HANG

pytestmark = pytest.mark.slow


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as opened:
        for number in range(5):
            tell(opened, f"s{number}", [f"zebra number {number}", "I see"])
        yield opened


def _search(db: SessionDB, summarize: Any, deadline: float = 5.0) -> dict[str, Any]:
    tool = SessionSearchTool(lambda: db, RecallSettings(summary_deadline=deadline), summarize=summarize)
    return tool.call({"query": "zebra", "limit": 5})


def test_each_result_gets_a_summary_about_the_question(db: SessionDB) -> None:
    """The model reads the instructions, the question and the transcript."""
    asked: list[tuple[str, str]] = []

    def summarize(instructions: str, text: str) -> str:
        asked.append((instructions, text))
        return "It was about a zebra."

    answer = _search(db, summarize)
    assert [result["summary"] for result in answer["results"]] == ["It was about a zebra."] * 5
    assert all("messages" not in result for result in answer["results"])
    assert all("Question: zebra" in text and "user> zebra number" in text for _, text in asked)


def test_summaries_keep_to_the_size_of_an_answer(db: SessionDB) -> None:
    """However much a model writes, in whatever characters."""
    tool = SessionSearchTool(
        lambda: db, RecallSettings(answer_chars=4_000), summarize=lambda instructions, text: '"\n' * 5_000
    )
    answer = tool.call({"query": "zebra", "limit": 5})
    assert all(result["summary"] for result in answer["results"])
    assert len(json.dumps(answer, ensure_ascii=False)) <= 4_000


def test_a_model_that_fails_leaves_the_messages(db: SessionDB) -> None:
    """And the answer says how many are missing."""

    def summarize(instructions: str, text: str) -> str:
        if "number 2" in text:
            raise ConnectionError("gone")
        return "fine"

    answer = _search(db, summarize)
    assert sum("summary" in result for result in answer["results"]) == 4
    assert sum("messages" in result for result in answer["results"]) == 1
    assert answer["note"].startswith("1 of 5 summaries could not be made (gone)")


def test_each_result_has_a_summary_or_messages_at_any_size(db: SessionDB) -> None:
    """Also where an answer has room for one result only."""
    for size in range(900, 2_600, 100):
        settings = RecallSettings(answer_chars=size)
        tool = SessionSearchTool(lambda: db, settings, summarize=lambda instructions, text: "A zebra. " * 300)
        answer = tool.call({"query": "zebra", "limit": 5})
        assert all(("summary" in result) != ("messages" in result) for result in answer["results"])
        assert all(result.get("summary", "text") for result in answer["results"])
        assert len(json.dumps(answer, ensure_ascii=False)) <= size


def test_one_deadline_covers_all_summaries(db: SessionDB) -> None:
    """A model that hangs delays the answer only until the deadline."""
    release = threading.Event()

    def summarize(instructions: str, text: str) -> str:
        release.wait(HANG)
        return "too late"

    begin = time.monotonic()
    answer = _search(db, summarize, deadline=0.3)
    release.set()
    assert time.monotonic() - begin < GIVE_UP
    assert all("messages" in result for result in answer["results"])
    assert "(not written within 0.3 seconds)" in answer["note"]


def test_no_call_begins_after_the_deadline(db: SessionDB) -> None:
    """Waiting summaries are never requested, and no thread remains when the calls return."""
    release, begun = threading.Event(), []

    def summarize(instructions: str, text: str) -> str:
        begun.append(text)
        release.wait(HANG)
        return "too late"

    answer = _search(db, summarize, deadline=0.3)
    assert answer["note"].startswith("5 of 5")
    assert len(begun) == 3
    release.set()
    for thread in _workers():
        thread.join(GIVE_UP)
    assert (len(begun), _workers()) == (3, [])


def test_only_the_one_who_asks_reads_the_store(db: SessionDB, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be closed when a late model returns."""
    readers: set[int] = set()
    behind = Conversations.messages_behind

    def noting(self: Conversations, *arguments: Any, **options: Any) -> Any:
        readers.add(threading.get_ident())
        return behind(self, *arguments, **options)

    monkeypatch.setattr(Conversations, "messages_behind", noting)
    assert all("summary" in result for result in _search(db, lambda instructions, text: "fine")["results"])
    assert readers == {threading.get_ident()}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_model_that_ends_its_thread_is_not_waited_for(db: SessionDB) -> None:
    """Whatever it raises, the answer comes at once."""

    def summarize(instructions: str, text: str) -> str:
        raise KeyboardInterrupt

    begin = time.monotonic()
    assert _search(db, summarize, deadline=HANG)["note"].startswith("5 of 5")
    assert time.monotonic() - begin < GIVE_UP
    for thread in _workers():
        thread.join(GIVE_UP)


def test_a_word_about_missing_summaries_keeps_to_the_size_too(tmp_path: Path) -> None:
    """Also where the messages fill the answer."""
    with SessionDB(tmp_path / "full.db") as db:
        for number in range(10):
            tell(db, f"s{number}", [f"zebra {number} " + "word " * 500 for _ in range(4)])
        for size in range(4_000, 4_040):
            tool = SessionSearchTool(
                lambda: db, RecallSettings(answer_chars=size), summarize=lambda instructions, text: ""
            )
            answer = tool.call({"query": "zebra", "limit": 10})
            assert "could not be made" in answer["note"]
            assert len(json.dumps(answer, ensure_ascii=False)) <= size


def _workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memoranda-summary"]


def test_no_more_than_a_few_run_at_once(db: SessionDB) -> None:
    """Three by default."""
    running, most, lock = 0, 0, threading.Lock()

    def summarize(instructions: str, text: str) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        return "fine"

    _search(db, summarize)
    assert 1 <= most <= 3


def test_a_long_transcript_is_cut_where_most_matches_are() -> None:
    """A quarter of the cut lies before the first of them."""
    text = "zebra " + "filler " * 1_000 + "zebra zebra zebra " + "filler " * 1_000
    cut = cut_around_matches(text, parse("zebra"), 1_000)
    assert len(cut) == 1_000
    assert cut.count("zebra") == 3
    assert 200 <= cut.index("zebra") <= 300
