"""The plugin in OpenClaw needs no package, never makes the host fail, and has a turn on disk at once."""

import json
import shutil
import subprocess
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
from tests.integrations.hosts.openclaw_stub import call_plugin
from tests.timing import GIVE_UP, HANG, wait_until, without_waiting

_MIN_NODE = 18


def _find_node() -> str | None:
    found = shutil.which("node")
    if found is None or sys.platform == "win32":
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return found if version.startswith("v") and int(version[1:].split(".")[0]) >= _MIN_NODE else None


NODE = _find_node()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NODE is None, reason=f"there is no Node {_MIN_NODE} or later here")]
OWN = {"sessionId": "s1", "sessionKey": "agent:main:main", "agentId": "main", "trigger": "user"}
PROMPT = ["hook", "before_prompt_build", {"prompt": "Which port?", "messages": []}, OWN]
MESSAGES = [
    {"role": "user", "content": "an earlier one"},
    {"role": "assistant", "content": [{"type": "text", "text": "earlier"}]},
    {"role": "user", "content": [{"type": "text", "text": "Which port?"}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "toolCall", "name": "read"}]},
    {"role": "toolResult", "content": [{"type": "text", "text": "port=5433"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "5433."}]},
]
TURN = ["hook", "agent_end", {"messages": MESSAGES, "success": True}, OWN]


class Machine:
    """A state directory of OpenClaw with the plugin, which calls a given program."""

    def __init__(self, root: Path, *words: str) -> None:
        self.root, self.home = root / ".openclaw", root / "memory"
        command = LaunchCommand(words, ("--home", str(self.home)), str(self.home))
        changes = plan_install(HOSTS["openclaw"], HostEnvironment(root, "linux"), command)
        apply_changes(changes, root / "backups")

    def call(self, *calls: list[Any], config: dict[str, Any] | None = None) -> list[Any]:
        assert NODE is not None
        return call_plugin(NODE, self.root / "extensions" / "memoranda" / "index.js", *calls, config=config)

    def waiting(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.home.glob("host-turns/openclaw/*.json"))]


def _program(root: Path, script: str) -> str:
    path = root / "memoranda"
    path.write_text(f'#!/bin/sh\necho "$*" >> "{root}/calls"\n{script}\n')
    path.chmod(0o755)
    return str(path)


def test_each_call_reaches_the_program_with_its_payload(tmp_path: Path) -> None:
    """The notes are read once for a session, recall for each prompt; the answer of a tool arrives unchanged."""
    machine = Machine(tmp_path, _program(tmp_path, 'cat | tee -a "$0.in" > /dev/null; echo \'{"text": "told"}\''))
    search = ["tool", "memoranda_search", {"query": "port"}, OWN]
    first, second, answer, tools = machine.call(PROMPT, PROMPT, search)
    assert first == second == {"appendSystemContext": "told", "prependContext": "told"}
    assert json.loads(answer["content"][0]["text"]) == {"text": "told"}
    assert tools == ["memoranda_search", "memoranda_memory"]
    events = [line.split()[2] for line in (tmp_path / "calls").read_text().splitlines()]
    assert sorted(events) == ["SessionStart", "ToolCall", "UserPromptSubmit", "UserPromptSubmit"]
    assert '"prompt":"Which port?"' in (tmp_path / "memoranda.in").read_text()


def test_a_prompt_that_no_person_wrote_gets_no_recall(tmp_path: Path) -> None:
    """Heartbeats and jobs still have the notes."""
    machine = Machine(tmp_path, _program(tmp_path, 'cat > /dev/null; echo \'{"text": "told"}\''))
    (answer, _) = machine.call([*PROMPT[:3], {**OWN, "trigger": "heartbeat"}])
    assert answer == {"appendSystemContext": "told"}


@pytest.mark.parametrize("script", ["exit 1", "echo '{ broken'", "echo '[1]'", f"exec sleep {HANG}"])
def test_a_program_that_fails_or_hangs_costs_an_answer_and_no_turn(script: str, tmp_path: Path) -> None:
    """Recall is empty after a deadline, and the turn is on disk, without reasoning and tool calls."""
    machine = Machine(tmp_path, _program(tmp_path, f'[ "$3" = UserPromptSubmit ] || exit 0\n{script}'))
    with without_waiting():
        answer, _, _ = machine.call(PROMPT, TURN)
    assert answer == {}
    (turn,) = machine.waiting()
    assert [message["content"] for message in turn["messages"]] == ["Which port?", "5433."]
    database = machine.root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    assert (turn["session_id"], turn["user"], turn["database"]) == ("s1", None, str(database))


def test_a_program_that_is_gone_loses_no_turn(tmp_path: Path) -> None:
    """This happens when Memoranda is moved while OpenClaw runs."""
    machine = Machine(tmp_path, str(tmp_path / "gone" / "memoranda"))
    prompt, _, answer, _ = machine.call(PROMPT, TURN, ["tool", "memoranda_search", {}, OWN])
    assert prompt == {}
    assert json.loads(answer["content"][0]["text"])["success"] is False
    assert len(machine.waiting()) == 1


@pytest.mark.parametrize(
    ("key", "user"),
    [
        ("agent:main:main", None),
        ("agent:main:cron:daily", None),
        ("agent:main:whatsapp:group:42", "openclaw:whatsapp:group:42"),
        ("agent:main:telegram:direct:7", "openclaw:telegram:direct:7"),
        ("agent:main:telegram:direct:1", None),
    ],
)
def test_groups_and_other_people_have_separate_memories(key: str, user: str | None, tmp_path: Path) -> None:
    """This is true for hooks and tools; a session that the settings name as the owner's uses the owner's memory."""
    machine = Machine(tmp_path, _program(tmp_path, "cat > /dev/null"))
    context = {**OWN, "sessionKey": key}
    calls = [[*call[:3], context] for call in (PROMPT, TURN, ["tool", "memoranda_search", {}, OWN])]
    machine.call(*calls, config={"owner": ["agent:main:telegram:direct:1"]})
    assert machine.waiting()[0]["user"] == user
    lines = [line for line in (tmp_path / "calls").read_text().splitlines() if "capture" not in line]
    assert len(lines) == 3
    assert all(line.endswith(f"--user {user}") if user else "--user" not in line for line in lines)


def test_with_the_real_program_a_turn_is_recorded_and_recalled_elsewhere(tmp_path: Path) -> None:
    """The recalled text is fenced, and the conversation that it comes from does not get it."""
    machine = Machine(tmp_path, sys.executable, "-P", "-m", "memoranda")
    said = "The heron cluster in staging listens on port 5433."
    messages = [{"role": "user", "content": "Where is the heron cluster?"}, {"role": "assistant", "content": said}]
    machine.call(["hook", "agent_end", {"messages": messages}, OWN])
    deadline = time.monotonic() + GIVE_UP
    wait_until(lambda: not machine.waiting(), every=0.1)
    with memoranda.open(machine.home) as memory:
        assert [row["content"] for row in memory.sessions.get_messages("openclaw-s1")][1] == said
    event = {"prompt": "On which port does the heron cluster in staging listen?"}
    calls = [["hook", "before_prompt_build", event, {**OWN, "sessionId": name}] for name in ("s2", "s1")]
    other, own, _ = machine.call(*calls)
    while not other and time.monotonic() < deadline:
        # The plugin does not wait for a busy machine.
        other, own, _ = machine.call(*calls)
    assert said in other["prependContext"] and other["prependContext"].startswith("<memory-context>")
    assert own == {}
