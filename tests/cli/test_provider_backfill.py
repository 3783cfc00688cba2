"""`memoranda provider backfill` gives a provider what was remembered and said before it was chosen, once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin
from tests.external.vendors.honcho.double import KEY, HonchoDouble
from tests.timing import GIVE_UP

_DIARY = """
import json, os, time
from pathlib import Path
from memoranda.external.provider import MemoryProvider


class Diary(MemoryProvider):
    name = "diary"

    def is_available(self):
        return True

    def initialize(self, session_id, **facts):
        self.home = Path(facts["hermes_home"])

    def get_tool_schemas(self):
        return []

    def sync_turn(self, user_content, assistant_content, *, session_id="", **facts):
        if (self.home / "down").exists():
            raise OSError("the service is down")
        if (self.home / "slow").exists():
            time.sleep(0.05)
        self.note("turn", user_content, assistant_content, facts["idempotency_key"], facts["timestamp"])

    def on_memory_write(self, action, target, content, metadata=None, **facts):
        self.note("write", action, target, content)

    def note(self, *words):
        with open(self.home / "diary.jsonl", "a") as file:
            file.write(json.dumps(words) + "\\n")
            file.flush()
            os.fsync(file.fileno())


def register(ctx):
    ctx.register_memory_provider(Diary())
"""


def _lines(home: Path, kind: str) -> list[Any]:
    path = home / "diary.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line[1:] for line in lines if line[0] == kind]


def _talk(home: Path, count: int, name: str = "talk") -> None:
    with memoranda.open(home) as memory, memory.session(session_id=name) as session:
        for number in range(count):
            with session.turn(f"question {number} of {name}") as turn:
                turn.done(f"answer {number}")


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    home = tmp_path / "home"
    add_plugin(home, "diary", _DIARY)
    _talk(home, 3)
    with memoranda.open(home) as memory:
        memory.remember("The shop uses pnpm.")
        memory.remember("Ana prefers tea.", target="user")
        session = memory.session(session_id="interrupted")
        with pytest.raises(RuntimeError), session.turn("a question without an answer"):
            raise RuntimeError
        memory.for_user("ben").remember("Ben likes rain.")
        memory.sessions.create_session("nothing was said in it", "cli")
    terminal = Terminal(home)
    terminal.ok("provider", "use", "diary")
    return terminal


@pytest.mark.slow
def test_a_new_provider_gets_what_was_there_before_it_once(terminal: Terminal) -> None:
    """Entries and completed turns, with the time at which they were said; nothing of another user."""
    plan = terminal.json("provider", "backfill", "--dry-run", "--price", "2.5")
    assert (plan["turns"], plan["entries"], plan["later"]) == (3, 2, 0)
    assert plan["tokens"] > 20 and plan["cost_usd"] == round(plan["tokens"] * 2.5e-6, 4)
    assert "Nothing is sent without --yes" in terminal.refused("provider", "backfill")
    assert _lines(terminal.home, "turn") == []
    assert terminal.json("provider", "backfill", "--yes")["delivered"] == 5
    turns = _lines(terminal.home, "turn")
    assert [turn[:2] for turn in turns] == [[f"question {n} of talk", f"answer {n}"] for n in range(3)]
    assert all(abs(time.time() - turn[3]) < GIVE_UP for turn in turns)
    assert _lines(terminal.home, "write") == [
        ["add", "memory", "The shop uses pnpm."],
        ["add", "user", "Ana prefers tea."],
    ]
    _talk(terminal.home, 1, "later")
    assert len(_lines(terminal.home, "turn")) == 4
    assert "has been given everything" in terminal.ok("provider", "backfill", "--yes")
    assert len(_lines(terminal.home, "turn")) == 4


@pytest.mark.slow
def test_a_limit_leaves_the_rest_for_the_next_call(terminal: Terminal) -> None:
    """The oldest turns come first."""
    answer = terminal.json("provider", "backfill", "diary", "--yes", "--limit", "2")
    assert (answer["delivered"], answer["later"]) == (4, 1)
    assert [turn[0] for turn in _lines(terminal.home, "turn")] == ["question 0 of talk", "question 1 of talk"]
    assert terminal.json("provider", "backfill", "--yes", "--limit", "2")["delivered"] == 1
    assert len(_lines(terminal.home, "turn")) == 3 and len(_lines(terminal.home, "write")) == 2


@pytest.mark.slow
def test_what_a_provider_refuses_waits_and_arrives_later(terminal: Terminal) -> None:
    """The command fails and says why; repeating it delivers the rest."""
    (terminal.home / "down").touch()
    result = terminal.run("provider", "backfill", "--yes")
    assert result.exit_code != 0 and "the service is down" in result.output
    (terminal.home / "down").unlink()
    assert "3 that it has not received yet would be delivered" in terminal.ok("provider", "backfill", "--dry-run")
    assert terminal.json("provider", "backfill", "--yes")["delivered"] == 3
    assert len(_lines(terminal.home, "turn")) == 3
    assert "has been given everything" in terminal.ok("provider", "backfill", "--yes")


@pytest.mark.slow
def test_a_backfill_that_is_killed_continues(tmp_path: Path) -> None:
    """Every turn arrives; the one that was running when the process died may arrive again, with its key."""
    home = tmp_path / "home"
    add_plugin(home, "diary", _DIARY)
    _talk(home, 60)
    terminal = Terminal(home)
    terminal.ok("provider", "use", "diary")
    (home / "slow").touch()
    command = [sys.executable, "-m", "memoranda", "--home", str(home), "provider", "backfill", "--yes", "--json"]
    process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + GIVE_UP
    while len(_lines(home, "turn")) < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(_lines(home, "turn"))
    assert 10 <= before < 60
    (home / "slow").unlink()
    terminal.ok("provider", "backfill", "--yes")
    turns = _lines(home, "turn")
    assert {turn[0] for turn in turns} == {f"question {n} of talk" for n in range(60)}
    assert len(turns) <= 61 and len({turn[2] for turn in turns}) == 60


@pytest.mark.slow
def test_honcho_gets_the_existing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As conclusions about the assistant and the user, and the turns as messages."""
    for name in ("HONCHO_API_KEY", "HONCHO_BASE_URL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    _talk(tmp_path, 2)
    with memoranda.open(tmp_path) as memory:
        memory.remember("The shop uses pnpm.")
        memory.remember("Ana prefers tea.", target="user")
    terminal = Terminal(tmp_path)
    with HonchoDouble.start() as double:
        terminal.ok("provider", "setup", "honcho", "--set", f"baseUrl={double.url}", "--set", f"api_key={KEY}")
        assert terminal.json("provider", "backfill", "--yes")["delivered"] == 4
        turns = [text for number in range(2) for text in (f"question {number} of talk", f"answer {number}")]
        received = {*turns, "The shop uses pnpm.", "Ana prefers tea."}
        assert sorted(double.workspaces["memoranda"].stored_texts()) == sorted(received)
