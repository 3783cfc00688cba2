"""Whatever a model answers in review and compression: memory, skills and record stay, and the failure is seen."""

import json
import logging
import queue
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memoranda.agent.compression.prompts import SYSTEM as SUMMARISE
from memoranda.agent.events import ContextCompressed, Event
from memoranda.agent.loop import Agent
from memoranda.agent.review.report import ReviewReport
from memoranda.api.memory import Memory, open_memory
from memoranda.errors import (
    BudgetSpentError,
    ContextTooLongError,
    ModelAuthError,
    ModelError,
    ModelOverloadedError,
    ModelQuotaError,
    ModelReplyError,
    ModelUnreachableError,
)
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import ScriptedModel
from tests.conftest import tree
from tests.timing import GIVE_UP

REVIEW = "[Background review."
WINDOW = 9_000
SAVE = '{"target": "memory", "action": "add", "content": "The user likes'
SKILL = '{"action": "create", "name": "tea", "content": "Boil'

NONSENSE: dict[str, Reply] = {
    "noise": Reply("\x00ÿ%PDF-1.4 )(*&^ <html><body>502 Bad Gateway</body>"),
    "other words": Reply("As a language model I would rather talk about the weather."),
    "nothing": Reply(""),
    "partial JSON": Reply('{"sections": {"Goal": "to', finish_reason="stop"),
    "cut off": Reply("## Goal\nTo find\n\n## Constr", finish_reason="length"),
    "half a summary": Reply("## Goal\nTea.\n\n## Constraints\n-\n\n## Decisions\nBoil it."),
    "a memory call cut off": Reply("", (ToolCall("c1", "memory", SAVE),)),
    "a skill call cut off": Reply("", (ToolCall("c1", "skill_manage", SKILL),)),
    "a call of nothing": Reply("", (ToolCall("c1", "rm", '{"path": "/"}'),)),
    "a whole call beside a broken one": Reply(
        "", (ToolCall("c1", "memory", SAVE + ' tea."}'), ToolCall("c2", "memory", SAVE))
    ),
}
ERRORS: dict[str, ModelError] = {
    kind.__name__: kind("The script says so.")
    for kind in (
        ModelError, ModelAuthError, ModelQuotaError, ModelOverloadedError, ContextTooLongError, ModelUnreachableError,
        ModelReplyError, BudgetSpentError,
    )
}  # fmt: skip
BAD: dict[str, Reply | ModelError] = NONSENSE | ERRORS
every_kind = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if place % 3 else []) for place, kind in enumerate(BAD)]
)


class Watched:
    """A conversation through the agent whose model talks nonsense when it works in the background."""

    def __init__(self, home: Path, bad: Reply | ModelError) -> None:
        self.memory: Memory = open_memory(home)
        self.reports: queue.Queue[ReviewReport] = queue.Queue()
        self.compressions: list[ContextCompressed] = []
        self.asked_badly = 0
        self._bad = bad
        self._home = home
        self.agent: Agent = self.memory.agent(
            ScriptedModel(self._answer, window=WINDOW), session=self.memory.session(session_id="s1", source="cli"),
            on_event=self._listen, on_review=self.reports.put,
        )  # fmt: skip

    def kept(self) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Memory and skills, every byte of them."""
        return tree(self._home / "memories"), tree(self._home / "skills")

    def recorded(self) -> list[str]:
        """Everything that was said, from the first session on; what compression adds is left out."""
        db = self.memory.sessions
        every = [each for session in db.get_compression_lineage("s1") for each in db.get_messages(session)]
        said = [each for each in every if not each["is_summary"] and not each["copy_of"]]
        return [json.dumps([each["id"], each["role"], each["content"], each["tool_calls"]]) for each in said]

    def _answer(self, system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        asked = next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")
        if system == SUMMARISE or asked.startswith(REVIEW):
            self.asked_badly += 1
            if isinstance(self._bad, ModelError):
                raise self._bad
            return self._bad
        return Reply("I see.")

    def _listen(self, event: Event) -> None:
        if isinstance(event, ContextCompressed):
            self.compressions.append(event)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home with an entry and a skill."""
    place = tmp_path / "home"
    with open_memory(place) as memory, memory.session() as session:
        assert session.remember("The office is in Lisbon.")["success"]
        skill = {"action": "create", "name": "coffee", "description": "How to make coffee.", "content": "Grind it."}
        assert session.call("skill_manage", skill)["success"]
    yield place


@every_kind
def test_a_review_that_talks_nonsense_changes_nothing_and_says_so(
    home: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer of the turn stands; the report and the log tell that the review failed."""
    (home / "config.yaml").write_text("memory:\n  nudge_interval: 1\n")
    talk = Watched(home, BAD[kind])
    before = talk.kept()
    with caplog.at_level(logging.INFO), talk.memory:
        assert talk.agent.turn("I like tea, and I always boil the water first.") == "I see."
        report = talk.reports.get(timeout=GIVE_UP)
    assert talk.asked_badly >= 1
    assert report.failed and not report.changed
    assert "failed" in caplog.text
    assert talk.kept() == before
    with open_memory(home) as memory:
        said = [(each["role"], each["content"]) for each in memory.sessions.get_messages("s1")]
    assert said == [("user", "I like tea, and I always boil the water first."), ("assistant", "I see.")]


@pytest.mark.slow
@every_kind
def test_a_summary_that_is_nonsense_becomes_an_extract_and_says_so(
    home: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The conversation continues from words that were really said; no message of the record changes or goes."""
    (home / "config.yaml").write_text("memory:\n  nudge_interval: 0\n")
    talk = Watched(home, BAD[kind])
    before, known = talk.kept(), []
    with talk.memory:
        turn = 0
        while not talk.compressions and turn < 60:
            known = talk.recorded()
            talk.agent.turn(f"We decided on plan {turn}: the crates of row {turn} go to /srv/store/{turn}. " * 24)
            turn += 1
        assert talk.recorded()[: len(known)] == known
        assert len(talk.recorded()) == 2 * turn
        (event,) = talk.compressions
        assert (event.compression.how, bool(event.compression.why)) == ("extract", True)
        assert event.compression.why.split(";")[0] in caplog.text
        assert talk.asked_badly >= 1
        assert talk.kept() == before
        _goes_on(talk)


def _goes_on(talk: Watched) -> None:
    """The extract stands in the context, without a word of the nonsense, and what it stands for is found."""
    session = talk.agent.session
    context = json.dumps(talk.memory.sessions.get_messages_as_conversation(session.id))
    assert "[Summary of this conversation so far." in context
    assert not any(word in context for word in ("Bad Gateway", "weather", "Boil", "sections"))
    assert talk.agent.turn("And now?") == "I see."
    found = session.call("session_search", {"query": '"row 5"'})
    assert "/srv/store/5." in json.dumps(found["results"])
