"""doctor, config, secret, demo, and how the command itself behaves."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.__main__ import main
from memoranda.cli.main import command
from tests.cli.terminal import Terminal
from tests.conftest import mode
from tests.docs.reference import command_paths


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path / "home")


def test_the_doctor_fixes_what_is_safe_to_fix(terminal: Terminal) -> None:
    """Exit code 1 while a problem remains, 0 afterwards."""
    terminal.ok("memory", "add", "one")
    path = terminal.home / "memories" / "MEMORY.md"
    path.chmod(0o644)
    sick = terminal.run("doctor")
    assert sick.exit_code == 1
    assert "mode 0644" in sick.output and "chmod 600" in sick.output
    assert "fixed" in terminal.ok("doctor", "--fix")
    assert mode(path) == 0o600
    assert terminal.json("doctor")["healthy"] is True


def test_settings_are_listed_read_changed_and_removed(terminal: Terminal) -> None:
    """Each with its environment variable; a wrong one is refused."""
    assert "MEMORANDA_MEMORY_WRITE_APPROVAL" in terminal.ok("config", "list")
    terminal.ok("config", "set", "memory.memory_char_limit", "3000")
    assert terminal.ok("config", "get", "memory.memory_char_limit") == "3000\n"
    assert terminal.json("config", "get", "memory.memory_enabled") == {"memory.memory_enabled": True}
    assert terminal.ok("config", "unset", "memory.memory_char_limit") == "memory.memory_char_limit = 2200\n"
    assert "is not set in" in terminal.ok("config", "unset", "memory.memory_char_limit")
    assert terminal.run("config", "set", "memory.memory_char_limit", "many").exit_code == 2
    assert terminal.run("config", "get", "nonsense").exit_code == 2


def test_a_secret_is_stored_from_a_pipe_and_never_printed(terminal: Terminal) -> None:
    """Only its name ever appears."""
    outputs = [
        terminal.ok("secret", "set", "API_KEY", input="s3cr3t-value\n"),
        terminal.ok("secret", "list"),
        terminal.ok("secret", "list", "--json"),
        terminal.ok("config", "list"),
        terminal.ok("doctor"),
    ]
    assert not any("s3cr3t" in output for output in outputs)
    assert outputs[1] == "API_KEY\n"
    assert mode(terminal.home / ".env") == 0o600
    terminal.ok("secret", "remove", "API_KEY")
    assert terminal.run("secret", "remove", "API_KEY").exit_code == 1
    assert terminal.run("secret", "set", "API_KEY", input="").exit_code == 1


def test_an_interrupted_command_says_so_in_one_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the exit code that shells use, and as JSON if that is asked for."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memoranda.cli.memory.entries.open_target", interrupt)
    result = terminal.run("remember", "one")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted.\n")
    result = terminal.run("remember", "one", "--json")
    assert (result.exit_code, json.loads(result.stdout)["error"], result.stderr) == (130, "Interrupted.", "")


def test_an_interrupt_while_the_program_is_loaded_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before there is a command that could say it."""

    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["memoranda", "status"])
    monkeypatch.setitem(sys.modules, "memoranda.cli.main", Interrupted())
    monkeypatch.setattr("atexit.register", lambda function: function)
    monkeypatch.setattr("gc.set_threshold", lambda number: None)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 130
    assert capsys.readouterr() == ("", "Interrupted.\n")


@pytest.mark.slow
def test_the_demo_shows_memory_at_work_and_leaves_the_home_alone(terminal: Terminal) -> None:
    """Its facts are measured, not acted."""
    facts = terminal.json("demo")
    shown = ("prompt_unchanged_by_writes", "remembered", "attack_refused", "found", "newest_first")
    assert [name for name in shown if facts[name] is not True] == []
    assert facts["further_model_calls"] == 0
    assert facts["entries"] == ["CI runs on Debian 12."]
    assert "User prefers concise answers." in facts["next_prompt"]
    assert facts["sessions_of_one_conversation"] == facts["compressions"] + 1 == 3
    assert facts["resumed"] is facts["found_after_compression"] is True
    assert facts["model"] == "scripted"
    assert not terminal.home.exists()


@pytest.mark.slow
def test_the_demo_begins_with_an_answer_from_another_agent(terminal: Terminal) -> None:
    """Its first lines say that they are scripted, and have the answer, its date, its agent and how to resume it."""
    output = terminal.ok("demo")
    first = "\n".join(output.splitlines()[:16])
    assert "lines in this demo are scripted" in first and "In March you solved something with Claude Code" in first
    assert "agent  “Taking the queue lock" in first and "on 2026-03-12 in claude-code" in first
    assert "shop && claude --resume 3f0c8a52" in first
    assert "You can see and undo everything" in output
    assert not terminal.home.exists()


@pytest.mark.slow
def test_the_demo_ends_with_commands_that_run_as_printed(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the program is not on the PATH, as after `make run`."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    lines = terminal.ok("demo").partition("That was a temporary home")[2].splitlines()[1:]
    answers = [
        subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False) for line in lines
    ]
    assert [answer.stderr for answer in answers if answer.returncode] == []
    assert "Something worth remembering." in answers[-1].stdout


@pytest.mark.slow
def test_every_command_explains_itself() -> None:
    """--help works and offers the shared options; every noun shows examples."""
    for path in command_paths():
        result = CliRunner().invoke(command, [*path, "--help"])
        assert result.exit_code == 0
        assert "--json" in result.output and "--home" in result.output
        if len(path) < 2:
            assert "Examples:" in result.output


def test_an_unknown_command_is_a_usage_error() -> None:
    """Exit code 2, as everywhere."""
    assert CliRunner().invoke(command, ["nonsense"]).exit_code == 2


@pytest.mark.slow
def test_the_installed_command_starts() -> None:
    """As a shell starts it; the tests of the commands call them in this process."""
    script = Path(sys.executable).with_name("memoranda")
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == f"memoranda, version {memoranda.__version__}\n"


@pytest.mark.slow
def test_the_installed_command_and_the_module_are_the_same_program(tmp_path: Path) -> None:
    """`memoranda` and `python -m memoranda`."""
    arguments = ["--home", str(tmp_path), "memory", "list", "--json"]
    script = Path(sys.executable).with_name("memoranda")
    outputs = [
        subprocess.run([*program, *arguments], capture_output=True, text=True, check=True).stdout
        for program in ([str(script)], [sys.executable, "-m", "memoranda"])
    ]
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["memory"]["entries"] == []


@pytest.mark.slow
def test_a_command_loads_only_what_it_needs() -> None:
    """Asking for the version loads no noun, and no command loads a YAML or .env parser it does not use."""
    code = "import sys; from memoranda.cli.main import main\ntry: main()\nfinally: print(sorted(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    loaded = result.stdout
    assert "'memoranda.cli.memory'" not in loaded
    assert "'memoranda.cli.demo'" not in loaded
    assert "'ruamel" not in loaded and "'dotenv" not in loaded


@pytest.mark.slow
def test_output_that_is_not_read_is_not_an_error(tmp_path: Path) -> None:
    """`memoranda … | head` ends quietly."""
    listing = shlex.join([sys.executable, "-m", "memoranda", "--home", str(tmp_path), "memory", "list"])
    script = f"{listing} | head -c 1 > /dev/null"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr
