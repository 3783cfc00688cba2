"""Without a terminal the chat reads lines and writes answers, or every event as JSON."""

import json
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memoranda.api.memory import open_memory
from memoranda.testing.scripted.server import ScriptedServer
from tests.cli.chat.person import PROGRAM
from tests.timing import GIVE_UP
from tests.warm_program import run_program

pytestmark = pytest.mark.slow


def _run(home: Path, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    return run_program(["--home", str(home), "chat", *arguments], said)


def _events(home: Path, *arguments: str, said: str = "") -> list[dict[str, Any]]:
    return [json.loads(line) for line in _run(home, "--json", *arguments, said=said).stdout.splitlines()]


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
    assert "The curator proposes 1 change to memory: 'memoranda curate' shows them" in json.dumps(
        _events(home, said="Hello\n")
    )


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
    (event,) = _events(home, said="Hello\n")
    assert event["event"] == "error" and "memoranda demo" in event["error"]
    assert not home.exists()


def test_every_event_is_a_line_of_json(home: Path, service: ScriptedServer) -> None:
    """The events are in order, and the pieces of text make up the answer."""
    events = _events(home, said="Hello\nPlease remember tabs\n/memory\n")
    kinds = [each["event"] for each in events if each["event"] != "text"]
    assert kinds == ["session", "usage", "answer", "usage", "tool_call", "tool_result", "usage", "answer", "note"]
    first = [each["event"] for each in events].index("answer")
    assert "".join(each["text"] for each in events[:first] if each["event"] == "text") == events[first]["text"]
    answer = events[first]
    assert answer["text"] == "You said: Hello."
    assert 0 < answer["context_tokens"] < answer["window"]
    assert answer["session_id"] == events[0]["session_id"]
    assert events[-1]["memory"]["memory"] == ["Ana uses tabs."]


def test_a_message_of_several_lines_is_sent_as_json(home: Path, service: ScriptedServer) -> None:
    """It is an object with a text; other lines are sent unchanged."""
    _events(home, said='{"text": "One\\nTwo"}\n{"not": "it"}\n')
    assert _said(service) == ["One\nTwo", "You said: One\nTwo.", '{"not": "it"}']


def test_an_interrupt_ends_the_answer_but_not_a_chat_with_json(home: Path, service: ScriptedServer) -> None:
    """With --json the next line is answered; without it, the chat ends as a shell expects."""
    words = [*PROGRAM, "--home", str(home), "chat"]
    for as_json in (True, False):
        with subprocess.Popen(
            [*words, *(["--json"] if as_json else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("Tell me a story\n")
            process.stdin.flush()
            seen = ""
            while "Once" not in seen:
                piece = process.stdout.readline() if as_json else process.stdout.read(1)
                assert piece, f"The chat has ended after {seen!r}."
                seen += piece
            process.send_signal(signal.SIGINT)
            process.stdin.write("Hello\n")
            process.stdin.close()
            rest = process.stdout.read()
        if as_json:
            kinds = [json.loads(line)["event"] for line in rest.splitlines()]
            assert "interrupted" in kinds and kinds[-1] == "answer"
        else:
            assert process.returncode == 130


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


def test_interrupts_lose_no_message_and_do_not_end_the_chat(home: Path, service: ScriptedServer) -> None:
    """Every line is answered or interrupted; every answered one is in the record with its answer, all in order."""
    chance = random.Random(5)
    said = [f"Please remember tabs {number}" if number % 3 else f"Hello {number}" for number in range(40)]
    ends: list[str] = []
    with subprocess.Popen(
        [*PROGRAM, "--home", str(home), "chat", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        longest = 0.0
        for text in said:
            process.stdin.write(text + "\n")
            process.stdin.flush()
            started = time.monotonic()
            # The first lines show how long an answer takes here; the others are interrupted before or after that.
            alarm = threading.Timer(chance.random() * 1.5 * longest, process.send_signal, [signal.SIGINT])
            if len(ends) >= 3:
                alarm.start()
            while True:
                event = json.loads(process.stdout.readline())
                assert event["event"] != "error", event
                if event["event"] in ("answer", "interrupted"):
                    ends.append(event["event"])
                    break
            # One that comes when the answer is there does nothing.
            alarm.cancel()
            if len(ends) > 3:
                alarm.join()
            else:
                longest = max(longest, time.monotonic() - started)
        process.stdin.close()
    assert {"answer", "interrupted"} == set(ends)
    with open_memory(home) as memory:
        (session,) = memory.sessions.list_sessions_rich()
        recorded = memory.sessions.get_messages(session["id"])
    heard = [each["content"] for each in recorded if each["role"] == "user"]
    assert heard == [text for text in said if text in heard]
    answered = [text for text, end in zip(said, ends, strict=True) if end == "answer"]
    assert set(answered) <= set(heard)
    finished = [each for each in recorded if each["role"] == "assistant" and not each["tool_calls"]]
    assert len(finished) >= len(answered)


def test_undo_without_a_person_says_what_stays_and_how_to_revert_it(home: Path, service: ScriptedServer) -> None:
    """Nothing is asked; the entry stays until the command is run."""
    said = "Please remember tabs\n/undo\n"
    (note,) = [event for event in _events(home, said=said) if event["event"] == "note"]
    (saved,) = note["saved"]
    assert saved["text"] == "MEMORY.md: + Ana uses tabs."
    assert saved["revert"] == f"memoranda memory undo {saved['number']}"
    with open_memory(home) as memory:
        assert memory.entries("memory") == ("Ana uses tabs.",)
    words = [*PROGRAM, "--home", str(home), *saved["revert"].split()[1:]]
    subprocess.run(words, check=True, capture_output=True)
    with open_memory(home) as memory:
        assert memory.entries("memory") == ()
