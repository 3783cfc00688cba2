"""What the pages of external memory, recall, spending and health show."""

import json
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.external.holographic.fact_store import FactStore, Provenance
from memoranda.external.holographic.shared_facts import cache_path
from memoranda.external.outbox.outbox import Outbox
from memoranda.integrations.hooks.log import HookLog
from memoranda.models.model import Usage
from memoranda.safety.redaction import Redactor
from memoranda.search.recall_log import hook_calls_path
from memoranda.service.viewer.pages import health
from memoranda.service.viewer.pages.facts import PAGE_SIZE, read_facts
from memoranda.service.viewer.pages.outbox import read_outbox
from memoranda.service.viewer.pages.recall_log import find_call, read_log
from memoranda.service.viewer.pages.usage import chart_data, read_spending
from memoranda.support.home import Home
from tests.models.spending.models import QUESTION, Fixed

pytestmark = pytest.mark.slow


def _add_facts(home: Path, user: str, *texts: str) -> None:
    store = FactStore(home, user)
    for text in texts:
        store.add(text, provenance=Provenance("s1", "", "agent"))
    store.close()


def test_facts_are_those_of_one_user_with_contradictions(tmp_path: Path) -> None:
    """Facts of another user are in another file; two that cannot both be right are shown together."""
    _add_facts(tmp_path, "", "Ana lives in Berlin.", "Ana lives in Lisbon.", "The deploy script is in tools.")
    _add_facts(tmp_path, "bo", "Bo likes tea.")
    page = read_facts(tmp_path, None)
    assert page["facts"][0].content == "The deploy script is in tools."
    assert page["total"] == 3
    assert page["contradictions"] is None
    (pair,) = read_facts(tmp_path, None, compare=True)["contradictions"]
    assert {pair["newer"].content, pair["older"].content} == {"Ana lives in Berlin.", "Ana lives in Lisbon."}
    assert [fact.content for fact in read_facts(tmp_path, "bo")["facts"]] == ["Bo likes tea."]
    assert read_facts(tmp_path, "cy")["facts"] == ()
    assert not cache_path(tmp_path, "cy").exists()


def test_facts_are_filtered_and_paged(tmp_path: Path) -> None:
    """All words must occur, in any case; the next page begins where this one ends."""
    _add_facts(tmp_path, "", *(f"Server {number} is in rack {number % 7}." for number in range(PAGE_SIZE + 5)))
    page = read_facts(tmp_path, None, words="SERVER rack")
    assert (len(page["facts"]), page["total"], page["older"]) == (PAGE_SIZE, PAGE_SIZE + 5, PAGE_SIZE)
    assert len(read_facts(tmp_path, None, words="server", skip=page["older"])["facts"]) == 5
    assert read_facts(tmp_path, None, category="tool")["total"] == 0


def test_the_outbox_lists_what_waits_and_why(tmp_path: Path) -> None:
    """A failed delivery is shown with its error and texts; retrying lets parked ones be delivered again."""
    outbox = Outbox(tmp_path)
    outbox.put("zep", "turn", "s1", {"user_content": "Hello", "assistant_content": "Hi"}, {})
    outbox.put("zep", "memory_write", "", {"content": "x"}, {}, scope="bo")
    job = outbox.claim("zep")
    assert job is not None
    outbox.failed(job, "401 Unauthorized", permanent=True)
    page = read_outbox(outbox, None, ["zep"])
    (row,) = page["jobs"]
    assert (row.state, row.last_error, row.kind) == ("parked", "401 Unauthorized", "turn")
    assert row.texts == (("user_content", "Hello"), ("assistant_content", "Hi"))
    assert (page["providers"][0]["backlog"].parked, page["providers"][0]["configured"]) == (1, True)
    assert outbox.retry_failed("zep", "bo") == 0
    assert outbox.retry_failed("zep", "") == 1
    assert read_outbox(outbox, None, [])["jobs"][0].state == "waiting"
    assert [job.kind for job in read_outbox(outbox, "bo", [])["jobs"]] == ["memory_write"]
    outbox.close()
    with closing(Outbox(tmp_path / "empty")) as empty:
        assert read_outbox(empty, None, [])["jobs"] == []


def _log_call(home: Path, prompt: str, outcome: str, *, user: str | None = None, at: float = 0.0) -> str:
    log = HookLog(home, at or time.time())
    log.begin("claude_code", "UserPromptSubmit", "s1", prompt, user)
    floor = {"question": True, "words": 2, "points": 0}
    candidate = {"session_id": "past", "message_id": 7, "share": 0.5, "words": 1, "points": -0.5, "clears": False}
    given = {"given": [{"session_id": "past", "message_id": 7}]} if outcome == "given" else {}
    log.end(outcome, "why", {"floor": floor, "candidates": [candidate], "words": ["deadlock"], **given})
    return log.call_id


def test_the_recall_log_says_what_was_given_and_why_not(tmp_path: Path) -> None:
    """Calls with their candidates and what these lacked; each user sees only the user's own."""
    _log_call(tmp_path, "How did we fix the deadlock?", "given", at=1_000.0)
    nothing = _log_call(tmp_path, "Write a poem", "nothing", at=2_000.0)
    _log_call(tmp_path, "Plans of Bo", "given", user="bo", at=3_000.0)
    page = read_log(tmp_path, None, Redactor())
    assert [call["outcome"] for call in page["calls"]] == ["nothing", "given"]
    assert dict(page["counts"]) == {"nothing": 1, "given": 1}
    assert [message["message_id"] for message in page["calls"][1]["given"]] == [7]
    (candidate,) = page["calls"][0]["candidates"]
    assert (candidate["words_too_low"], candidate["points_too_low"], candidate["clears"]) == (True, True, False)
    assert page["calls"][0]["kinds"] == "a question"
    assert [call["prompt"] for call in read_log(tmp_path, "bo", Redactor())["calls"]] == ["Plans of Bo"]
    assert [call["id"] for call in read_log(tmp_path, None, Redactor(), outcome="nothing")["calls"]] == [nothing]
    assert read_log(tmp_path, None, Redactor(), host="codex")["calls"] == []
    found = find_call(tmp_path, None, Redactor(), nothing)
    assert found is not None and found["words"] == ["deadlock"]
    assert find_call(tmp_path, "bo", Redactor(), nothing) is None


def test_a_log_that_another_program_wrote_into_is_shown(tmp_path: Path) -> None:
    """Fields of unexpected types are empty, and lines without an id are skipped."""
    path = hook_calls_path(tmp_path)
    path.parent.mkdir(parents=True)
    odd = {"id": "1", "at": 5, "outcome": 3, "candidates": [1, {"words": "x"}], "floor": [], "given": "x", "ms": "y"}
    path.write_text("nonsense\n[]\n" + json.dumps(odd) + "\n")
    (call,) = read_log(tmp_path, None, Redactor())["calls"]
    assert (call["outcome"], call["given"], len(call["candidates"]), call["ms"]) == ("", [], 1, 0)


def test_spending_is_summed_and_charted(tmp_path: Path) -> None:
    """By model, purpose and day, with days that have no call; one user sees the user's own calls and no budget."""
    with memoranda.open(tmp_path) as memory:
        services = memory.services
        services.metered(Fixed(Usage(1_000_000, 0)), "chat", "s1", None).reply("", QUESTION)
        services.metered(Fixed(Usage(0, 1_000_000)), "review", "s2", "bo", background=True).reply("", QUESTION)
        spending = read_spending(memory, "purpose", 7)
        assert {row.name: row.cost_usd for row in spending.rows} == {"review": 15.0, "chat": 3.0}
        assert (spending.total.calls, spending.budget_percent) == (2, 100)
        days = chart_data(read_spending(memory, "day", 7))["rows"]
        assert len(days) == 8 and days[-1]["calls"] == 2 and days[0]["calls"] == 0
        own = read_spending(memory.for_user("bo"), "purpose", 7)
        assert [row.name for row in own.rows] == ["review"]
        assert (own.today, own.budget_percent) == (None, None)


def test_health_lists_problems_and_repairs_only_harmless_ones(tmp_path: Path) -> None:
    """A leftover can be deleted from the page; what needs a person has no button."""
    home = Home(tmp_path)
    with memoranda.open(tmp_path) as memory:
        memory.remember("one")
        (tmp_path / "config.yaml").write_text("memory:\n  nonsense: 1\n")
        os.chmod(tmp_path / "config.yaml", 0o600)
        (tmp_path / ".MEMORY.md.tmp").write_text("x")
        problems = health.find_problems(home)
        leftover = next(finding for finding in problems if finding["name"] == ".MEMORY.md.tmp")
        unknown = next(finding for finding in problems if "unknown name" in finding["problem"])
        assert leftover["can_repair"] and not unknown["can_repair"]
        assert health.repair_problem(home, unknown["id"]) is None
        outcome = health.repair_problem(home, leftover["id"])
        assert outcome is not None and outcome["fixed"]
        assert not (tmp_path / ".MEMORY.md.tmp").exists()
        assert health.find_problem(home, leftover["id"]) is None
        assert health.index_lag(memory) is None


@pytest.mark.parametrize("name", ["index", "lag"])
def test_the_index_is_rebuilt_from_the_page(tmp_path: Path, name: str) -> None:
    """An index that is behind or damaged is a harmless repair; the lag counts the messages it lacks."""
    home = Home(tmp_path)
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s1", "cli")
        memory.sessions.append_message("s1", "user", "The heron nests by the lake.")
        memory.search("heron")
        memory.sessions.append_message("s1", "user", "Another one.")
        if name == "lag":
            assert health.index_lag(memory) == 1
    if name == "index":
        for file in tmp_path.glob("state.index.db.*"):
            file.write_bytes(b"not a database" * 100)
    found = next(finding for finding in health.find_problems(home) if "state.index" in finding["name"])
    assert found["can_repair"]
    outcome = health.repair_problem(home, found["id"])
    assert outcome is not None and outcome["fixed"], outcome
    with memoranda.open(tmp_path) as memory:
        assert health.index_lag(memory) == 0


def test_disk_usage_names_the_parts(tmp_path: Path) -> None:
    """Files and folders are counted under the part of memory that they belong to."""
    with memoranda.open(tmp_path) as memory:
        memory.remember("one")
        memory.sessions.create_session("s1", "cli")
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "logs" / "big.log").write_bytes(b"x" * 5_000_000)
    (tmp_path / "mine.txt").write_bytes(b"x" * 10)
    parts = health.disk_usage(tmp_path)
    assert (parts[0]["name"], parts[0]["size"]) == ("Logs", 5_000_000)
    assert {"Conversations (the record)", "MEMORY.md, USER.md and their history", "Other files"} <= {
        part["name"] for part in parts
    }
