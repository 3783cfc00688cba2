"""`memoranda hook status` shows what each prompt received, or why it received nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.cli.hooks.call import HookCall
from memoranda.cli.hooks.process import HookOptions
from memoranda.integrations.hooks.log import HookLog
from memoranda.search.recall_log import hook_calls_path
from tests.cli.terminal import Terminal
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_PROGRAM = [sys.executable, "-P", "-m", "memoranda", "hook"]
_TALK = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", "Staging uses the heron cluster, on port 5433."),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with four conversations."""
    with memoranda.open(tmp_path) as memory:
        for number, turn in enumerate(_TALK):
            session = memory.sessions.create_session(f"t{number}", "cli")
            rows = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), turn, strict=True)]
            memory.sessions.append_messages(session, rows)
    return tmp_path


def _prompt(home: Path, prompt: str) -> None:
    payload = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt})
    result = Terminal(home).run("hook", "claude-code", "UserPromptSubmit", "--wait", input=payload)
    assert result.exit_code == 0


def _status(home: Path, *words: str) -> Any:
    result = Terminal(home).run("hook", "status", "--json", *words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_home_without_calls_says_so(tmp_path: Path) -> None:
    """And how to get some; nothing is created."""
    result = Terminal(tmp_path / "home").run("hook", "status")
    assert result.exit_code == 0 and "memoranda install claude-code" in result.stdout
    assert _status(tmp_path / "home") == {
        "calls": [], "counts": {}, "log": str(hook_calls_path(tmp_path / "home")), "helpers": []
    }  # fmt: skip
    assert Terminal(tmp_path / "home").run("hook", "status", "--why").exit_code == 1
    assert not (tmp_path / "home").exists()


def test_a_home_without_calls_names_the_hosts_that_have_its_hooks(tmp_path: Path) -> None:
    """What is missing is a new session there, and no installation."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("install", "codex", "--yes")
    shown = terminal.ok("hook", "status")
    assert "installed in Codex: start a new session" in shown and "adds the hooks" not in shown


def test_each_prompt_is_listed_with_its_result_and_the_reason(home: Path) -> None:
    """Given, and the different reasons for nothing."""
    prompts = {
        "Which port did the heron cluster have?": ("given", "1 conversation cleared the floor"),
        "Rename the page": ("nothing", "nothing cleared the floor"),
        "quizzaciously brontoquell": ("nothing", "no conversation has its words"),
        "/compact what was said": ("nothing", "the prompt is a command of the host"),
        "yes": ("nothing", "the prompt has fewer than 8 characters"),
    }
    for prompt in prompts:
        _prompt(home, prompt)
    found = _status(home)
    results = {call["prompt"]: (call["outcome"], call["reason"]) for call in found["calls"]}
    expected = {prompt.replace("/compact", "•••"): result for prompt, result in prompts.items()}
    assert results == expected
    assert found["counts"] == {"given": 1, "nothing": 4}
    assert len(_status(home, "--limit", "2")["calls"]) == 2
    text = Terminal(home).run("hook", "status").stdout
    assert "The last 5 calls: 1 given, 4 nothing." in text and "[nothing cleared the floor]" in text


def test_why_explains_one_prompt(home: Path) -> None:
    """The floor, and what each conversation measured against it."""
    _prompt(home, "Which port did the heron cluster have?")
    given = _status(home, "--why")
    assert given["given"][0]["session_id"] == "t3"
    assert given["candidates"][0]["clears"] and given["floor"]["asks_about_the_past"]
    _prompt(home, "Rename the page")
    text = Terminal(home).run("hook", "status", "--why").stdout
    assert "Result: nothing: nothing cleared the floor." in text and "(too low)" in text
    assert "the prompt is a task" in text
    assert "cleared: session t3" in Terminal(home).run("hook", "status", "--why", given["id"]).stdout
    missing = Terminal(home).run("hook", "status", "--why", "zzz")
    assert missing.exit_code == 1 and "no call 'zzz'" in missing.output


def test_an_error_is_listed_with_its_message(home: Path) -> None:
    """The host saw nothing of it."""
    (home / "config.yaml").write_text("sessions: [broken")
    _prompt(home, "Which port did the heron cluster have?")
    (home / "config.yaml").unlink()
    (call,) = _status(home)["calls"]
    assert call["outcome"] == "error" and "config.yaml" in call["reason"]


@pytest.mark.parametrize(("payload", "problem"), [("", "is empty"), ('{"prompt": "a', "is not a JSON object")])
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_call_with_unreadable_input_is_an_error(home: Path, payload: str, problem: str, event: str) -> None:
    """The log of the hooks has it too."""
    assert Terminal(home).run("hook", "claude-code", event, "--wait", input=payload).exit_code == 0
    (call,) = _status(home)["calls"]
    assert (call["outcome"], call["reason"]) == ("error", f"standard input {problem}")
    assert f"claude-code {event}: standard input {problem}" in (home / "logs" / "hooks.log").read_text()


def test_secrets_of_the_home_are_not_shown(home: Path) -> None:
    """Not even one that looks like an ordinary word."""
    (home / ".env").write_text("SHOP_PASSWORD=swordfishes\n")
    HookLog(home).begin("claude-code", "UserPromptSubmit", "s", "Does swordfishes still work?")
    assert "swordfishes" not in Terminal(home).run("hook", "status").stdout
    assert "swordfishes" not in json.dumps(_status(home, "--why"))


def test_a_missed_deadline_is_logged(home: Path) -> None:
    """In the list, and in the log of the home; the host got an empty answer and code 0."""
    code = (
        "import sys, time; from memoranda.integrations.hooks import answers\n"
        "from memoranda.cli.hooks import process\n"
        "answers.answer_event = lambda *_: time.sleep(60); process.TIMEOUT = 0.2\n"
        "from memoranda.cli.hooks.entry import run_installed_hook; run_installed_hook(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "claude-code", "UserPromptSubmit", "--home", str(home)],
        input=b'{"prompt": "Which port did the heron cluster have?"}', capture_output=True, check=True, timeout=GIVE_UP,
        env=os.environ | {"MEMORANDA_HOOKS_HELPER": "off"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"", b"")
    (call,) = _status(home)["calls"]
    assert (call["outcome"], call["reason"]) == ("late", "no answer within 0.2 seconds")
    assert (home / "logs" / "hooks.log").read_text().count("no answer within 0.2 seconds") == 1
    lines = (home / "logs" / "hook-events.jsonl").read_text().splitlines()
    assert [("event" in line, "outcome" in line) for line in lines] == [(True, False), (False, True)]


@pytest.mark.parametrize(
    ("event", "forbidden"),
    [
        ("Stop", ("click", "logging", "sqlite3", "subprocess", "dataclasses", "memoranda.support.home")),
        ("SessionStart", ("click", "memoranda.api", "memoranda.home.config.config", "ruamel.yaml", "sqlite3.dbapi2")),
        ("UserPromptSubmit", ("click", "memoranda.api", "memoranda.home.config.config", "memoranda.safety",
                              "ruamel.yaml", "memoranda.home.session_db", "memoranda.memory.record.messages",
                              "logging.handlers")),
    ],
)  # fmt: skip
def test_a_hook_loads_only_what_its_event_needs(tmp_path: Path, event: str, forbidden: tuple[str, ...]) -> None:
    """A host waits while modules load; the installed command and `python -m memoranda` take the same path."""
    payload = json.dumps({"hook_event_name": event, "prompt": "What did we say about herons?"})
    code = (
        "import os, sys; sys.argv = ['memoranda', 'hook', *sys.argv[1:]]; end = os._exit\n"
        "os._exit = lambda code: (print(*sys.modules, file=sys.stderr), end(code))\n"
        "from memoranda.__main__ import main\nmain()"
    )
    (tmp_path / "state.db").touch()
    done = subprocess.run(
        [sys.executable, "-c", code, "claude-code", event, "--wait", "--home", str(tmp_path)],
        input=payload.encode(), capture_output=True, check=True, timeout=GIVE_UP,
    )  # fmt: skip
    loaded = set(done.stderr.decode().split())
    assert "memoranda.cli.hooks.call" in loaded
    assert loaded & set(forbidden) == set()


def test_a_worker_that_begins_after_the_deadline_does_not_log_its_call_again(home: Path) -> None:
    """The thread that waited has logged the beginning and the result already."""
    options = HookOptions("claude-code", "UserPromptSubmit")
    options.home = str(home)
    call = HookCall(options, b'{"prompt": "Which port did the heron cluster have?"}')
    call.log_late()
    call.answer()
    lines = (home / "logs" / "hook-events.jsonl").read_text().splitlines()
    assert [("event" in line, "outcome" in line) for line in lines] == [(True, False), (False, True)]
