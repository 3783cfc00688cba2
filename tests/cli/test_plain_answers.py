"""What people read in a terminal: candidates, exit codes, colours, and words instead of a tool's arguments."""

from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow

_DEMO = str(Path(__file__).parents[2] / "src" / "memoranda" / "cli" / "demo.jsonl")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_the_beginning_of_several_ids_lists_them(terminal: Terminal) -> None:
    """With their titles, ten at most, and an exit code that is not 0; an unknown id lists none."""
    with SessionDB(terminal.home / "state.db") as db:
        for number in range(12):
            db.create_session(f"2026_{number:02}", source="cli")
        db.set_session_title("2026_11", "Flaky upload")
    result = terminal.run("sessions", "show", "2026")
    assert result.exit_code == 1
    assert "More than one session has an id that begins with '2026'." in result.stderr
    assert "  2026_11  Flaky upload\n" in result.stderr
    assert result.stderr.count("\n  2026_") == 10
    assert "and more" in result.stderr
    # An underscore is a character here, not a wildcard.
    assert "No session has the id or title '2026__'" in terminal.run("sessions", "show", "2026__").stderr
    assert "  2026_10\n" in terminal.run("chat", "--resume", "2026_1", "--query", "x").output


def test_a_change_that_does_not_exist_is_an_error(terminal: Terminal) -> None:
    """It is named, and so are those that exist; `memory diff` does not claim that there is no difference since then."""
    for known in ("There is no change 99: nothing was changed yet.", "; there is 1. ", "; there are 1 to 2. "):
        for word in ("diff", "undo"):
            result = terminal.run("memory", word, "99")
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith("There is no change 99") and known in result.stderr
        terminal.ok("remember", f"CI runs on Debian {len(known)}.")
    assert terminal.run("memory", "diff", "1").exit_code == 0


@pytest.mark.parametrize("options", [[], ["--yes"]])
def test_a_file_without_a_readable_line_is_an_error(terminal: Terminal, tmp_path: Path, options: list[str]) -> None:
    """Whether it is only looked at or imported."""
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\n")
    result = terminal.run("import", "jsonl", "--source", str(file), *options)
    assert result.exit_code == 1
    assert "could not be read" in result.output


def test_refusals_name_commands_instead_of_the_arguments_of_a_tool(terminal: Terminal) -> None:
    """No match, several matches, too long, and an unknown role."""
    terminal.ok("remember", "CI runs on Debian 12.")
    terminal.ok("remember", "CI is fast.")
    missing = terminal.run("memory", "remove", "nope").stderr
    several = terminal.run("memory", "remove", "CI").stderr
    too_long = terminal.run("remember", "long " * 1_000).stderr
    role = terminal.run("search", "x", "--role", "robot")
    assert "No entry of MEMORY.md contains that text." in missing
    assert "2 different entries of MEMORY.md contain that text." in several
    assert "- CI is fast." in several
    assert "memory.memory_char_limit" in too_long
    assert role.exit_code == 2
    for text in (missing, several, too_long, role.stderr):
        assert not any(word in text for word in ("old_text", "role_filter", "Operation", "operations"))


def test_chinese_words_are_shown_whole(terminal: Terminal) -> None:
    """They are searched in pairs of characters, which means nothing to a reader."""
    terminal.ok("import", "jsonl", "--source", _DEMO, "--yes")
    assert "(some words: 数据库, 什么, 迁移)" in terminal.ok("search", "数据库什么时候迁移？")


def test_exported_sessions_are_imported_under_either_name(terminal: Terminal, tmp_path: Path) -> None:
    """`import jsonl` first shows what it would do, as every import does; `sessions import` works as before."""
    shown = terminal.refused("import", "jsonl", "--source", _DEMO)
    assert "8 sessions with 23 messages" in shown
    assert "Nothing was written" in shown
    assert not terminal.home.exists()
    done = terminal.ok("import", "jsonl", "--source", _DEMO, "--yes")
    assert done == Terminal(tmp_path / "other").ok("sessions", "import", _DEMO)


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_colours_follow_the_environment(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    """FORCE_COLOR colours a pipe, NO_COLOR wins over it, and matches keep their marks without colour."""
    terminal.ok("sessions", "import", _DEMO)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = terminal.ok("search", "deadlock", "--limit", "1")
    assert ("\x1b[" in shown) is coloured
    assert (">>>" in shown) is not coloured


def test_other_names_of_an_action_say_the_main_one(terminal: Terminal) -> None:
    """They still work; their help names the command that the documentation uses."""
    assert "'memoranda remember'" in terminal.ok("memory", "add", "--help")
    assert "'memoranda search'" in terminal.ok("recall", "--help")
    assert "'memoranda import jsonl" in terminal.ok("sessions", "import", "--help")


@pytest.mark.parametrize("command", ["search", "recall"])
@pytest.mark.parametrize("query", ["", " ", '"', "???"])
def test_a_query_without_words_is_an_error(terminal: Terminal, command: str, query: str) -> None:
    """Whether it is empty or has only signs."""
    result = terminal.run(command, query)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("That has no word to look for.")


def test_an_error_of_the_system_names_what_was_wanted(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path and what is wrong with it, without the number of the error or the name of a temporary file."""
    terminal.ok("remember", "CI runs on Debian 12.")
    backup = terminal.run("backup", str(tmp_path / ("x" * 250 + ".zip")))
    assert backup.stderr.endswith(".zip cannot be written: File name too long. Name another file.\n")
    missing = str(tmp_path / "nothing")
    result = terminal.run("backup", str(tmp_path / "b.zip"), "--passphrase-file", missing)
    assert result.stderr == f"The passphrase file {missing} cannot be read: No such file or directory.\n"
    monkeypatch.setenv("EDITOR", missing)
    monkeypatch.delenv("VISUAL", raising=False)
    result = terminal.run("memory", "edit")
    assert result.stderr.startswith(f"The editor {missing!r} cannot be started, or failed. Nothing was written")
    for words in (["remember", " "], ["memory", "add", ""]):
        assert terminal.run(*words).stderr == "There is no text to save. Nothing was written.\n"
