"""`memoranda setup`: what is on the machine is shown, imported and given memory, as far as the user selects it."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.cli.setup import find_topic
from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import import_lock
from tests.cli.terminal import Terminal
from tests.conftest import tree
from tests.importers import codex_rollouts
from tests.importers.claude_code_lines import PRESENT, SESSION
from tests.importers.import_home import write_lines
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_PROGRAM = [sys.executable, "-m", "memoranda"]
_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "GEMINI_CLI_HOME", "HERMES_HOME")


@pytest.fixture(autouse=True)
def _default_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home directory of a person who has used Claude Code and Codex."""
    home = tmp_path / "user"
    write_lines(home / ".claude" / "projects" / "-home-ann-shop" / f"{SESSION}.jsonl", PRESENT)
    codex_rollouts.write(home / ".codex", codex_rollouts.PRESENT)
    return home


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_without_a_terminal_and_a_yes_it_only_shows(user: Path, terminal: Terminal) -> None:
    """Both programs are listed with what would be done, and no file changes."""
    before = tree(user)
    for run, options in ((terminal.refused, []), (terminal.ok, ["--dry-run"]), (terminal.ok, ["--dry-run", "--yes"])):
        shown = run("setup", *options)
        assert "1. Claude Code  import 1 file, " in shown
        assert "2. Codex        import 1 file, " in shown
        assert shown.count("; install memory") == 2
        assert "Nothing was changed" in shown
    answer = json.loads(terminal.refused("setup", "--json"))
    assert (answer["success"], answer["applied"]) == (False, False) and answer["error"].startswith("Nothing was")
    assert tree(user) == before
    assert not terminal.home.exists()


def test_with_yes_it_imports_installs_and_ends_with_a_search(user: Path, terminal: Terminal) -> None:
    """The search is over the user's own words, and finds the conversation they come from."""
    shown = terminal.ok("setup", "--yes")
    assert "Installed memory into Claude Code" in shown
    assert "Installed memory into Codex" in shown
    assert "memoranda" in (user / ".claude.json").read_text()
    assert "memoranda" in (user / ".codex" / "config.toml").read_text()
    _, _, search = shown.partition("A search over your own history: memoranda search ")
    assert "checkout" in search.lower()
    assert "   resume: " in search
    with SessionDB(terminal.home / "state.db") as db:
        assert {row["source"] for row in db.list_sessions_rich()} == {"claude-code", "codex"}


def test_a_second_setup_changes_nothing(user: Path, terminal: Terminal) -> None:
    """Nothing is imported or written twice, and the search is shown again."""
    terminal.ok("setup", "--yes")
    before = tree(user)
    again = terminal.json("setup", "--yes")
    assert again["installed"] == []
    assert [source["messages"] for source in again["imported"]["sources"]] == [0, 0]
    assert again["search"]["results"]
    assert [program["memory"] for program in again["found"]] == ["installed", "installed"]
    assert tree(user) == before


@pytest.mark.parametrize(("provider", "replaced"), [("''", True), ("honcho", False)])
def test_another_memory_that_a_host_uses_is_replaced_only_by_name(
    user: Path, terminal: Terminal, provider: str, replaced: bool
) -> None:
    """Hermes without an external memory gets ours; one that has another is left alone."""
    config = user / ".hermes" / "config.yaml"
    config.parent.mkdir()
    config.write_text(f"memory:\n  provider: {provider}\n")
    terminal.ok("setup", "--yes")
    assert ("memoranda" in config.read_text()) == replaced
    terminal.ok("setup", "--yes", "--only", "hermes")
    assert "memoranda" in config.read_text()


def test_only_what_is_named_is_done(user: Path, terminal: Terminal) -> None:
    """`--only` keeps to one program; `--no-install` and `--no-import` omit a part."""
    done = terminal.json("setup", "--yes", "--only", "codex", "--no-install")
    assert [source["source"] for source in done["imported"]["sources"]] == ["codex"]
    assert done["installed"] == []
    done = terminal.json("setup", "--yes", "--only", "codex", "--no-import")
    assert "imported" not in done
    assert [item["host"] for item in done["installed"]] == ["codex"]
    assert not (user / ".claude.json").exists()


def test_without_programs_setup_lists_what_it_looked_for(terminal: Terminal) -> None:
    """With the names of the programs and the paths of their settings."""
    shown = terminal.ok("setup", "--yes")
    assert "No agent was found on this machine." in shown
    assert "Claude Code, Codex, Cursor" in shown
    assert os.path.join(".codex", "config.toml") in shown
    assert "This machine has no codex." in terminal.ok("setup", "--only", "codex")
    assert terminal.json("setup", "--yes")["found"] == []
    assert not terminal.home.exists()


def test_settings_that_cannot_be_changed_are_reported_and_the_rest_is_done(user: Path, terminal: Terminal) -> None:
    """They stay as they are and make the command fail, and the other program still gets memory."""
    (user / ".claude").joinpath("settings.json").write_text("{ not json")
    assert "cannot install: " in terminal.ok("setup", "--dry-run")
    result = terminal.run("setup", "--yes")
    assert result.exit_code == 1
    assert "Installed memory into Codex" in result.stdout
    assert "Memory was not installed into Claude Code: " in result.stderr
    assert (user / ".claude" / "settings.json").read_text() == "{ not json"
    again = json.loads(terminal.run("setup", "--yes", "--only", "claude-code", "--json").stdout)
    assert again["success"] is False
    assert [item["host"] for item in again["installed"] if "error" in item] == ["claude-code"]


@pytest.mark.parametrize(("typed", "sources"), [("2\n", {"codex"}), ("nine\n1, 2\n", {"claude-code", "codex"})])
def test_a_person_selects_by_number(user: Path, terminal: Terminal, typed: str, sources: set[str]) -> None:
    """An answer that is not a number of the list is asked again."""
    shown = _at_terminal(terminal.home, typed)
    assert "Which of them?" in shown
    assert "A search over your own history" in shown
    with SessionDB(terminal.home / "state.db") as db:
        assert {row["source"] for row in db.list_sessions_rich()} == sources


def test_a_person_who_wants_none_of_it_changes_nothing(user: Path, terminal: Terminal) -> None:
    """Neither the other programs nor the home."""
    before = tree(user)
    assert "No conversation to search yet" in _at_terminal(terminal.home, "none\n")
    assert tree(user) == before
    assert not terminal.home.exists()


def _at_terminal(home: Path, typed: str) -> str:
    """What a person sees who types that."""
    ours, theirs = pty.openpty()
    words = [*_PROGRAM, "setup", "--home", str(home)]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        # The other side of the terminal is closed.
        pass
    os.close(ours)
    assert process.wait(timeout=GIVE_UP) == 0
    return shown.decode()


def test_an_interrupted_setup_can_be_continued(user: Path, terminal: Terminal) -> None:
    """Ctrl-C ends it with a sentence instead of a traceback, and the next one does the rest."""
    with import_lock(terminal.home, 0.0):
        process = subprocess.Popen(
            [*_PROGRAM, "setup", "--home", str(terminal.home), "--yes"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Waiting up to ")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=GIVE_UP)
    assert process.returncode == 130
    assert "Stopped." in errors
    assert "Traceback" not in errors
    assert json.loads(terminal.run("setup", "--yes", "--json").stdout)["search"]["results"]


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("Fix the flaky upload test", "Fix the flaky upload test"),
        ("<command-name>/clear</command-name>", ""),
        ("/compact now", ""),
        ("Use this AND that", "Use this and that"),
        ("数据库什么时候迁移？", "数据库什么时候迁移"),
        ("hi", ""),
        ("", ""),
    ],
)
def test_a_topic_is_made_of_the_words_of_a_conversation(text: str, topic: str) -> None:
    """Markup, commands and single short words are not a topic; operators of the query become words."""
    assert find_topic(text) == topic
