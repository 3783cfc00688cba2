"""Nothing but compression changes a byte of a session's prompt, and what changed meanwhile travels in a fenced note."""

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import pytest

from memoranda.agent.loop import Agent
from memoranda.api.memory import Memory, open_memory
from memoranda.api.session import Session
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import ModelRequest, ScriptedModel
from tests.examples import is_full_run
from tests.external.diary import diary_home
from tests.long_conversation.story import REVIEW
from tests.timing import GIVE_UP

NOTE = "[Memory changed"
ELSEWHERE = "import sys, memoranda; memory = memoranda.open(sys.argv[1]); "
SKILL = {"action": "create", "name": "deploy", "description": "How to deploy.", "content": "Run make deploy."}


@dataclass
class Talk:
    """A conversation through the agent, with all that may happen beside it."""

    home: Path
    directory: Path
    calls: list[ToolCall] = field(default_factory=list)
    memory: Memory = field(init=False)
    session: Session = field(init=False)
    agent: Agent = field(init=False)

    def __post_init__(self) -> None:
        self.model = ScriptedModel(self._answer)
        self.begin("one")

    def begin(self, session_id: str) -> None:
        """Open the home, as a program does that has just been started."""
        self.memory = open_memory(self.home)
        self.session = self.memory.session(
            session_id=session_id, source="cli", directory=self.directory, instructions="Be brief."
        )
        self.agent = self.memory.agent(self.model, session=self.session)

    def restart(self) -> None:
        self.memory.close()
        self.begin(self.session.id)

    def say(self, text: str = "Go on.", *calls: tuple[str, object]) -> ModelRequest:
        """A turn in which the model calls some tools first; what was sent with the user's words."""
        self.calls = [ToolCall(f"c{place}", name, json.dumps(given)) for place, (name, given) in enumerate(calls)]
        first = len(self.model.requests)
        self.agent.turn(text)
        # A review of the turn before may ask the same model now.
        return next(request for request in self.model.requests[first:] if not _is_review(request.messages))

    def elsewhere(self, program: str) -> None:
        """Something that another process does with the same home."""
        subprocess.run([sys.executable, "-c", ELSEWHERE + program, str(self.home)], check=True, timeout=GIVE_UP)

    def _answer(self, system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        if _is_review(messages):
            return Reply("Nothing to save.")
        calls, self.calls = tuple(self.calls), []
        return Reply("One moment.", calls) if calls else Reply("Very well.")


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    home, directory = tmp_path / "home", tmp_path / "work"
    directory.mkdir()
    (directory / "AGENTS.md").write_text("Use tabs.")
    home.mkdir()
    (home / "SOUL.md").write_text("You are a careful clerk.")
    diary_home(home)
    open_memory(home).remember("The office is in Lisbon.")
    made = Talk(home, directory)
    made.say("Hello.")
    yield made
    made.memory.close()


def _write_skill_elsewhere(talk: Talk) -> None:
    talk.elsewhere(f"print(memory.session().call('skill_manage', {SKILL!r}))")


def _another_day(talk: Talk) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memoranda.api.session_parts.prompt.today", lambda zone: date.today() + timedelta(days=3))
        talk.restart()
        talk.say()


def _interrupted(talk: Talk) -> None:
    with talk.session.turn("This is never answered."):
        pass


def _files(talk: Talk) -> None:
    (talk.home / "SOUL.md").write_text("You are somebody else.")
    (talk.directory / "AGENTS.md").write_text("Use spaces.")
    talk.restart()


def _add(text: str, **more: str) -> tuple[str, object]:
    return ("memory", {"target": "memory", "action": "add", "content": text, **more})


EVENTS: dict[str, Callable[[Talk], object]] = {
    "an ordinary turn": lambda talk: talk.say("How are you?"),
    "a memory write": lambda talk: talk.say("Remember that I like tea.", _add("Likes tea.")),
    "a memory entry replaced": lambda talk: talk.say(
        "The office is in Porto now.", _add("The office is in Porto.", action="replace", old_text="Lisbon")
    ),
    "a fact that a person saved": lambda talk: talk.session.remember("Has a dog.", target="user"),
    "a memory write of another process": lambda talk: talk.elsewhere("memory.remember('The printer is new.')"),
    "a skill write": lambda talk: talk.say("Write that down.", ("skill_manage", SKILL)),
    "a skill write of another process": _write_skill_elsewhere,
    "a tool of the provider": lambda talk: talk.say("Read the diary.", ("diary_read", {})),
    "the provider's own events": lambda talk: talk.session.external.switch(talk.session.id, reason="resume"),
    "delegated work": lambda talk: talk.say("Have it done.", ("delegate_task", {"task": "Count to three."})),
    "a search": lambda talk: talk.say("What did I say?", ("session_search", {"query": "hello"})),
    "an interrupted turn": _interrupted,
    "a turn taken back": lambda talk: talk.session.undo(),
    "a title": lambda talk: talk.session.rename("Something else"),
    "a restart": lambda talk: talk.restart(),
    "a restart on another day": _another_day,
    "other project files and another soul": _files,
    "the end of the session": lambda talk: talk.session.end(),
}


def _tools(request: ModelRequest) -> str:
    return json.dumps([tool.anthropic_schema() for tool in request.tools])


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
def test_no_event_changes_a_byte_of_the_prompt(talk: Talk, event: str) -> None:
    """Neither in the session nor in what is sent with the next turn, nor after a restart; the tools stay as well."""
    prompt, first = talk.session.prompt, talk.model.requests[0]
    assert "Lisbon" in prompt and "There is a diary." in prompt and "Use tabs." in prompt
    EVENTS[event](talk)
    assert talk.session.prompt == prompt
    sent = talk.say()
    assert (sent.system, _tools(sent)) == (prompt, _tools(first))
    talk.restart()
    assert talk.session.prompt == prompt
    sent = talk.say()
    assert (sent.system, _tools(sent)) == (prompt, _tools(first))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3 if is_full_run() else 1))
def test_only_compression_changes_the_prompt(talk: Talk, seed: int) -> None:
    """After all events in any order it is the one of the beginning; after compression it shows what is true now."""
    prompt = talk.session.prompt
    for event in random.Random(seed).sample(list(EVENTS), len(EVENTS)):
        EVENTS[event](talk)
        assert talk.session.prompt == prompt, event
    for _ in range(12):
        talk.say("Tell me more about all of that, please. " * 20)
    before = talk.session.id
    assert talk.session.compress(force=True).done
    assert talk.session.id != before
    changed = talk.session.prompt
    assert changed != prompt
    assert "Likes tea." in changed and "Porto" in changed and "Lisbon" not in changed and "deploy" in changed
    assert talk.say().system == changed
    talk.restart()
    assert talk.say().system == changed


@pytest.mark.slow
def test_what_others_changed_is_told_in_the_next_message_and_never_recorded(talk: Talk) -> None:
    """In its fence, in a copy of the user's words; the next turns repeat it, and the record holds no note."""
    assert NOTE not in _asked(talk.say("Anything new?"))
    talk.elsewhere("memory.remember('The printer is new.')")
    sent = talk.say("And now?")
    assert _asked(sent).startswith("And now?\n\n<memory-context>\n[Memory changed")
    assert "New in MEMORY.md> The printer is new." in _asked(sent)
    assert all(NOTE not in str(message["content"]) for message in sent.messages[:-1])
    again = talk.say("Still there?")
    assert "The printer is new." in _asked(again)
    assert again.messages[: len(sent.messages) - 1] == sent.messages[:-1]
    talk.restart()
    assert "The printer is new." in _asked(talk.say("After a restart?"))
    recorded = json.dumps(talk.memory.sessions.get_messages("one"))
    assert NOTE not in recorded and "memory-context" not in recorded and "printer" not in recorded


def test_what_the_model_saved_itself_is_no_news_to_it(talk: Talk) -> None:
    """It has seen the result of its call."""
    talk.say("Remember that I like tea.", _add("Likes tea."))
    assert NOTE not in _asked(talk.say("Go on."))


@pytest.mark.slow
def test_after_compression_there_is_nothing_to_tell(talk: Talk) -> None:
    """The new prompt knows what the old one did not."""
    talk.elsewhere("memory.remember('The printer is new.')")
    for _ in range(12):
        talk.say("Tell me more about all of that, please. " * 20)
    assert NOTE in _asked(talk.say())
    assert talk.session.compress(force=True).done
    assert "The printer is new." in talk.session.prompt
    assert NOTE not in _asked(talk.say())


def _asked(request: ModelRequest) -> str:
    """The user's words as they were sent."""
    return _last_words(request.messages)


def _is_review(messages: Sequence[Message]) -> bool:
    return _last_words(messages).startswith(REVIEW)


def _last_words(messages: Sequence[Message]) -> str:
    return str(next(message["content"] for message in reversed(messages) if message["role"] == "user"))
