"""Without a terminal the chat reads lines and writes answers."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from memoranda.api.memory import open_memory
from memoranda.testing.scripted.server import ScriptedServer
from tests.cli.chat.person import PROGRAM, Person
from tests.cli.warm_program import run_program
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow


def _run(home: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return run_program(["--home", str(home), "chat", *arguments], said)


def _said(service: ScriptedServer) -> list[str]:
    return [str(message["content"]) for message in service.received[-1].conversation[1]]


def test_each_line_is_a_message_and_only_answers_are_printed(home: Path, service: ScriptedServer) -> None:
    """Commands work too; nothing else is on the output."""
    # Here and where a chat is interrupted, the program is started as a shell does it.
    words = [*PROGRAM, "--home", str(home), "chat"]
    said = "Hello\n\n/title Piped\nPlease remember tabs\n"
    done = subprocess.run(words, input=said, capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.stdout.splitlines() == [
        "You said: Hello.",
        "This conversation is now called 'Piped'.",
        "One moment.",
        "It is noted.",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_the_chat_says_that_the_curator_proposes_something(home: Path, service: ScriptedServer) -> None:
    """At its beginning, with the command that shows it."""
    with open_memory(home) as memory:
        memory.remember("The API listens on port 8080.")
        memory.remember("The API listens on port 8080. It answers with JSON.")
    with Person(home) as person:
        person.sees("The curator proposes 1 change to memory: 'memoranda curate' shows them")


def test_one_question_gets_one_answer(home: Path, service: ScriptedServer) -> None:
    """The question comes from the command line, or is everything in a pipe."""
    assert _run(home, "--query", "Hello").stdout == "You said: Hello.\n"
    assert _run(home, "--query", "-", said="One\nTwo\n").stdout == "You said: One\nTwo.\n"
    assert _said(service) == ["One\nTwo"]


def test_a_question_can_continue_a_conversation(home: Path, service: ScriptedServer) -> None:
    """`--resume` with `--query`; no earlier message is printed again."""
    _run(home, said="Hello\n/title Mine\n")
    assert _run(home, "--resume", "Mine", "--query", "Again").stdout == "You said: Again.\n"
    assert _said(service) == ["Hello", "You said: Hello.", "Again"]


def test_a_failure_is_in_the_exit_code(home: Path, service: ScriptedServer) -> None:
    """What went wrong is on standard error; later lines are still answered."""
    done = _run(home, said="Please refuse\nHello\n")
    assert done.returncode == 1
    assert done.stdout == "You said: Hello.\n"
    assert "key" in done.stderr


@pytest.mark.usefixtures("no_key")
def test_without_a_key_it_says_how_to_set_one(home: Path) -> None:
    """It also names the demo command; nothing is asked, and nothing is written."""
    done = _run(home, said="Hello\n")
    assert done.returncode == 2
    assert "memoranda secret set" in done.stderr and "memoranda demo" in done.stderr
    assert not home.exists()


def test_json_is_refused_with_what_a_program_uses(home: Path, service: ScriptedServer) -> None:
    """Nothing is sent."""
    done = _run(home, "--json", "--query", "Hello")
    assert done.returncode == 2 and "memoranda.open().agent(model)" in done.stdout + done.stderr
    assert not service.received


def test_an_interrupt_ends_a_chat_in_a_pipe(home: Path, service: ScriptedServer) -> None:
    """As a shell expects; what was shown is recorded."""
    with subprocess.Popen(
        [*PROGRAM, "--home", str(home), "chat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("Tell me a story\n")
        process.stdin.flush()
        seen = ""
        while "Once upon a time" not in seen:
            piece = process.stdout.read(1)
            assert piece, f"The chat has ended after {seen!r}."
            seen += piece
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 130
    with open_memory(home) as memory:
        (session,) = memory.sessions.list_sessions_rich()
        question, answer = memory.sessions.get_messages(session["id"])
    assert question["content"] == "Tell me a story" and answer["content"].startswith("Once upon a time")


def test_an_unknown_conversation_is_refused(home: Path, service: ScriptedServer) -> None:
    """No new conversation is started instead."""
    assert _run(home, "--resume", "Nothing like it", "--query", "Hi").returncode == 1
    assert not home.exists()
    _run(home, "--query", "Hello")
    done = _run(home, "--resume", "Nothing like it", "--query", "Hi")
    assert done.returncode == 1
    assert "Nothing like it" in done.stderr
    assert len(service.received) == 1
    assert _run(home, "--resume", "--new", "--query", "Hi").returncode == 2


def test_undo_says_what_stays_and_how_to_revert_it(home: Path, service: ScriptedServer) -> None:
    """The entry stays until that command is run."""
    said = _run(home, said="Please remember tabs\n/undo\n").stdout
    reverts = re.search(r"MEMORY.md: \+ Ana uses tabs. \('memoranda (memory undo \d+)' reverts it\)", said)
    assert reverts is not None
    with open_memory(home) as memory:
        assert memory.entries("memory") == ("Ana uses tabs.",)
    subprocess.run([*PROGRAM, "--home", str(home), *reverts[1].split()], check=True, capture_output=True)
    with open_memory(home) as memory:
        assert memory.entries("memory") == ()


def test_commands_of_the_program_are_commands_of_the_chat(home: Path, service: ScriptedServer) -> None:
    """With the memory of the chat's user, and with options."""
    with open_memory(home) as memory:
        memory.remember("The owner likes tea.")
    lines = "The walrus sings\n/memory\n/search walrus --limit 1\n/sessions\n/usage --nonsense\n"
    done = _run(home, "--user", "ana", said=lines)
    assert "The owner likes tea." not in done.stdout and "1 session matches" in done.stdout
    assert "No such option" in done.stderr
