"""What a person sees who asks which commands there are, and what happens to a good guess."""

import json
import re
from pathlib import Path

import click
from click.testing import CliRunner

from memoranda.cli.main import SERVER_COMMANDS
from memoranda.cli.main import command as program
from tests.cli.terminal import Terminal
from tests.docs.reference import DOCS, command_paths


def _help(*words: str) -> str:
    answer = CliRunner().invoke(program, list(words), prog_name="memoranda")
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_the_first_screen_describes_at_most_twelve_commands_and_names_the_others() -> None:
    """A person can scan it."""
    screen = _help("--help")
    described = screen.partition("Every day:\n")[2].partition("\nMore commands")[0]
    everyday = [line.split()[0] for line in described.splitlines() if line[:2] == "  " and line[2] != " "]
    assert len(everyday) <= 12
    named = set(screen.replace(",", " ").split())
    assert set(program.list_commands(click.Context(program))) <= named
    assert len(screen.splitlines()) < 50


def test_help_describes_a_group_all_groups_and_a_command() -> None:
    """In the words that the command itself uses for `--help`."""
    assert "Write the whole home into one verified file." in _help("help", "care")
    assert "'hook status' shows what prompts got" in " ".join(_help("help", "agents").split())
    everything = _help("help")
    assert all(f"\n  {name} " in everything for name in program.list_commands(click.Context(program)))
    assert _help("help", "memory", "undo") == _help("memory", "undo", "--help")


def test_an_error_in_how_a_command_was_called_is_json_too(tmp_path: Path) -> None:
    """Wherever --json is; and so is the help."""
    terminal = Terminal(tmp_path / "home")
    for words in (["sessions", "nonsense"], ["nonsense"], ["sessions", "list", "--nonsense"], ["help", "nonsense"]):
        result = terminal.run(*words, "--json")
        assert result.exit_code == 2 and result.stderr == ""
        answer = json.loads(result.stdout)
        assert answer["success"] is False and "nonsense" in answer["error"]
    assert "backup" in terminal.json("help", "care")["help"]


def test_help_for_nothing_known_suggests_a_name() -> None:
    """As for a command that does not exist."""
    answer = CliRunner().invoke(program, ["help", "serch"])
    assert answer.exit_code == 2 and "Did you mean 'search'?" in answer.output


def test_a_guess_within_a_group_suggests_a_command_of_the_group() -> None:
    """And nothing, where the group has none."""
    meant = {"secret delete": "secret remove", "sessions rm": "sessions delete", "delete": "memory remove"}
    for typed, right in meant.items():
        answer = CliRunner().invoke(program, typed.split(), prog_name="memoranda")
        assert f"Did you mean 'memoranda {right}'?" in answer.output
    assert "Did you mean" not in CliRunner().invoke(program, ["secret", "history"]).output


def test_the_commands_of_a_server_have_their_short_names_too() -> None:
    """Scripts and guesses use both."""
    for name in SERVER_COMMANDS:
        full, short = _help("server", name, "--help"), _help(name, "--help")
        assert full == short.replace(f"Usage: memoranda {name}", f"Usage: memoranda server {name}")


def test_the_texts_use_the_full_names_of_the_commands_of_a_server() -> None:
    """In the help, the messages, the pages and the files for a server; decisions keep the words of their time."""
    short = re.compile(rf"memoranda ({'|'.join(SERVER_COMMANDS)})\b")
    root = DOCS.parent
    paths = [path for directory in ("src", "docs", "deploy") for path in (root / directory).rglob("*")]
    for path in (*paths, root / "CHANGELOG.md", root / "README.md"):
        if path.suffix in {".py", ".md", ".html", ".yaml", ".service"} and "decisions" not in path.parts:
            found = short.search(path.read_text("utf-8"))
            assert found is None, f"{path} says {found and found[0]!r}"


def test_a_configuration_is_checked_without_a_start(tmp_path: Path) -> None:
    """What the service would use, or why it could not start."""
    terminal = Terminal(tmp_path)
    assert terminal.json("server", "serve", "--check-config")["store"] == "files"
    refused = terminal.run("server", "serve", "--check-config", "--host", "0.0.0.0")
    assert refused.exit_code == 1 and "Create a key first" in refused.output


def test_guesses_work(tmp_path: Path) -> None:
    """Names that people try first."""
    terminal = Terminal(tmp_path)
    assert terminal.ok("export", "--all") == terminal.ok("sessions", "export")
    assert "memory.write_approval = " in terminal.ok("config", "get", "memory")
    assert terminal.json("config", "get", "curate")["curate.mode"] == "propose"
    refused = terminal.run("memory", "undo", "999")
    assert refused.exit_code == 1 and "There is no change 999: nothing was changed yet." in refused.output
    assert "-q, --query" in terminal.ok("chat", "--help")


def test_short_options_are_the_same_everywhere(tmp_path: Path) -> None:
    """A person who learnt one at a command uses it at the next: -n, -y, -t, -p and -o."""
    short = {"--limit": "-n", "--yes": "-y", "--target": "-t", "--output": "-o"}
    for path in command_paths():
        found: click.Command = program
        for name in path:
            assert isinstance(found, click.Group)
            inner = found.get_command(click.Context(found), name)
            assert inner is not None
            found = inner
        for option in found.params:
            for long in short.keys() & set(option.opts):
                assert short[long] in option.opts, (path, long)
    terminal = Terminal(tmp_path / "home")
    terminal.ok("remember", "-t", "user", "Prefers short answers.")
    assert "Prefers short answers." in terminal.ok("memory", "log", "-n", "1")
