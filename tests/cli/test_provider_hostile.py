"""A provider that hangs, raises, prints or answers with garbage is reported as a problem by every command."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from memoranda.external.guarded_call import PendingCall
from memoranda.external.outbox.outbox import Outbox
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin, plain
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

HOSTILE = {
    "raises": "def is_available(self):\n    raise OSError('boom')",
    "exits": "def is_available(self):\n    raise SystemExit(0)",
    "hangs": "def is_available(self):\n    time.sleep(200)",
    "answers oddly": "def is_available(self):\n    return object()",
    "schema is none": "def get_config_schema(self):\n    return None",
    "schema is odd": "def get_config_schema(self):\n    return [{'key': 'k', 'choices': 5, 'when': ['x']}, 3]",
    "schema raises": "def get_config_schema(self):\n    raise KeyError('k')",
    "schema hangs": "def get_config_schema(self):\n    time.sleep(200)",
    "status raises": "def get_status_config(self, config):\n    raise ValueError('odd')",
    "status is no JSON": "def get_status_config(self, config):\n    return {'a': object(), 'b': {1: {2}}}",
    "recall raises": "def prefetch(self, query, **kwargs):\n    raise OSError('\\x1b[31mdown\\x1b[0m')",
}


def _plugin(home: Path, body: str, **files: str) -> None:
    add_plugin(home, "p", plain("p", body), **files)
    (home / "config.yaml").write_text("memory:\n  provider: p\n")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    (tmp_path / "home").mkdir(mode=0o700)
    return Terminal(tmp_path / "home")


wait = PendingCall.wait


@pytest.mark.parametrize("kind", HOSTILE)
def test_every_command_answers_in_json_and_in_time(
    terminal: Terminal, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the provider does; the answer has no signs that steer a terminal, and nothing else beside it."""
    monkeypatch.setattr(PendingCall, "wait", lambda pending, seconds: wait(pending, min(seconds, 1.0)))
    _plugin(terminal.home, HOSTILE[kind])
    for command in (("list",), ("use", "p"), ("status",), ("setup", "p"), ("test",)):
        began = time.monotonic()
        result = terminal.run("provider", *command, "--json")
        assert time.monotonic() - began < GIVE_UP, command
        assert result.exit_code in (0, 1), (command, result.output)
        answer = json.loads(result.stdout)
        assert isinstance(answer, dict)
        assert "\x1b" not in result.stdout
        assert "\\u001b" not in json.dumps(answer.get("error")), command
        if result.exit_code == 1:
            assert answer["error"]
    assert "ready" in terminal.json("provider", "status")


def test_what_fails_is_named(terminal: Terminal) -> None:
    """By status as a problem, by use as a refusal, by test as a failed step."""
    _plugin(terminal.home, HOSTILE["raises"])
    assert "boom" in terminal.json("provider", "status")["problem"]
    result = terminal.run("provider", "use", "p")
    assert (result.exit_code, "boom" in result.output) == (1, True)
    steps = json.loads(terminal.run("provider", "test", "--json").stdout)["steps"]
    assert steps[0]["ok"] is False


def test_a_turn_that_is_refused_is_not_accepted(terminal: Terminal) -> None:
    """The test does not count a parked turn as one that has arrived."""
    refuse = "from memoranda.errors import PermanentProviderError\n    raise PermanentProviderError('too long')"
    _plugin(terminal.home, f"def sync_turn(self, user_content, assistant_content):\n    {refuse}")
    report = json.loads(terminal.run("provider", "test", "--json").stdout)
    assert {step["step"]: step["ok"] for step in report["steps"]}["accepts a turn"] is False
    assert (report["left"], report["last_error"]) == ([], "too long")


def _run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memoranda", "--home", str(home), "provider", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIVE_UP)


NOISY = """def is_available(self):
    print("NOISE from print")
    os.write(1, b"NOISE from a library")
    subprocess.run([sys.executable, "-c", "print('NOISE from a program')"])
    return True"""


def test_what_a_provider_prints_is_not_in_the_answer(terminal: Terminal) -> None:
    """From Python, from a library, from a program; all of it is on standard error."""
    _plugin(terminal.home, NOISY)
    for command in (("status", "--json"), ("use", "p", "--json"), ("test", "--json")):
        result = _run(terminal.home, *command)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)
        assert result.stderr.count("NOISE") == 3
    assert "NOISE" not in _run(terminal.home, "status").stdout


KEEPING = """def sync_turn(self, user_content, assistant_content, *, session_id=""):
    with open(os.path.join(os.path.dirname(__file__), "told.txt"), "a") as file:
        file.write(f"{session_id} {user_content}\\n")"""


def test_a_test_says_what_it_left_and_leaves_nothing_else(terminal: Terminal) -> None:
    """One turn of a session with a special name; nothing in the outbox; waiting jobs stay."""
    _plugin(terminal.home, KEEPING)
    outbox = Outbox(terminal.home)
    args = {"user_content": "a real question", "assistant_content": "x"}
    outbox.put("p", "turn", "real", args, {"session_id": "real"})
    outbox.release()
    told = terminal.json("provider", "test")
    assert told["left"] == ["a turn of the session memoranda-provider-test, which the provider has received"]
    assert "Left behind" in terminal.ok("provider", "test")
    lines = (terminal.home / "plugins" / "p" / "told.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["memoranda-provider-test"] * 2
    assert outbox.backlog("p").waiting == 1
    outbox.close()


def test_status_shows_the_jobs_of_this_provider_and_their_age(terminal: Terminal) -> None:
    """Others are counted apart, and a person sees an age."""
    _plugin(terminal.home, "pass")
    now = time.time()
    outbox = Outbox(terminal.home, clock=lambda: now - 7200)
    args = {"user_content": "q", "assistant_content": "a"}
    for provider in ("p", "p", "another"):
        outbox.put(provider, "turn", "s", args, {})
    outbox.close()
    status = terminal.json("provider", "status")
    assert (status["backlog"]["waiting"], status["backlog_of_others"]) == (2, 1)
    assert status["backlog"]["oldest_age_seconds"] == pytest.approx(7200, abs=60)
    shown = terminal.ok("provider", "status")
    assert "2 waiting, the oldest for 2 h; 1 for other providers" in shown
    assert "within 2 s" in shown
    assert status["recall_seconds"] == 2.0


def test_status_names_only_variables_that_the_settings_need(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider with several ways to run does not miss the key of another way, nor a setting that has a default."""
    for name in ("P_KEY", "P_URL"):
        monkeypatch.delenv(name, raising=False)
    schema = [
        {"key": "way", "default": "cloud", "choices": ["cloud", "server"]},
        {"key": "k", "secret": True, "required": True, "env_var": "P_KEY", "when": {"way": "cloud"}},
        {"key": "url", "required": True, "default": "http://x", "env_var": "P_URL", "when": {"way": "server"}},
    ]
    _plugin(terminal.home, f"def get_config_schema(self):\n    return {schema!r}")
    assert [field["variable"] for field in terminal.json("provider", "status")["missing"]] == ["P_KEY"]
    (terminal.home / "providers").mkdir(exist_ok=True)
    (terminal.home / "providers" / "p.json").write_text('{"way": "server"}')
    status = terminal.json("provider", "status")
    assert (status["missing"], status["secrets"]) == ([], {"P_URL": False})


def test_status_lists_everything_that_the_design_names(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built-in, provider, its settings, installed, ready, missing variables with their addresses, all providers."""
    monkeypatch.delenv("P_KEY", raising=False)
    schema = [
        {"key": "k", "secret": True, "required": True, "env_var": "P_KEY", "url": "https://example.com/keys"},
        {"key": "size", "default": 3},
    ]
    _plugin(terminal.home, f"def get_config_schema(self):\n    return {schema!r}")
    (terminal.home / "providers").mkdir()
    (terminal.home / "providers" / "p.json").write_text('{"size": 4, "k": "should-not-be-here"}')
    status = terminal.json("provider", "status")
    assert (status["built_in"], status["provider"], status["installed"], status["ready"]) == (True, "p", True, True)
    assert status["settings"] == {"size": 4}
    assert status["missing"] == [{"variable": "P_KEY", "description": "", "url": "https://example.com/keys"}]
    assert {"holographic", "p"} <= set(status["providers"])
    shown = terminal.ok("provider", "status")
    assert "Built-in memory: always on" in shown
    assert "missing    P_KEY  https://example.com/keys" in shown
    assert re.search(r"installed  .*holographic, .*\*p\b", shown)
    terminal.ok("config", "set", "memory.provider", "gone")
    result = terminal.run("provider", "status", "--json")
    data: dict[str, Any] = json.loads(result.stdout)
    assert (result.exit_code, data["installed"]) == (1, False)


CLI = """
import sys


def register_cli(subparser):
    subparser.add_argument("word")


def p_command(args):
    print("asked for", args.word)
    if args.word == "boom":
        raise OSError("boom")
    if args.word == "leave":
        sys.exit(4)
    return 3 if args.word == "three" else None
"""


def test_a_command_of_the_provider_s_own_answers_in_json_too(terminal: Terminal) -> None:
    """Output, exit code, and errors without a traceback."""
    _plugin(terminal.home, "pass", cli=CLI)
    assert terminal.json("provider", "run", "zebra") == {
        "success": True, "exit_code": 0, "output": "asked for zebra\n"
    }  # fmt: skip
    for word, code in (("three", 3), ("leave", 4), ("boom", 1)):
        result = terminal.run("provider", "run", word)
        assert (result.exit_code, "Traceback" in result.output) == (code, False)
        result = terminal.run("provider", "run", "--json", word)
        answer = json.loads(result.stdout)
        assert (result.exit_code, answer["success"], answer["exit_code"]) == (code, False, code)
    assert "boom" in answer["error"]
    result = terminal.run("provider", "run", "--json")
    assert (result.exit_code, json.loads(result.stdout)["exit_code"]) == (2, 2)
