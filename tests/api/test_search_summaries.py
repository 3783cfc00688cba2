"""Summaries of search results, switched on by a setting or an option: who writes them, and what happens without."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.api.memory import open_memory
from memoranda.home import config
from memoranda.integrations.tool_host import ToolHost, open_for_hosts
from memoranda.models.model import Reply, ToolCall
from memoranda.search import guidance
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Refuse
from tests.cli.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

SUMMARY = "They chose the blue zebra on Monday."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two conversations about a zebra, and no key of a model."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with open_memory(tmp_path) as memory:
        for number in range(2):
            memory.session(session_id=f"s{number}").turn(f"Which zebra is number {number}?").done("The blue one.")
    return tmp_path


@pytest.fixture
def service(home: Path) -> Iterator[ScriptedServer]:
    """A configured service that summarizes everything alike."""
    with ScriptedServer(lambda received: Reply(SUMMARY)) as server:
        _configure(home, server)
        yield server


def _configure(home: Path, server: ScriptedServer) -> None:
    _set(home, "model.provider", "openai")
    _set(home, "model.name", "answering-model")
    _set(home, "model.base_url", server.openai_url)


def _set(home: Path, key: str, value: str) -> None:
    config.set_value(Home.at(home), key, value)


def _search_in_python(home: Path) -> Any:
    with open_memory(home) as memory:
        return memory.search("zebra")


def _search_as_host(home: Path) -> Any:
    with open_for_hosts(str(home)) as memory:
        return ToolHost(memory, source="test").call("session_search", {"query": "zebra"})


def _search_in_the_terminal(home: Path) -> Any:
    return Terminal(home, "search").json("zebra")


everywhere = pytest.mark.parametrize("search", [_search_in_python, _search_as_host, _search_in_the_terminal])
Search = Callable[[Path], Any]


def _summaries(answer: Any) -> list[str | None]:
    return [result.get("summary") for result in answer["results"]]


@everywhere
def test_no_model_is_called_by_default(home: Path, service: ScriptedServer, search: Search) -> None:
    """A configured model alone does not make a search cost anything."""
    assert _summaries(search(home)) == [None, None]
    assert service.received == []


@everywhere
def test_one_setting_switches_summaries_on(home: Path, service: ScriptedServer, search: Search) -> None:
    """In Python, for hosts and in the terminal; the summary model reads the instructions and the transcript."""
    _set(home, "search.summarize", "true")
    _set(home, "search.summary_model", "small-model")
    answer = search(home)
    assert _summaries(answer) == [SUMMARY, SUMMARY]
    assert "note" not in answer and "messages" not in answer["results"][0]
    for received in service.received:
        system, messages, _ = received.conversation
        assert received.json["model"] == "small-model"
        assert system == guidance.SUMMARY
        assert "Question: zebra" in messages[0]["content"] and "The blue one." in messages[0]["content"]


def test_an_option_of_the_command_decides_for_one_search(home: Path, service: ScriptedServer) -> None:
    """--summary without the setting, --no-summary against it; without a summary model the configured model writes."""
    shown = Terminal(home, "search").ok("zebra", "--summary")
    assert shown.count(SUMMARY) == 2
    assert {received.json["model"] for received in service.received} == {"answering-model"}
    _set(home, "search.summarize", "true")
    assert SUMMARY not in Terminal(home, "search").ok("zebra", "--no-summary")
    assert len(service.received) == 2


def test_the_agent_gets_summaries_by_its_own_model(home: Path) -> None:
    """The requests of the conversation itself stay as they are without summaries."""
    _set(home, "search.summarize", "true")

    def answer(system: str, messages: Any, tools: Any) -> Reply:
        if system == guidance.SUMMARY:
            return Reply(SUMMARY)
        if messages[-1]["role"] == "tool":
            return Reply("Blue.")
        return Reply("", (ToolCall("c1", "session_search", '{"query": "zebra number"}'),))

    model = ScriptedModel(answer)
    with open_memory(home) as memory:
        assert memory.agent(model).turn("Which one was it?") == "Blue."
    first, *summaries, last = model.requests
    assert [request.system for request in summaries] == [guidance.SUMMARY] * 2
    assert last.system == first.system and last.messages[: len(first.messages)] == first.messages
    assert [t.name for t in last.tools] == [t.name for t in first.tools]
    assert SUMMARY in last.messages[-1]["content"]


def test_the_ledger_records_summaries_as_background_work(home: Path, service: ScriptedServer) -> None:
    """Under their own purpose, in the budget of the day."""
    Terminal(home, "search").ok("zebra", "--summary")
    usage = Terminal(home, "usage").json("--by", "purpose")
    assert {row["name"]: row["calls"] for row in usage["rows"]} == {"search": 2}
    assert usage["background_today"]["left_tokens"] < 2_000_000


def _has_messages(answer: Any, reason: str) -> bool:
    return (
        all(result["messages"] and "summary" not in result for result in answer["results"])
        and answer["count"] == 2
        and answer["note"].startswith(f"2 of 2 summaries could not be made ({reason}")
    )


def test_without_a_model_the_messages_are_shown(home: Path) -> None:
    """The note says what to set up."""
    assert _has_messages(Terminal(home, "search").json("zebra", "--summary"), "No model is set up yet. Store a key")


def test_a_spent_budget_leaves_the_messages(home: Path, service: ScriptedServer) -> None:
    """One call may exceed it; after that none is made."""
    _set(home, "budget.daily_tokens", "20")
    assert sorted(map(str, _summaries(Terminal(home, "search").json("zebra", "--summary")))) == ["None", SUMMARY]
    answer = Terminal(home, "search").json("zebra", "--summary")
    assert _has_messages(answer, "Today's budget for background work is spent")
    assert len(service.received) == 1


def test_a_service_that_refuses_leaves_the_messages(home: Path) -> None:
    """The note has the reason of the service."""
    with ScriptedServer(lambda received: Refuse(401, "Incorrect API key provided", "invalid_api_key")) as server:
        _configure(home, server)
        answer = Terminal(home, "search").json("zebra", "--summary")
    assert _has_messages(answer, "")
    assert "key" in answer["note"]


def test_a_model_that_declines_leaves_the_messages(home: Path) -> None:
    """Its words of refusal are no summary."""
    _set(home, "search.summarize", "true")
    model = ScriptedModel(lambda system, messages, tools: Reply("I cannot do that.", finish_reason="refusal"))
    with open_memory(home) as memory:
        session = memory.session()
        session.use_model(model)
        search = next(tool for tool in session.tools if tool.name == "session_search")
        assert _has_messages(search.call({"query": "zebra"}), "The model refused")


def test_a_model_with_a_small_window_reads_the_part_with_the_matches(home: Path) -> None:
    """The request fits its window, with the question and the match in it."""
    _set(home, "search.summarize", "true")
    model = ScriptedModel([Reply(SUMMARY)], window=2_000)
    with open_memory(home) as memory:
        filler = "Nothing of interest here. " * 1_000
        memory.session(session_id="long").turn(f"{filler} An okapi! {filler}").done("I see.")
        session = memory.session()
        session.use_model(model)
        search = next(tool for tool in session.tools if tool.name == "session_search")
        assert _summaries(search.call({"query": "okapi"})) == [SUMMARY]
    sent = model.requests[0].messages[0]["content"]
    assert sent.startswith("Question: okapi\n\nTranscript:\n") and "An okapi!" in sent
    assert len(sent) < 8_000


def test_hosts_get_an_answer_before_they_stop_waiting(home: Path) -> None:
    """The time limit for summaries is shorter there than the 25 seconds that some hosts wait for a tool."""
    with open_for_hosts(str(home)) as memory:
        assert memory.config.recall.summary_deadline <= 20


def test_every_page_of_a_long_list_says_what_is_missing(home: Path) -> None:
    """More conversations than one answer of the tool lists are searched in pages, each with its own note."""
    with open_memory(home) as memory:
        for number in range(10):
            memory.session(session_id=f"t{number}").turn(f"A zebra in garden {number * 37}").done("I see.")
    answer = Terminal(home, "search").json("zebra", "--limit", "12", "--summary")
    missing = [int(count) for count in re.findall(r"(\d+) of \d+ summaries could not be made", answer["note"])]
    assert len(missing) > 1 and sum(missing) == answer["count"]
