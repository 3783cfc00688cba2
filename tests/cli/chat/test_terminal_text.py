"""What a person sees and pastes in a terminal: rendered answers, wrapped words, and text of many lines."""

import subprocess
from pathlib import Path

import pytest

from memoranda.api.memory import open_memory
from memoranda.testing.scripted.server import ScriptedServer
from tests.cli.chat.conftest import MARKDOWN
from tests.cli.chat.person import CTRL_C, PROGRAM, Person

pytestmark = pytest.mark.slow

_PASTE = "\n".join(["\tdef f():", "", "    return '喜欢'  # 日本語", *(f"line {number}\t| x" for number in range(97))])


def _asked(service: ScriptedServer) -> list[str]:
    return [str(message["content"]) for message in service.received[-1].conversation[1]]


def test_pasted_text_is_one_message(service: ScriptedServer, person: Person) -> None:
    """It keeps its tabs, blank lines and wide characters, and is sent only when Enter is pressed."""
    person.pastes(_PASTE)
    person.sees("line 96")
    assert not service.received
    person.says("", "You said:")
    assert _asked(service) == [_PASTE]
    person.pastes("/undo\nis a command of the chat")
    person.says("", "You said: /undo")
    assert len(service.received) == 2


def test_text_that_is_pasted_during_an_answer_is_one_message(service: ScriptedServer, person: Person) -> None:
    """It waits for the prompt, and none of it appears in the answer."""
    person.types("Tell me a story")
    person.sees("and then")
    person.pastes("first\n\nthird")
    person.presses(CTRL_C)
    assert "third" not in person.sees("Interrupted.")
    person.sees("third")
    person.says("", "You said: first")
    assert _asked(service)[-1] == "first\n\nthird"
    assert len(service.received) == 2


def test_keys_that_are_typed_early_are_shown_once(home: Path, service: ScriptedServer) -> None:
    """This is true before the program runs, before the prompt appears, and while the model answers."""
    with Person(home, early="Zebra") as person:
        person.sees("A new conversation")
        person.sees("> Zebra")
        person.types(" one")
        person.sees("You said: Zebra one.")
        person.is_asked()
        person.types("Tell me a story")
        person.sees("and then")
        person.presses("Walrus")
        person.presses(CTRL_C)
        person.sees("Interrupted.")
        person.sees("> Walrus")
        assert "".join(person.lines).count("Walrus") == 1
        assert sum("Zebra" in line for line in person.lines) == 2


def test_markdown_is_rendered_and_wrapped_at_forty_columns(home: Path, service: ScriptedServer) -> None:
    """No word is broken, marks become styles, and no line breaks are added to a line of code."""
    with Person(home, columns=40) as person:
        person.is_asked()
        person.says("markdown please", "context")
        shown, raw, sent = "\n".join(person.lines).replace("\x00", ""), person.raw, person.screen
    assert "\x1b[1mbold words\x1b[0m" in raw and "**" not in shown and "# Steps" not in shown
    paragraph = "Use bold words and code here, so that\nthe paragraph is long enough to be\nwrapped at forty columns."
    assert paragraph in shown
    assert " • the first item of the list is long\n   enough to be wrapped as well\n • the second one" in shown
    assert 'print("a line of code that is longer than forty columns and stays as it is")' in sent
    assert "|---" not in shown and "喜欢" in shown
    assert shown.count("Use bold words") == 1, "a block that is drawn again replaces the one before"


def test_an_answer_longer_than_the_screen_is_whole(home: Path, service: ScriptedServer) -> None:
    """The part that is still being written shows its end, and what is complete scrolls away."""
    with Person(home, columns=20) as person:
        person.is_asked()
        person.says("Tell me a story", "end.", "context")
        assert " ".join(person.lines).count("and then") + " ".join(person.lines).count("and  then") >= 150
        assert sum("Once upon" in line for line in person.lines) == 1


@pytest.mark.parametrize(("arguments", "env"), [(["--plain"], {}), ([], {"NO_COLOR": "1"})])
def test_plain_answers_keep_their_marks(
    home: Path, service: ScriptedServer, arguments: list[str], env: dict[str, str]
) -> None:
    """This is so with --plain and NO_COLOR."""
    with Person(home, *arguments, env=env, columns=40) as person:
        person.is_asked()
        person.says("markdown please", "迁移工作")
        lines, raw = person.lines, person.raw
    assert "# Steps" in lines and "|------|------:|" in lines and "**bold words**" in raw
    assert "\x1b[1m" not in raw.partition("# Steps")[2].partition("迁移工作")[0]


def test_a_pipe_gets_the_text_of_the_model(home: Path, service: ScriptedServer) -> None:
    """Nothing is rendered or wrapped."""
    words = [*PROGRAM, "--home", str(home), "chat", "--query", "markdown please"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == MARKDOWN


def test_a_message_that_could_not_be_sent_is_put_back_into_the_input_line(home: Path, service: ScriptedServer) -> None:
    """Another program is in a turn of the same conversation; nothing was recorded, and nothing is lost."""
    with Person(home, env={"MEMORANDA_SESSIONS_TURN_WAIT": "0.2"}) as person, open_memory(home) as memory:
        person.is_asked()
        person.says("Hello", "You said: Hello.")
        (row,) = memory.sessions.list_sessions_rich(limit=1)
        with memory.session(session_id=row["id"]).turn("From elsewhere") as turn:
            person.types("Are you free?")
            person.sees("is in progress")
            person.sees("> Are you free?")
            turn.done("Yes.")
        person.says("", "You said: Are you free?")
        said = [message["content"] for message in memory.sessions.get_messages(row["id"])]
    assert said[2:] == ["From elsewhere", "Yes.", "Are you free?", "You said: Are you free?."]
