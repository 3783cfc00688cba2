"""`memoranda provider setup`: everything that was asked for is saved where it belongs, or nothing is."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.conftest import mode, tree
from tests.external.plugins import add_plugin, plain
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_ASKS = """
def get_config_schema(self):
    return [
        {"key": "region", "description": "Where", "choices": ["eu", "us"], "default": "eu"},
        {"key": "api_key", "description": "Key", "secret": True, "required": True, "env_var": "ASKING_KEY"},
        {"key": "url", "description": "Address", "env_var": "ASKING_URL"},
        {"key": "limit", "description": "How many", "default": 5},
    ]
"""
_CANNOT_SAVE = """
def save_config(self, values, hermes_home):
    raise OSError('no room')
"""
_SETS_ITSELF_UP = """
def post_setup(self, hermes_home, config):
    with open(os.path.join(hermes_home, "own.txt"), "w") as file:
        file.write(repr(sorted(config)))
    print("set up by hand")
"""
ASKING = plain("asking", _ASKS)
CANNOT_SAVE = plain("asking", _ASKS, _CANNOT_SAVE)
SETS_ITSELF_UP = plain("asking", _ASKS, _SETS_ITSELF_UP)

pty = pytest.importorskip("pty", reason="there is no terminal to type on")
_ON_A_TERMINAL = """
import fcntl, runpy, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("memoranda", run_name="__main__")
"""


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    # Commands put what .env says into the environment.
    for name in ("ASKING_KEY", "ASKING_URL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return Terminal(tmp_path / "home")


def _settings(home: Path) -> dict[str, object]:
    found = json.loads((home / "providers" / "asking.json").read_text())
    assert isinstance(found, dict)
    return found


def test_values_that_are_not_set_again_stay(terminal: Terminal) -> None:
    """Values, and the secret, which need not be entered twice."""
    add_plugin(terminal.home, "asking", ASKING)
    terminal.ok("provider", "setup", "asking", "--set", "api_key=k-1234", "--set", "region=us", "--set", "url=http://x")
    told = terminal.json("provider", "setup", "asking", "--set", "limit=9")
    assert told["settings"] == {"region": "us", "url": "http://x", "limit": 9}
    assert told["secrets"] == []
    assert _settings(terminal.home) == {"region": "us", "url": "http://x", "limit": 9}
    assert "ASKING_KEY='k-1234'" in (terminal.home / ".env").read_text()


def test_a_secret_in_the_environment_will_do(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays there, and is not copied."""
    monkeypatch.setenv("ASKING_KEY", "from-outside")
    add_plugin(terminal.home, "asking", ASKING)
    terminal.ok("provider", "setup", "asking")
    assert not (terminal.home / ".env").exists()
    assert terminal.json("provider", "status")["missing"] == []


def test_a_field_with_a_variable_is_stored_in_env(terminal: Terminal) -> None:
    """Where the provider reads it, although it is not a secret."""
    add_plugin(terminal.home, "asking", ASKING)
    terminal.ok("provider", "setup", "asking", "--set", "api_key=k", "--set", "url=http://x")
    assert "ASKING_URL='http://x'" in (terminal.home / ".env").read_text()
    assert mode(terminal.home / ".env") == 0o600
    assert terminal.json("provider", "status")["secrets"] == {"ASKING_KEY": True, "ASKING_URL": True}


def test_a_provider_that_cannot_save_changes_nothing(terminal: Terminal) -> None:
    """Neither settings, nor secrets, nor what is in use."""
    add_plugin(terminal.home, "asking", CANNOT_SAVE)
    before = tree(terminal.home)
    result = terminal.run("provider", "setup", "asking", "--set", "api_key=k-1234", "--json")
    assert result.exit_code == 1
    assert "no room" in json.loads(result.stdout)["error"]
    after = tree(terminal.home)
    assert {path: text for path, text in after.items() if "__pycache__" not in path} == before


def test_a_secret_that_cannot_be_stored_changes_nothing(terminal: Terminal) -> None:
    """It is refused before the provider gets anything."""
    add_plugin(terminal.home, "asking", ASKING)
    result = terminal.run("provider", "setup", "asking", "--set", "api_key=a\nb")
    assert result.exit_code == 1
    assert not (terminal.home / "providers").exists()
    assert not (terminal.home / "config.yaml").exists()


def test_a_broken_settings_file_is_replaced_by_setup(terminal: Terminal) -> None:
    """As the message says; what was in it is kept."""
    add_plugin(terminal.home, "asking", ASKING)
    terminal.ok("provider", "setup", "asking", "--set", "api_key=k")
    (terminal.home / "providers" / "asking.json").write_text("{ broken")
    assert "provider setup asking" in terminal.json("provider", "status")["problem"]
    terminal.ok("provider", "setup", "asking", "--set", "limit=3")
    assert _settings(terminal.home)["limit"] == 3
    assert (terminal.home / "providers" / "asking.json.bak").read_text() == "{ broken"
    assert terminal.json("provider", "status")["problem"] is None


def test_a_provider_that_sets_itself_up_is_left_to_do_it(terminal: Terminal) -> None:
    """It is given the home and the configuration, asked nothing else, and used; --set is for the common questions."""
    add_plugin(terminal.home, "asking", SETS_ITSELF_UP)
    terminal.ok("config", "set", "memory.memory_char_limit", "3000")
    assert terminal.json("provider", "setup", "asking")["set_up_by"] == "provider"
    assert (terminal.home / "own.txt").read_text() == "['memory']"
    assert terminal.json("provider", "list")["active"] == "asking"
    (terminal.home / "own.txt").unlink()
    terminal.ok("provider", "setup", "asking", "--set", "api_key=k")
    assert not (terminal.home / "own.txt").exists()


def test_a_provider_whose_own_setup_fails_is_not_used(terminal: Terminal) -> None:
    """With the reason."""
    add_plugin(terminal.home, "asking", SETS_ITSELF_UP.replace("with open", "1 / 0\n        with open"))
    result = terminal.run("provider", "setup", "asking")
    assert (result.exit_code, "ZeroDivisionError" in result.output) == (1, True)
    assert terminal.json("provider", "list")["active"] is None


def test_options_of_an_installer_are_not_passed_on(terminal: Terminal) -> None:
    """A manifest can name packages, and nothing else."""
    add_plugin(terminal.home, "asking", ASKING, "pip_dependencies: ['--target=/tmp/x nonsense']\n")
    result = terminal.run("provider", "setup", "asking", "--install", "--set", "api_key=k")
    assert (result.exit_code, "is not a package" in result.output) == (1, True)
    assert terminal.json("provider", "list")["active"] is None


def _typed(home: Path, *keys: str, interrupt: bool = False) -> tuple[int, str]:
    """Run `provider setup` on a terminal of its own, type each line when it asks, and return code and output."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", _ON_A_TERMINAL, "--home", str(home), "provider", "setup"],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = ""
    try:
        for key in keys:
            shown += _until_asked(ours)
            os.write(ours, f"{key}\n".encode())
        if interrupt:
            shown += _until_asked(ours)
            os.write(ours, b"\x03")
        shown += _rest(ours)
        return process.wait(GIVE_UP), shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until_asked(terminal: int) -> str:
    """What is shown until nothing more comes for a short time after a colon."""
    shown, deadline = "", time.monotonic() + GIVE_UP
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.3)
        if ready:
            shown += os.read(terminal, 4096).decode()
        elif shown.rstrip().endswith(":"):
            return shown
    raise AssertionError(f"no question in {shown!r}")


def _rest(terminal: int) -> str:
    shown = ""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return shown
        if not piece:
            return shown
        shown += piece.decode()


def test_a_person_chooses_and_answers(terminal: Terminal) -> None:
    """By number or name; a wrong answer is asked again, a blank one takes what is offered, a secret is not shown."""
    add_plugin(terminal.home, "asking", ASKING)
    answers = ("70", "asking", "moon", "us", "", "top-secret", "", "many", "8")
    code, shown = _typed(terminal.home, *answers)
    assert code == 0, shown
    assert "is not one of them" in shown
    assert "one of eu, us" in shown
    assert "api_key is required" in shown
    assert "top-secret" not in shown
    assert _settings(terminal.home) == {"region": "us", "limit": 8}
    assert "top-secret" in (terminal.home / ".env").read_text()
    code, shown = _typed(terminal.home, "", "", "", "", "")
    assert code == 0, shown
    assert "blank keeps" in shown
    assert _settings(terminal.home) == {"region": "us", "limit": 8}


def test_a_person_can_choose_only_the_built_in_memory(terminal: Terminal) -> None:
    """The first in the list."""
    terminal.ok("provider", "use", "holographic")
    code, shown = _typed(terminal.home, "0")
    assert (code, "Only the built-in memory" in shown) == (0, True)
    assert terminal.json("provider", "list")["active"] is None


@pytest.mark.parametrize("before", [(), ("asking", "us")], ids=["choosing", "answering"])
def test_ctrl_c_changes_nothing(terminal: Terminal, before: tuple[str, ...]) -> None:
    """While choosing, and between two answers."""
    add_plugin(terminal.home, "asking", ASKING)
    as_it_was = tree(terminal.home)
    code, shown = _typed(terminal.home, *before, interrupt=True)
    assert code == 130, shown
    assert "Traceback" not in shown
    assert tree(terminal.home) == as_it_was
