"""`memoranda provider` with several providers in use."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin, plain
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

SPEAKING = """
def prefetch(self, query, *, session_id=""):
    return "{name} knows a zebra."

def get_tool_schemas(self):
    return [{{"name": "find", "description": "Find.", "parameters": {{"type": "object"}}}}]

def handle_tool_call(self, tool_name, args, **facts):
    return '{{"from": "{name}"}}'
"""
COMMANDS = """
def register_cli(subparser):
    subparser.add_argument("word")


def {name}_command(args):
    print("{name} was asked for", args.word)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A home with three plugins, of which none is in use."""
    home = tmp_path / "home"
    for name in ("alpha", "beta", "gamma"):
        source = plain(name, SPEAKING.format(name=name))
        add_plugin(home, name, source, cli=COMMANDS.format(name=name))
    return Terminal(home)


def in_use(terminal: Terminal) -> list[str]:
    names: list[str] = terminal.json("provider", "list")["in_use"]
    return names


def test_a_provider_that_cannot_start_replaces_none_that_works(terminal: Terminal) -> None:
    """Its setup is refused with the reason, and nothing is changed."""
    terminal.ok("provider", "use", "alpha", "beta")
    result = terminal.run("provider", "setup", "hindsight")
    assert result.exit_code == 1
    assert "api_key (HINDSIGHT_API_KEY) is not set" in result.output
    assert in_use(terminal) == ["alpha", "beta"]
    assert not (terminal.home / "providers" / "hindsight.json").exists()


def test_providers_are_used_together_and_switched_off_one_by_one(terminal: Terminal) -> None:
    """Each command says what is in use afterwards."""
    told = terminal.json("provider", "use", "alpha", "beta", "alpha")
    assert (told["in_use"], told["provider"]) == (["alpha", "beta"], "alpha")
    assert in_use(terminal) == ["alpha", "beta"]
    assert [each["name"] for each in terminal.json("provider", "list")["providers"] if each["active"]] == told["in_use"]
    assert terminal.ok("provider", "off", "alpha") == (
        "alpha is no longer used. beta is used from the next session on.\n"
    )
    assert terminal.run("provider", "off", "alpha").exit_code == 1
    assert in_use(terminal) == ["beta"]
    terminal.ok("provider", "use", "alpha", "beta")
    terminal.ok("provider", "off")
    assert in_use(terminal) == []


def test_a_provider_that_is_not_ready_changes_nothing(terminal: Terminal) -> None:
    """Not even for the others that were named."""
    add_plugin(terminal.home, "unready", plain("unready", "def is_available(self): return False"))
    assert terminal.run("provider", "use", "alpha", "unready").exit_code == 1
    assert in_use(terminal) == []


def test_setup_replaces_unless_it_adds(terminal: Terminal) -> None:
    """And says so; the setup of one that is in use keeps the others."""
    terminal.ok("provider", "setup", "alpha")
    terminal.ok("provider", "setup", "beta", "--add")
    assert in_use(terminal) == ["alpha", "beta"]
    terminal.ok("provider", "setup", "alpha")
    assert in_use(terminal) == ["alpha", "beta"]
    told = terminal.run("provider", "setup", "gamma")
    assert "gamma is used from the next session on, instead of alpha and beta" in told.output
    assert "--add would keep them as well" in told.output
    assert in_use(terminal) == ["gamma"]


@pytest.mark.parametrize(("answer", "expected"), [("\n", ["alpha", "beta"]), ("n\n", ["beta"])])
def test_a_person_is_asked_whether_the_others_stay(terminal: Terminal, answer: str, expected: list[str]) -> None:
    """They do unless the answer is no."""
    terminal.ok("provider", "use", "alpha")
    person, program = pty.openpty()
    command = [sys.executable, "-m", "memoranda", "--home", str(terminal.home), "provider", "setup", "beta"]
    os.write(person, answer.encode())
    done = subprocess.run(command, stdin=program, capture_output=True, text=True, timeout=GIVE_UP, check=True)
    os.close(person)
    os.close(program)
    assert "Keep using alpha as well" in done.stderr
    assert in_use(terminal) == expected


def test_status_and_test_show_each_provider(terminal: Terminal) -> None:
    """Or the one that is named; the first one's are where they are when there is only one."""
    terminal.ok("provider", "use", "alpha", "beta")
    status = terminal.json("provider", "status")
    assert (status["provider"], list(status["status_of"])) == ("alpha", ["alpha", "beta"])
    assert status["status_of"]["beta"]["ready"] is True
    text = terminal.ok("provider", "status")
    assert "Provider: alpha" in text and "Provider: beta" in text and "*alpha, *beta" in text
    assert terminal.json("provider", "status", "beta")["provider"] == "beta"
    report = terminal.json("provider", "test")
    assert report["success"] is True and list(report["providers"]) == ["alpha", "beta"]
    assert [step["ok"] for step in terminal.json("provider", "test", "beta")["steps"]] == [True] * 4


def test_one_broken_provider_fails_its_own_test(terminal: Terminal) -> None:
    """The other is tested all the same."""
    terminal.ok("provider", "use", "alpha", "beta")
    file = terminal.home / "plugins" / "alpha" / "__init__.py"
    file.write_text("1 / 0\n" + file.read_text())
    result = terminal.run("provider", "test")
    assert result.exit_code == 1 and "ZeroDivisionError" in result.output and "ok      shuts down" in result.output
    status = terminal.json("provider", "status")
    assert status["status_of"]["alpha"]["problem"] and status["status_of"]["beta"]["ready"] is True


def test_what_providers_say_is_shown_of_all_or_of_one(terminal: Terminal) -> None:
    """Recall, and tools by the names that a model sees."""
    terminal.ok("provider", "use", "alpha", "beta")
    assert terminal.json("provider", "ask", "zebra")["recalled"].splitlines() == [
        "alpha> alpha knows a zebra.",
        "beta> beta knows a zebra.",
    ]
    assert terminal.json("provider", "ask", "zebra", "--provider", "beta")["recalled"] == "beta knows a zebra."
    assert terminal.json("provider", "call", "beta_find")["from"] == "beta"
    assert terminal.json("provider", "call", "find", "--provider", "beta")["from"] == "beta"
    assert terminal.run("provider", "ask", "zebra", "--provider", "gamma").exit_code == 1


@pytest.mark.parametrize("arguments", [("run", "word"), ("forget", "--yes")])
def test_a_command_for_one_provider_asks_which(terminal: Terminal, arguments: tuple[str, ...]) -> None:
    """When several are in use."""
    terminal.ok("provider", "use", "alpha", "beta")
    refused = terminal.run("provider", *arguments)
    assert refused.exit_code == 1 and "alpha and beta are in use. Name one" in refused.output


def test_a_command_of_one_of_several_providers_is_run(terminal: Terminal) -> None:
    """By its name."""
    terminal.ok("provider", "use", "alpha", "beta")
    assert "beta was asked for word" in terminal.ok("provider", "run", "--provider", "beta", "word")


def test_the_file_names_one_provider_where_there_is_one(terminal: Terminal) -> None:
    """So that other programs that read it find what they know."""
    terminal.ok("provider", "use", "alpha")
    assert "providers" not in terminal.home.joinpath("config.yaml").read_text()
    terminal.ok("provider", "use", "beta", "alpha")
    assert "provider: beta" in terminal.home.joinpath("config.yaml").read_text()
    assert terminal.json("config", "get", "memory.providers")["memory.providers"] == ["beta", "alpha"]
