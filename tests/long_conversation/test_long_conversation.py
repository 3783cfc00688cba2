"""A long conversation over real HTTP, killed again and again: nothing acknowledged is lost, and the prefix holds.

It has 84 turns in `make test-all` and 200 in `make torture`.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memoranda.agent.compression.prompts import HEADER
from memoranda.agent.compression.prompts import SYSTEM as SUMMARISE
from memoranda.api.memory import Memory, open_memory
from memoranda.models.model import Message
from memoranda.testing.scripted.steps import ReceivedRequest
from tests.conftest import Strikes
from tests.long_conversation import conversation_process, story
from tests.long_conversation.acknowledgements import digest
from tests.timing import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SEED = 7
_FEWER_TURNS = 84
_SUMMARY = re.compile(re.escape(HEADER.partition("{")[0]) + r"(\d+ to \d+)")
_FENCE = "<memory-context>"


@dataclass(frozen=True)
class FinishedRun:
    """A home with the whole conversation, and everything that the server received."""

    home: Path
    turns: int
    kills: int
    killed: Counter[str]
    requests: list[ReceivedRequest]

    def lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in (self.home / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, strikes: Strikes) -> FinishedRun:
    """The conversation, run once for all tests here."""
    home, kills = tmp_path_factory.mktemp("long") / "home", strikes(200)
    turns = story.TURNS if kills == 200 else _FEWER_TURNS
    conversation_process.make_home(home)
    with _server(home / "requests.jsonl") as address:
        numbers = map(str, (turns, kills, SEED))
        killing = [sys.executable, "-m", "tests.long_conversation.killer", str(home), address, *numbers]
        done = subprocess.run(killing, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4_000:]
    return FinishedRun(home, turns, kills, Counter(json.loads(done.stdout)), _received(home / "requests.jsonl"))


@pytest.fixture(scope="module")
def memory(run: FinishedRun) -> Iterator[Memory]:
    with open_memory(run.home) as opened:
        yield opened


@contextmanager
def _server(log: Path) -> Iterator[str]:
    """The scripted server as a process of its own; its window is the model's."""
    command = [
        sys.executable,
        "-m",
        "memoranda.testing.scripted",
        "--script",
        "tests.long_conversation.story:answer",
    ]
    with subprocess.Popen(
        [*command, "--log", str(log), "--window", str(story.WINDOW)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


def _received(log: Path) -> list[ReceivedRequest]:
    """Every request that came in whole; some were being written when their process was killed."""
    lines = (json.loads(line) for line in log.read_text("utf-8").splitlines())
    every = [ReceivedRequest(line["number"], line["at"], line["path"], line["headers"], line["body"]) for line in lines]
    return [request for request in every if request.json]


def test_it_was_killed_everywhere_and_reached_its_end(run: FinishedRun, memory: Memory) -> None:
    """While it opened, between steps and in compression; and still every turn was answered, through compressions."""
    assert run.killed.total() == run.kills
    assert min(run.killed[where] for where in ("opening", "recorded", "compressing")) > 3
    turns = conversation_process.turns(memory.sessions)
    assert [turn for (turn, _), done in turns if done] == list(range(run.turns))
    assert len([turn for turn, done in turns if not done]) > run.kills // 4
    assert len(memory.sessions.get_compression_lineage(story.FIRST_SESSION)) > (3 if run.turns == story.TURNS else 2)
    with memory.sessions.engine.reading() as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_every_acknowledged_event_is_there(run: FinishedRun, memory: Memory) -> None:
    """Each message under its id, word for word; and each entry that was saved is in memory."""
    acknowledged = run.lines("acknowledged.jsonl")
    messages = {each["id"]: each for each in conversation_process.recorded(memory.sessions)}
    for line in acknowledged:
        if line["kind"] == "message":
            found = messages[line["id"]]
            assert (found["role"], digest(found)) == (line["role"], line["digest"])
    saved = [line["entry"] for line in acknowledged if line["kind"] == "entry"]
    assert set(saved) <= set(memory.entries())
    assert set(memory.entries()) == {entry for turn in range(run.turns) if (entry := story.entry_of(turn))}
    # A message whose writer was killed before it could say so may be there too; no other process wrote any.
    assert len(messages) - sum(line["kind"] == "message" for line in acknowledged) <= run.kills


def test_only_compression_changes_what_stands_before_the_users_message(run: FinishedRun, memory: Memory) -> None:
    """System prompt, tools and all earlier messages are the same bytes, request after request."""
    parts: dict[str, list[ReceivedRequest]] = {}
    for request in run.requests:
        if request.conversation[0] != SUMMARISE:
            parts.setdefault(_summary(request), []).append(request)
    assert len(parts) == len(memory.sessions.get_compression_lineage(story.FIRST_SESSION))
    for requests in parts.values():
        assert len({json.dumps([each.json["system"], each.json["tools"]]) for each in requests}) == 1
        before: list[str] = []
        for request in requests:
            sent = _bare(request)
            assert sent[: len(before)] == before
            before = sent[: _current(request)]


def test_recall_reached_the_model_and_never_the_record(run: FinishedRun, memory: Memory) -> None:
    """It is fenced into the current user message, and into no other; the record holds no fence."""
    fenced = 0
    for request in run.requests:
        messages = request.conversation[1]
        asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
        assert not any(_FENCE in str(message["content"]) for message in messages[:asked])
        fenced += "[Recalled memory from" in str(messages[asked]["content"])
    assert fenced > run.turns // 2
    assert not any(_FENCE in str(message["content"]) for message in conversation_process.recorded(memory.sessions))


def test_planted_facts_are_found_again(run: FinishedRun, memory: Memory) -> None:
    """Paths, numbers, decisions and tasks: in context, or by session_search from the same conversation."""
    session = conversation_process.take_up(memory)
    context = "\n".join(str(message["content"]) for message in session.conversation())
    searched = 0
    for fact in story.FACTS[: run.turns // 4]:
        if fact.sentence not in context:
            found = session.call("session_search", {"query": fact.query})
            shown = [str(message["content"]) for result in found["results"] for message in result["messages"]]
            assert any(fact.sentence in text for text in shown), fact
            searched += 1
    assert searched > 10
    assert story.RULE in context
    assert story.said(run.turns - 1) in context


def test_completed_turns_reached_the_provider_once_and_others_never(run: FinishedRun, memory: Memory) -> None:
    """By key: one for each turn that was answered, whatever was delivered again, and none for an interrupted one."""
    completed = [story.numbered(*number) for number, done in conversation_process.turns(memory.sessions) if done]
    with conversation_process.take_up(memory):
        wait_until(lambda: len({key for key, _, _ in run.lines("told.jsonl")}) >= len(completed), every=0.1)
    delivered = {key: (asked, answered) for key, asked, answered in run.lines("told.jsonl")}
    assert Counter(asked for asked, _ in delivered.values()) == Counter(completed)
    for key, asked, answered in run.lines("told.jsonl"):
        assert delivered[key] == (asked, answered)


def _summary(request: ReceivedRequest) -> str:
    """What the summary in a request's context stands for, by which the parts between compressions are distinguished."""
    texts = (str(message["content"]) for message in request.conversation[1] if message["role"] == "user")
    return next((match[1] for text in texts if (match := _SUMMARY.search(text))), "")


def _bare(request: ReceivedRequest) -> list[str]:
    """The messages of a request as they were sent, each as text, without the marks for the cache."""
    return [_text(entry) for entry in request.json["messages"]]


def _text(entry: Message) -> str:
    blocks = [{name: value for name, value in block.items() if name != "cache_control"} for block in entry["content"]]
    return json.dumps([entry["role"], blocks], ensure_ascii=False)


def _current(request: ReceivedRequest) -> int:
    """How many messages stand before what the user says now."""

    def speaks(entry: Message) -> bool:
        return entry["role"] == "user" and any(block["type"] == "text" for block in entry["content"])

    return max(place for place, entry in enumerate(request.json["messages"]) if speaks(entry))
