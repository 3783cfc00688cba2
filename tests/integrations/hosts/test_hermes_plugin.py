"""The provider in Hermes needs no package of ours, never makes the host fail, and has a turn on disk at once."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.install_plan import plan_install
from memoranda.integrations.hosts.settings_change import apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from tests.integrations.hosts.hermes_stub import call_provider
from tests.timing import GIVE_UP, HANG, without_waiting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the programs here are shell scripts"),
]
Call = tuple[str, list[Any], dict[str, Any]]
START: Call = ("initialize", ["s1"], {"hermes_home": "/nowhere", "platform": "cli"})
TURN: Call = ("sync_turn", ["Which port?", "5433."], {"session_id": "s1"})


class Machine:
    """A Hermes home with the provider, which calls a given program."""

    def __init__(self, root: Path, *words: str) -> None:
        self.hermes_home, self.home = root / ".hermes", root / "memory"
        command = LaunchCommand(words, ("--home", str(self.home)), str(self.home))
        changes = plan_install(HOSTS["hermes"], HostEnvironment(root, "linux"), command)
        apply_changes(changes, root / "backups")

    def call(self, *calls: Call) -> list[Any]:
        return call_provider(self.hermes_home, *calls)

    def waiting(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.home.glob("host-turns/hermes/*.json"))]


def _program(root: Path, script: str) -> str:
    path = root / "memoranda"
    path.write_text(f'#!/bin/sh\necho "$*" >> "{root}/calls"\n{script}\n')
    path.chmod(0o755)
    return str(path)


def test_each_call_reaches_the_program_with_its_payload(tmp_path: Path) -> None:
    """What the program answers reaches Hermes: the notes once, recall for a prompt, the answer of a tool unchanged."""
    machine = Machine(tmp_path, _program(tmp_path, 'cat | tee -a "$0.in" > /dev/null; echo \'{"text": "told"}\''))
    tools, available, _, block, recalled, answer = machine.call(
        ("get_tool_schemas", [], {}),
        ("is_available", [], {}),
        START,
        ("system_prompt_block", [], {}),
        ("prefetch", ["Which port?"], {}),
        ("handle_tool_call", ["memoranda_search", {"query": "port"}], {}),
    )
    assert available is True
    assert [tool["name"] for tool in tools] == ["memoranda_search", "memoranda_memory"]
    assert all(tool["description"] and tool["parameters"]["type"] == "object" for tool in tools)
    assert (block, recalled, json.loads(answer)) == ("told", "told", {"text": "told"})
    assert [line.split()[:3] for line in (tmp_path / "calls").read_text().splitlines()] == [
        ["hook", "hermes", event] for event in ("SessionStart", "UserPromptSubmit", "ToolCall")
    ]
    assert '"prompt": "Which port?"' in (tmp_path / "memoranda.in").read_text()


@pytest.mark.parametrize("script", ["exit 1", "echo '{ broken'", "echo '[1]'", f"exec sleep {HANG}"])
def test_a_program_that_fails_or_hangs_costs_an_answer_and_no_turn(script: str, tmp_path: Path) -> None:
    """Recall is empty after a deadline, and the turn is on disk."""
    machine = Machine(tmp_path, _program(tmp_path, f'[ "$3" = UserPromptSubmit ] || exit 0\n{script}'))
    with without_waiting():
        _, recalled, _ = machine.call(START, ("prefetch", ["Which port?"], {}), TURN)
    assert recalled == ""
    (turn,) = machine.waiting()
    assert [message["content"] for message in turn["messages"]] == ["Which port?", "5433."]
    assert (turn["session_id"], turn["user"], turn["database"]) == ("s1", None, "/nowhere/state.db")


def test_a_program_that_is_gone_is_not_available_but_loses_no_turn(tmp_path: Path) -> None:
    """This happens when Memoranda is moved while Hermes runs."""
    machine = Machine(tmp_path, str(tmp_path / "gone" / "memoranda"))
    available, _, _, answer = machine.call(
        ("is_available", [], {}), START, TURN, ("handle_tool_call", ["memoranda_search", {}], {})
    )
    assert available is False
    assert json.loads(answer)["success"] is False
    assert len(machine.waiting()) == 1


@pytest.mark.parametrize(
    ("facts", "user"),
    [
        ({"platform": "cli"}, None),
        ({"platform": "telegram", "user_id": "7", "chat_id": "7", "chat_type": "dm"}, "telegram:7"),
        ({"platform": "discord", "user_id": "7", "chat_id": "42", "chat_type": "group"}, "discord:chat:42"),
    ],
)
def test_users_of_a_gateway_have_separate_memories(facts: dict[str, str], user: str | None, tmp_path: Path) -> None:
    """Neither another person nor a group gets the owner's memory."""
    machine = Machine(tmp_path, _program(tmp_path, ""))
    machine.call(("initialize", ["s1"], {"hermes_home": str(machine.hermes_home), **facts}), TURN)
    assert machine.waiting()[0]["user"] == user
    first = (tmp_path / "calls").read_text().splitlines()[0]
    assert first.endswith(f"--user {user}") if user else "--user" not in first


def test_an_account_that_is_named_as_the_owner_s_uses_the_owner_s_memory(tmp_path: Path) -> None:
    """Hermes's own settings name it; other accounts still have separate memories."""
    machine = Machine(tmp_path, _program(tmp_path, ""))
    settings = {"memory": {"provider": "memoranda", "memoranda": {"owner": ["telegram:7"]}}}
    (machine.hermes_home / "config.yaml").write_text(json.dumps(settings))
    for user_id in ("7", "8"):
        facts = {"hermes_home": str(machine.hermes_home), "platform": "telegram", "user_id": user_id}
        machine.call(("initialize", ["s1"], facts), TURN)
    assert [turn["user"] for turn in machine.waiting()] == [None, "telegram:8"]


def test_an_interrupted_turn_is_recorded_at_the_end_of_the_session(tmp_path: Path) -> None:
    """Hermes does not sync it; a turn that was synced is not written twice."""
    machine = Machine(tmp_path, _program(tmp_path, ""))
    started: Call = ("on_turn_start", [1, "Which port?"], {})
    end: Call = ("on_session_end", [[]], {})
    machine.call(START, started, TURN, end, ("on_session_switch", ["s2"], {"reset": True}), started, end, end)
    assert [(turn["session_id"], len(turn["messages"])) for turn in machine.waiting()] == [("s1", 2), ("s2", 0)]


def test_with_the_real_program_a_turn_is_recorded_and_recalled_elsewhere(tmp_path: Path) -> None:
    """A host without a database of its own sessions still has its turns recorded, as the provider gave them."""
    machine = Machine(tmp_path, sys.executable, "-P", "-m", "memoranda")
    said = "The heron cluster in staging listens on port 5433."
    machine.call(START, ("sync_turn", ["Where is the heron cluster?", said], {"session_id": "s1"}))
    deadline = time.monotonic() + GIVE_UP
    while machine.waiting() and time.monotonic() < deadline:
        time.sleep(0.1)
    with memoranda.open(machine.home) as memory:
        assert [row["content"] for row in memory.sessions.get_messages("hermes-s1")][1] == said
    prompt = "On which port does the heron cluster in staging listen?"
    other = ("initialize", ["s2"], {"hermes_home": str(machine.hermes_home), "platform": "cli"})
    calls: list[Call] = [
        other,
        ("prefetch", [prompt], {}),
        ("prefetch", [prompt], {"session_id": "s1"}),
        ("handle_tool_call", ["memoranda_search", {"query": "heron"}], {}),
    ]
    _, recalled, own, answer = machine.call(*calls)
    while not (recalled and said in answer) and time.monotonic() < deadline:
        # The plugin does not wait for a busy machine.
        _, recalled, own, answer = machine.call(*calls)
    assert said in recalled and "<memory-context>" not in recalled and "memoranda_search" in recalled
    assert own == ""
    assert said in answer
