"""The chat as a person uses it: in a terminal, with a service that answers over HTTP."""

import random
import time
from pathlib import Path

import pytest

from memoranda.agent.model_messages import INTERRUPTED_ANSWER, PARTIAL_ANSWER
from memoranda.api.memory import open_memory
from memoranda.testing.scripted.server import ScriptedServer
from tests.cli.chat.person import CTRL_C, CTRL_D, TAB, UP, Person

pytestmark = pytest.mark.slow

# Ctrl-U removes what was put back into the input line.
CLEAR = "\x15"


def _recorded(home: Path) -> list[tuple[str, str]]:
    """Returns the role and text of each message in the latest conversation."""
    with open_memory(home) as memory:
        latest = memory.sessions.list_sessions_rich(limit=1, order_by_last_active=True)[0]
        return [(each["role"], each["content"]) for each in memory.sessions.get_messages(latest["id"])]


def _asked(service: ScriptedServer) -> list[str]:
    """Returns the messages of the last request to the service, without the prompt."""
    return [str(message["content"]) for message in service.received[-1].conversation[1]]


def test_an_answer_appears_while_it_is_written(person: Person) -> None:
    """The first words are on the screen long before the last; a status line says how full the context is."""
    person.types("Tell me a story")
    assert "the end." not in person.sees("Once upon a time")
    person.sees("the end.")
    status = person.is_asked()
    assert "context" in status and "% from cache" in status and "scripted-1" in status
    person.types("/quit")
    person.sees("Saved.")
    assert person.leaves() == 0


def test_an_interrupted_answer_is_kept_and_the_chat_continues(
    home: Path, service: ScriptedServer, person: Person
) -> None:
    """The record has the question and the shown text, marked as interrupted; the model sees both, in order."""
    person.types("Tell me a story")
    person.sees("and then")
    person.presses(CTRL_C)
    person.sees("Interrupted. Your message and what was recorded until then are kept")
    person.is_asked()
    (_, question), (role, partial) = _recorded(home)
    assert (question, role) == ("Tell me a story", "assistant")
    assert partial.startswith("Once upon a time and then") and partial.endswith(f"\n\n{PARTIAL_ANSWER}")
    assert "the end." not in partial
    person.says("Hello", "You said: Hello.")
    assert person.quits() == 0
    assert _asked(service) == ["Tell me a story", partial, "Hello"]
    assert _recorded(home)[2:] == [("user", "Hello"), ("assistant", "You said: Hello.")]


def test_an_interrupted_answer_is_dropped_if_the_user_chooses_so(home: Path, service: ScriptedServer) -> None:
    """The record has the question, and the model sees that there was no answer."""
    with Person(home, env={"MEMORANDA_AGENT_KEEP_INTERRUPTED": "false"}) as person:
        person.is_asked()
        person.types("Tell me a story")
        person.sees("and then")
        person.presses(CTRL_C)
        person.sees("Interrupted. Your message and what was recorded until then are kept")
        person.is_asked()
        assert _recorded(home) == [("user", "Tell me a story")]
        person.says("Hello", "You said: Hello.")
    assert _asked(service) == ["Tell me a story", INTERRUPTED_ANSWER, "Hello"]


def test_interrupts_lose_no_message_and_do_not_end_the_chat(home: Path, person: Person) -> None:
    """Whenever they come, every line is in the record, in order, or is put back into the input line."""
    chance = random.Random(5)
    said = [f"Please remember tabs {number}" if number % 3 else f"Hello {number}" for number in range(12)]
    for text in said:
        person.presses(CLEAR + text + "\r")
        time.sleep(0.6 * chance.random())
        person.presses(CTRL_C)
        person.is_asked()
    person.says(CLEAR + "The last one", "You said: The last one.")
    heard = [text for role, text in _recorded(home) if role == "user"]
    assert heard == [text for text in (*said, "The last one") if text in heard]
    assert len(heard) + person.screen.count("was not recorded") == len(said) + 1


def test_waiting_for_an_answer_can_be_interrupted_too(person: Person) -> None:
    """No text has arrived yet, and the user need not wait for it."""
    person.types("Please think about it")
    person.sees("…")
    person.presses(CTRL_C)
    person.sees("Interrupted.")
    person.is_asked()
    person.presses(CTRL_D)
    assert person.leaves() == 0


def test_tools_that_the_model_uses_are_shown(person: Person) -> None:
    """The tool, its arguments and its result; `/memory` then shows the saved entry."""
    person.says(
        "Please remember that I use tabs",
        "One moment.",
        '· memory {"target": "memory", "action": "add", "content": "Ana uses tabs."}',
        "→ Saved in MEMORY.md.",
        "It is noted.",
    )
    person.types("/memory")
    person.sees("1  Ana uses tabs.")


def test_a_turn_can_be_undone_and_edited(service: ScriptedServer, person: Person) -> None:
    """Its text is offered for editing; the model never sees the first version."""
    person.says("Hello")
    person.says("My name is Ann")
    person.types("/undo")
    person.sees("Undone, 2 messages: My name is Ann")
    person.sees("> My name is Ann")
    person.says("a", "You said: My name is Anna.")
    person.says("/undo")
    person.presses("\x15")
    person.says("/undo")
    person.presses("\x15")
    person.types("/undo")
    person.sees("There is nothing to undo.")
    assert _asked(service) == ["Hello", "You said: Hello.", "My name is Anna"]


def test_a_conversation_can_be_branched(service: ScriptedServer, person: Person) -> None:
    """A branch has the earlier messages; its new messages are not in the original, which can be resumed."""
    person.says("Hello")
    person.types("/title First way")
    person.sees("now called 'First way'.")
    person.says("/branch Second way", "A branch of the conversation.")
    person.says("Left", "You said: Left.")
    assert _asked(service) == ["Hello", "You said: Hello.", "Left"]
    person.says("/resume First way", "Resumed 'First way'.", "You said: Hello.")
    person.says("Right", "You said: Right.")
    assert _asked(service) == ["Hello", "You said: Hello.", "Right"]
    person.types("/sessions")
    person.sees("First way")
    person.sees("Second way")


def test_a_conversation_is_resumed_by_title_after_a_kill(home: Path, service: ScriptedServer, person: Person) -> None:
    """After a kill in the middle of an answer, everything before it is recorded, and the model gets it."""
    person.says("/title The long one")
    person.says("Please remember that I use tabs", "It is noted.")
    person.types("Tell me a story")
    person.sees("and then")
    person.kills()
    with Person(home, "--resume", "The long one") as again:
        again.sees("Resumed 'The long one'.")
        again.is_asked()
        again.says("Where were we?", "You said: Where were we?")
        again.quits()
    asked = _asked(service)
    assert asked[0] == "Please remember that I use tabs"
    assert asked[-3:-1] == ["Tell me a story", INTERRUPTED_ANSWER]
    # The prompt is the old one, so the model gets a note of what was saved since.
    assert asked[-1].startswith("Where were we?") and "Ana uses tabs." in asked[-1]


def test_the_latest_chat_is_resumed_without_a_name(home: Path, service: ScriptedServer) -> None:
    """`--resume` needs no name."""
    for number, arguments in enumerate(([], ["--resume"])):
        with Person(home, *arguments) as person:
            person.is_asked()
            person.says(f"Line {number}")
            person.quits()
    assert _asked(service) == ["Line 0", "You said: Line 0.", "Line 1"]


@pytest.mark.usefixtures("no_key")
def test_without_a_key_the_chat_says_how_to_set_one_and_exits(home: Path) -> None:
    """It names the demo command too, and writes nothing."""
    with Person(home) as person:
        person.sees("memoranda secret set")
        person.sees("memoranda demo")
        assert person.leaves() == 2
    assert not home.exists()


def test_a_chat_without_a_message_writes_nothing(home: Path, service: ScriptedServer) -> None:
    """An empty home stays empty."""
    with Person(home) as person:
        person.is_asked()
        person.presses(CTRL_C)
        person.sees("Ctrl-D or /quit leaves.")
        person.is_asked()
        person.presses(CTRL_D)
        assert person.leaves() == 0
    assert not home.exists()


def test_what_was_typed_comes_back_with_the_arrow_key(home: Path, person: Person) -> None:
    """It does so in the next chat too; API keys are not stored in the history."""
    secret = "ghp_q7Zt2Xw9Lk4Vn8Rb3Mc6Hs1Jd5Gf0Py9Ua2T"
    person.says(f"My key is {secret}")
    person.says("Hello again")
    person.quits()
    with Person(home) as again:
        again.is_asked()
        again.presses(UP + UP)
        again.types("")
        again.sees("You said: Hello again.")
        again.presses("/he" + TAB)
        again.types("")
        again.sees("/compress")
    kept = home / "chat_history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "Hello again" in kept.read_text()
    assert secret not in kept.read_text()


def test_an_error_of_the_service_is_shown_and_the_chat_continues(home: Path, person: Person) -> None:
    """The question stays in the record."""
    person.says("Please refuse this", "Incorrect API key provided")
    assert _recorded(home) == [("user", "Please refuse this")]
    person.says("/nonsense", "There is no command /nonsense")
    person.types("/etc/hosts is a path")
    person.sees("You said: /etc/hosts is a path.")


def test_several_lines_can_be_one_message(service: ScriptedServer, person: Person) -> None:
    """Alt-Enter begins a new line."""
    person.presses("First\x1b\r")
    person.says("second")
    assert _asked(service) == ["First\nsecond"]


def test_what_a_model_says_cannot_control_the_terminal(person: Person) -> None:
    """Control characters are replaced."""
    person.types("Please escape")
    shown = person.sees("red.")
    assert "\x1b]0;owned" not in shown
    assert "owned" in shown


def test_past_conversations_are_searched(service: ScriptedServer, person: Person) -> None:
    """`/search` finds earlier messages, `/new` starts a new conversation."""
    person.says("The walrus sings")
    person.says("/new", "A new conversation.")
    person.says("/search walrus", "1 session matches", "The walrus sings")
    person.types("Hello")
    person.sees("You said: Hello.")
    assert _asked(service) == ["Hello"]
