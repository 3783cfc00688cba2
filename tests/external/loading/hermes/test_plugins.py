"""The memory plugins that Hermes 0.19.0 contains, unmodified, in a home of Memoranda; needs `.hermes-venv`.

`MEMORANDA_HERMES_PLUGINS` names their directory if Hermes is installed elsewhere. What a plugin needs besides, such as
the client of a vendor, must be installed with Memoranda.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memoranda import Session
from memoranda import open as open_memory
from memoranda.external.loading.discovery import missing_packages, read_plugin
from tests.cli.terminal import Terminal
from tests.external.http_service import serving
from tests.external.loading.hermes.vendor_answers import FACT, VendorAnswers
from tests.timing import HANG, wait_until

ROOT = Path(__file__).parents[4]
# An address where nothing listens: setup must not need the service.
NOWHERE = "http://127.0.0.1:9"
KEY = "vendor-secret-4711"
SETTINGS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "byterover": lambda url: ("auto_extract=true",),
    "hindsight": lambda url: ("mode=local_external", f"api_url={url}", f"api_key={KEY}"),
    "honcho": lambda url: (f"api_key={KEY}", f"baseUrl={url}"),
    "mem0": lambda url: (f"api_key={KEY}", f"host={url}"),
    "openviking": lambda url: (f"endpoint={url}", f"api_key={KEY}"),
    "retaindb": lambda url: (f"api_key={KEY}", f"base_url={url}"),
    "supermemory": lambda url: (f"api_key={KEY}",),
}
# What these two read only from the environment.
ADDRESSES = {"retaindb": "RETAINDB_BASE_URL", "supermemory": "SUPERMEMORY_BASE_URL"}
TIMEOUTS = ("recall_seconds", "begin_seconds", "start_seconds", "call_seconds", "tool_seconds", "shutdown_seconds")
TOOLS = {"byterover": 3, "hindsight": 3, "honcho": 5, "mem0": 4, "openviking": 6, "retaindb": 10, "supermemory": 8}
ARGUMENTS: dict[str, Any] = {
    "query": "zebra",
    "content": FACT,
    "text": FACT,
    "conclusion": FACT,
    "memory_id": "m1",
    "file_id": "f1",
    "uri": "viking://user/default/memories/zebra.md",
    "url": "https://example.com/zebra",
    "action": "list",
}
SAID = "We keep the zebra in the northern meadow, and it sleeps there until the late morning ({})."
# Only a turn that is sent contains it; recall sends what the user said.
ANSWERED = "I will remember where the zebra is, and when it sleeps."


def _plugins() -> Path | None:
    named = os.environ.get("MEMORANDA_HERMES_PLUGINS")
    found = [Path(named)] if named else sorted(ROOT.glob(".hermes-venv/lib/python*/site-packages/plugins/memory"))
    return found[0] if found and (found[0] / "mem0").is_dir() else None


PLUGINS = _plugins()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PLUGINS is None, reason="Hermes is not installed in .hermes-venv"),
    # The clients of vendors leave connections open.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def set_up(name: str, home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Copy a plugin into a home and set it up for a service at an address."""
    assert PLUGINS is not None
    for variable in [variable for variable in os.environ if variable.startswith((name.upper(), "BRV_"))]:
        monkeypatch.delenv(variable)
    if name in ADDRESSES:
        monkeypatch.setenv(ADDRESSES[name], url)
    terminal = Terminal(home)
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(PLUGINS / name, terminal.home / "plugins" / name, ignore=ignored)
    for timeout in TIMEOUTS:
        # Importing the client of a vendor takes seconds on a busy machine.
        terminal.ok("config", "set", f"provider.{timeout}", str(HANG))
    pairs = [part for setting in SETTINGS[name](url) for part in ("--set", setting)]
    assert terminal.json("provider", "setup", f"home:{name}", *pairs, "--no-test")["success"]
    return terminal


@pytest.mark.parametrize("name", SETTINGS)
def test_a_plugin_of_hermes_is_set_up_unmodified(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads, saves its settings, and status says that its deliveries cannot be monitored."""
    terminal = set_up(name, tmp_path / "home", NOWHERE, monkeypatch)
    status = terminal.json("provider", "status")
    assert (status["provider"], status["problem"], status["own_thread"]) == (f"home:{name}", None, True)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_plugin_of_hermes_recalls_answers_its_tools_and_takes_turns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real session, with a service that answers in the format of the vendor."""
    assert PLUGINS is not None
    found = read_plugin(PLUGINS / name)
    if found is not None and (missing := missing_packages(found)):
        pytest.skip(f"the plugin needs {', '.join(missing)}")
    home = tmp_path / "home"
    with vendor(name, tmp_path, monkeypatch) as (url, sent):
        set_up(name, home, url, monkeypatch)
        with open_memory(home) as memory, memory.session(source="cli", model="m") as session:
            recall(session)
            answers = call_tools(session, tmp_path)
        assert len(answers) == TOOLS[name]
        assert {tool: answer for tool, answer in answers.items() if answer.get("success") is not True} == {}
        assert any(FACT in json.dumps(answer) for answer in answers.values())
        # A plugin may send turns after the session has ended, in a thread of its own.
        wait_until(lambda: ANSWERED in "".join(sent()))


@contextmanager
def vendor(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Start the service of a vendor; yields its address, and a function that returns what was sent to it."""
    if name == "byterover":
        log = folder / "calls.txt"
        program = folder / "bin" / "brv"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> '{log}'\necho '{FACT}'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        yield NOWHERE, lambda: [log.read_text()] if log.exists() else []
        return
    answers = VendorAnswers(name)
    with serving(answers.respond) as service:
        yield service.url, lambda: answers.sent


def recall(session: Session) -> None:
    """Take turns until the fact is recalled: some plugins ask for it after a turn, for the next one."""
    for number in range(1, 101):
        with session.turn(SAID.format(number)) as turn:
            read = json.dumps(turn.messages[-1]["content"])
            turn.done(ANSWERED)
        if FACT in read:
            return
        time.sleep(0.2)
    pytest.fail("nothing was recalled")


def deliver(session: Session, sent: Callable[[], list[str]]) -> None:
    """Take turns until one was sent: a plugin loses turns that its thread has not sent when the session ends.

    A plugin that sends them only then has all of them.
    """
    for number in range(20):
        if ANSWERED in "".join(sent()):
            return
        with session.turn(SAID.format(number)) as turn:
            turn.done(ANSWERED)
        time.sleep(0.2)


def call_tools(session: Session, folder: Path) -> dict[str, Any]:
    """Call every tool of the plugin once, and return the answers."""
    with open_memory(folder / "plain") as memory, memory.session(source="cli", model="m") as plain:
        own = {tool.name for tool in plain.tools}
    (folder / "note.txt").write_text(FACT)
    values = ARGUMENTS | {"local_path": str(folder / "note.txt")}
    answers = {}
    for tool in session.tools:
        if tool.name not in own:
            accepted = tool.parameters.get("properties", {})
            optional = [name for name in ("conclusion", "uri", "query") if name in accepted][:1]
            names = tool.parameters.get("required") or optional
            answers[tool.name] = session.call(tool.name, {name: values[name] for name in names})
    return answers
