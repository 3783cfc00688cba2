"""`memoranda completion`: a shell completes commands, options, hosts, sessions and providers."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.home.session_db import SessionDB
from tests.cli.terminal import Terminal
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

# Sets what bash sets when Tab is pressed, calls the function of the script, and prints what it offers.
_PRESS_TAB = """
source <(memoranda completion bash)
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_memoranda_completion memoranda
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    with SessionDB(root / "state.db") as db:
        db.create_session("20261101-fix", source="cli")
        db.append_message("20261101-fix", "user", "Why does the upload fail?")
        db.set_session_title("20261101-fix", "Flaky upload")
        db.create_session("20261102-other", source="cli")
    return root


def _press_tab(home: Path, tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir(exist_ok=True)
    program = bin_directory / "memoranda"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m memoranda "$@"\n')
    program.chmod(0o755)
    script = _PRESS_TAB.format(words=" ".join(map(shlex.quote, ("memoranda", *words))))
    result = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=GIVE_UP, check=True,
        env={**os.environ, "PATH": f"{bin_directory}:{os.environ['PATH']}", "MEMORANDA_HOME": str(home)},
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    return result.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["se"], ["setup", "search", "sessions", "semantic", "secret", "server"]),
        (["sessions", "sh"], ["show"]),
        (["install", "co"], ["codex"]),
        (["sessions", "show", "20261101"], ["20261101-fix"]),
        (["sessions", "show", "flaky"], ["20261101-fix"]),
        (["provider", "use", "holo"], ["holographic"]),
        (["search", "x", "--sor"], ["--sort"]),
        (["search", "x", "--sort", "new"], ["newest"]),
        (["config", "get", "memory.write"], ["memory.write_approval"]),
        (["import", "claude-c"], ["claude-code"]),
    ],
)
def test_bash_completes_by_the_script(home: Path, tmp_path: Path, words: list[str], offered: list[str]) -> None:
    """Commands, hosts, sessions by id or title, providers, options, their values and settings."""
    assert _press_tab(home, tmp_path, *words) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_is_silent_about_a_home_that_cannot_be_read(tmp_path: Path) -> None:
    """Tab in the middle of a command shows no error and creates nothing."""
    root = tmp_path / "broken"
    root.mkdir()
    (root / "state.db").write_text("not a database, but long enough to look like some other file" * 20)
    assert _press_tab(root, tmp_path, "sessions", "show", "2") == []
    assert _press_tab(tmp_path / "none", tmp_path, "sessions", "show", "2") == []
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(tmp_path: Path, shell: str) -> None:
    """The script calls the program under its name, and names no file of this machine."""
    script = Terminal(tmp_path / "home").ok("completion", shell)
    assert "_MEMORANDA_COMPLETE" in script
    assert str(Path(sys.prefix)) not in script


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["serach", "x"], "Did you mean 'search'?"),
        (["sessions", "lst"], "Did you mean 'list'?"),
        (["import", "cluade-code"], "Did you mean 'claude-code'?"),
        (["search", "x", "--sort", "newset"], "Did you mean 'newest'?"),
        (["search", "x", "--snce", "3d"], "--since"),
        (["undo"], "Did you mean 'memoranda memory undo'?"),
        (["memory", "rm", "1"], "Did you mean 'memoranda memory remove'?"),
        (["install", "cursr"], "Did you mean 'cursor'?"),
        (["provider", "use", "holografic"], "Did you mean 'holographic'?"),
        (["config", "set", "memory.write_aproval", "off"], "Did you mean 'memory.write_approval'"),
        (["config", "get", "memory.provder"], "Did you mean 'memory.provider'"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(tmp_path: Path, words: list[str], suggestion: str) -> None:
    """Commands, options, values, hosts, providers and settings; the exit code is not 0."""
    result = Terminal(tmp_path / "home").run(*words)
    assert result.exit_code != 0
    assert suggestion in result.stderr
    assert suggestion in Terminal(tmp_path / "home").run("--json", *words).stdout


def test_a_word_like_no_name_gets_none(tmp_path: Path) -> None:
    """A wrong guess is worse than none."""
    assert "Did you mean" not in Terminal(tmp_path / "home").run("xyzzy").stderr


def test_unknown_names_in_the_settings_are_reported_by_every_command(tmp_path: Path) -> None:
    """A misspelt section or key has no effect and is reported; sections of other programs are not."""
    terminal = Terminal(tmp_path / "home")
    terminal.home.mkdir(mode=0o700)
    terminal.home.joinpath("config.yaml").write_text("memori: {a: 1}\nmemory: {provder: x}\nterminal: {b: 2}\n")
    for words in (["memory", "list"], ["sessions", "list"], ["config", "list"], ["doctor"]):
        result = terminal.run(*words)
        shown = result.output
        assert "memori is not a setting and has no effect. Did you mean 'memory'?" in shown
        assert "memory.provder is not a setting and has no effect. Did you mean 'memory.provider'" in shown
        assert "terminal is not" not in shown


def test_invalid_yaml_is_reported_with_its_file(tmp_path: Path) -> None:
    """The error names config.yaml and the line, and `config set` says which values a setting accepts."""
    terminal = Terminal(tmp_path / "home")
    terminal.home.mkdir(mode=0o700)
    refused = terminal.run("config", "set", "memory.write_approval", "maybe")
    assert refused.exit_code == 2
    assert "must be off, propose or explicit-only, not 'maybe'. Nothing was changed." in refused.stderr
    terminal.home.joinpath("config.yaml").write_text("memory: {a: [\n")
    broken = terminal.run("memory", "list").stderr
    assert "<unicode string>" not in broken
    assert "config.yaml is not valid YAML: line 2" in broken
