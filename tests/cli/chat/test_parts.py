"""The parts of the chat that need no terminal: status, commands, history and log; the guide describes each."""

import json
import logging
import re
from io import StringIO
from pathlib import Path

import pytest

from memoranda.agent.events import ContextCompressed, ModelAnswered, PartialAnswerKept, ToolCalled, ToolReturned
from memoranda.agent.session_views import Compression
from memoranda.cli.chat.commands import COMMANDS, is_command
from memoranda.cli.chat.input import InputHistory, JsonInput, PipeInput
from memoranda.cli.chat.output import ChatStatus, JsonOutput, PipeOutput, format_tokens
from memoranda.cli.chat.terminal_output import TerminalOutput
from memoranda.cli.log_file import log_to_file
from memoranda.models.model import ToolCall, Usage
from memoranda.safety.redaction import Redactor
from tests.cases import cases

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "chat.md"
STATUS = ChatStatus("s1", "Build", "any-1", 12_345, False, 200_000, 1_000, 870)
CALL = ToolCall("c1", "memory", '{"action": "add", "content": "Ana\\nuses tabs."}')


def test_every_command_and_event_is_in_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    """A new one must be documented."""
    guide = GUIDE.read_text()
    assert [name for name in COMMANDS if not re.search(rf"`{name}[ `]", guide)] == []
    output = JsonOutput()
    output.show_session(STATUS, "Begun.")
    output.show_text("Hi")
    for event in (
        ModelAnswered(Usage()),
        ToolCalled(CALL),
        ToolReturned(CALL, {}),
        ContextCompressed(Compression(done=True, why="")),
        PartialAnswerKept("Once upon"),
    ):
        output.show_event(event)
    output.show_answer("Hi", STATUS)
    output.show_interrupted()
    output.show_note("So.", {})
    output.show_remark("review", "Saved.", {})
    output.show_remark("notice", "Left out.", {})
    output.show_error("No.", "usage")
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert len(set(events)) == 13
    assert [name for name in events if f"| `{name}` |" not in guide] == []


@cases(
    ("number", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (12_345, "12.3k"),
        (200_000, "200k"),
        (1_047_576, "1.05M"),
        (2_000_000, "2M"),
    ],
)
def test_token_counts_are_short(number: int, words: str) -> None:
    """They have no insignificant zeros."""
    assert format_tokens(number) == words


def test_the_status_line_says_how_full_the_context_is_and_what_the_cache_gave() -> None:
    """It shows numbers and percentages."""
    assert STATUS.line() == "context 12.3k of 200k tokens (6 %) · 87 % from cache · any-1 · Build"


@cases(
    ("line", "meant"),
    [("/help", True), ("/search a b", True), ("/foo", True), ("/etc/hosts", False), (" /help", False), ("a /b", False),
     ("/", False), ("//", False), ("/Users", False)],
)  # fmt: skip
def test_a_line_that_begins_with_a_command_is_a_command(line: str, meant: bool) -> None:
    """Paths, and lines that begin with a space, go to the model."""
    assert is_command(line) is meant


def test_history_keeps_lines_but_neither_secrets_nor_pastes(tmp_path: Path) -> None:
    """Only its owner can read the file, which is created with the first line."""
    path = tmp_path / "home" / "chat_history"
    history = InputHistory(path, Redactor(["hunter2hunter2"]))
    history.add("   ")
    assert not path.exists()
    history.add("the password is hunter2hunter2")
    history.add("two\nlines")
    assert path.read_text() == "the password is [redacted:known_value]\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_goes_to_a_file_and_not_to_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is created with its first line, readable only by its owner; afterwards logging is as before."""
    path = tmp_path / "home" / "logs" / "chat.log"
    logger = logging.getLogger("memoranda")
    before = (list(logger.handlers), logger.level, logger.propagate)
    with log_to_file(path):
        assert not path.exists()
        logging.getLogger("memoranda.somewhere").warning("A %s thing.", "strange")
    assert "WARNING memoranda.somewhere: A strange thing." in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr() == ("", "")
    assert (list(logger.handlers), logger.level, logger.propagate) == before


def test_a_log_that_is_full_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old lines move to a second and a third file; the current file stays private."""
    monkeypatch.setattr("memoranda.cli.log_file._MAX_BYTES", 200)
    path = tmp_path / "logs" / "chat.log"
    with log_to_file(path):
        for number in range(20):
            logging.getLogger("memoranda").info("line %d", number)
    assert sorted(each.name for each in path.parent.iterdir()) == ["chat.log", "chat.log.1", "chat.log.2"]
    assert "line 19" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_pipe_gets_the_answer_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are replaced, line breaks and tabs stay; each answer ends its line."""
    output = PipeOutput()
    output.show_session(STATUS, "Begun.")
    output.show_waiting()
    output.show_text("One\n\ttwo\x1b[31m")
    output.show_event(ToolCalled(CALL))
    output.show_event(ToolReturned(CALL, {"success": True}))
    output.show_text("three")
    output.show_answer("", STATUS)
    output.show_error("Sorry.", "x")
    assert capsys.readouterr() == ("One\n\ttwo\ufffd[31m\nthree\n", "Sorry.\n")
    with pytest.raises(SystemExit) as left:
        output.show_interrupted()
    assert left.value.code == 130


def test_a_terminal_shows_the_arguments_and_results_of_tools(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes one line, whatever it contains."""
    monkeypatch.setenv("COLUMNS", "200")
    output = TerminalOutput()
    output.show_event(ToolCalled(CALL))
    output.show_event(ToolReturned(CALL, {"success": True, "message": "Saved\nin MEMORY.md."}))
    output.show_event(ToolCalled(ToolCall("c2", "weather", "{broken")))
    output.show_event(
        ToolCalled(ToolCall("c3", "weather", '{"places": [{"name": "Oslo"}, {"name": "Rome", "days": 3}]}'))
    )
    output.show_event(ToolReturned(CALL, {"success": False, "error": "No such place."}))
    output.show_event(ToolReturned(CALL, {"success": True, "results": [1, 2]}))
    output.show_event(
        ContextCompressed(Compression(done=True, why="", how="model", tokens_before=90_000, tokens_after=8_000))
    )
    shown = capsys.readouterr().out.replace("…\r", "").splitlines()
    assert shown == [
        "  · memory: add · Ana uses tabs.",
        "    → Saved in MEMORY.md.",
        "  · weather: {broken",
        "  · weather: Oslo · Rome · 3",
        "    ✗ No such place.",
        "    → 2 found",
        "  · The earlier part of the conversation was summarised, from 90k to 8k tokens; "
        "/search still finds all of it.",
    ]


def test_lines_are_read_as_they_are_or_as_json() -> None:
    """Only an object with a text is unpacked; the end of the input ends the chat."""
    lines = 'Hello\n{"text": "a\\nb"}\n{"text": 3}\n[1]\n'
    plain, as_json = PipeInput(StringIO(lines)), JsonInput(StringIO(lines))
    assert [plain.read() for _ in range(5)] == ["Hello", '{"text": "a\\nb"}', '{"text": 3}', "[1]", None]
    assert [as_json.read() for _ in range(5)] == ["Hello", "a\nb", '{"text": 3}', "[1]", None]
