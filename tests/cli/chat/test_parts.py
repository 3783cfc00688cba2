"""The parts of the chat that need no terminal: commands, history and log; the guide describes each."""

import logging
import re
from pathlib import Path

import pytest

from memoranda.agent.events import ContextCompressed, ToolCalled, ToolReturned
from memoranda.agent.session_views import Compression
from memoranda.cli.chat.commands import COMMANDS
from memoranda.cli.chat.output import PipeOutput
from memoranda.cli.chat.terminal import TerminalOutput, _PrivateHistory
from memoranda.cli.log_file import log_to_file
from memoranda.models.model import ToolCall
from memoranda.safety.redaction import Redactor

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "chat.md"
CALL = ToolCall("c1", "memory", '{"action": "add", "content": "Ana\\nuses tabs."}')


def test_every_command_is_in_the_guide() -> None:
    """A new one must be documented."""
    guide = GUIDE.read_text()
    assert [name for name in COMMANDS if not re.search(rf"`{name}[ `]", guide)] == []


def test_history_keeps_lines_but_neither_secrets_nor_pastes(tmp_path: Path) -> None:
    """Only its owner can read the file, which is created with the first line."""
    path = tmp_path / "home" / "chat_history"
    history = _PrivateHistory(path, Redactor(["hunter2hunter2"]))
    assert list(history.load_history_strings()) == [] and not path.exists()
    history.store_string("the password is hunter2hunter2")
    history.store_string("two\nlines")
    assert path.read_text() == "the password is [redacted:known_value]\n"
    assert path.stat().st_mode & 0o777 == 0o600
    history.store_string("the latest")
    assert list(history.load_history_strings()) == ["the latest", "the password is [redacted:known_value]"]


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
    output.show("session", "Begun.")
    output.wait()
    output.write("One\n\ttwo\x1b[31m")
    output.show_event(ToolCalled(CALL))
    output.show_event(ToolReturned(CALL, {"success": True}))
    output.write("three")
    output.show("status", "context 3 %")
    output.show("error", "Sorry\x1b[31m.")
    assert capsys.readouterr() == ("One\n\ttwo\ufffd[31m\nthree\n", "Sorry\ufffd[31m.\n")
    with pytest.raises(SystemExit) as left:
        output.show("interrupted", "Interrupted.")
    assert left.value.code == 130


def test_a_terminal_shows_the_arguments_and_results_of_tools(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes one line, whatever it contains."""
    monkeypatch.setenv("COLUMNS", "200")
    output = TerminalOutput(plain=True)
    for event in (
        ToolCalled(CALL),
        ToolReturned(CALL, {"success": True, "message": "Saved\nin MEMORY.md."}),
        ToolCalled(ToolCall("c2", "weather", '{"at":\n"\x1b[31mOslo"}')),
        ToolReturned(CALL, {"success": False, "error": "No such place."}),
        ContextCompressed(Compression(done=True, why="", how="model", tokens_before=90_000, tokens_after=8_000)),
    ):
        output.show_event(event)
    shown = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip(" …")]
    assert shown == [
        '  · memory {"action": "add", "content": "Ana\\nuses tabs."}',
        "    → Saved in MEMORY.md.",
        '  · weather {"at": "\ufffd[31mOslo"}',
        "    ✗ No such place.",
        "  · The earlier part of the conversation was shortened; /search still finds all of it.",
    ]
