"""The plugin of OpenCode: what it adds to a prompt, and what it records."""

import json
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.importers.coding_agents.opencode import OpenCode
from memoranda.importers.importer import Importer
from memoranda.integrations.hooks.capture import capture_transcript
from memoranda.integrations.hosts.host import HostEnvironment, LaunchCommand
from memoranda.integrations.hosts.install_plan import plan_install
from memoranda.integrations.hosts.settings_change import apply_changes
from memoranda.integrations.hosts.supported_hosts import HOSTS
from tests.importers.opencode_sessions import SESSION, TALK, add_session, begin_database
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

_NODE = shutil.which("node")
_AGENT, _OTHER = "ses_26000000000000000000agent1", "ses_25000000000000000000other1"
# What OpenCode does with a plugin: it calls the functions for a session, one of its sub-agents, and a prompt in each.
_HOST = """
import { Memoranda } from "PLUGIN"
const hooks = await Memoranda({})
const say = async (sessionID, text, extra = {}) => {
  const part = { id: "prt_1e2e03575001GLBTBwqXMkCUIW", type: "text", text, ...extra }
  const output = { message: { id: "msg_1" }, parts: [part] }
  await hooks["chat.message"]({ sessionID }, output)
  console.log(JSON.stringify(output.parts))
}
const info = { id: "b", parentID: "a" }
await hooks.event({ event: { type: "session.created", properties: { sessionID: "b", info } } })
await say("a", "Which port?")
await say("b", "Look for callers")
await say("a", "added by the program", { synthetic: true })
await hooks.event({ event: { type: "session.compacted", properties: { sessionID: "a" } } })
await say("a", "Which port?")
const expand = async (type, words) => {
  const parts = [{ type: "file" }, { type, text: "Greet the person" }]
  await hooks["command.execute.before"]({ command: "greet", sessionID: "a", arguments: words }, { parts })
  console.log(JSON.stringify(parts))
  return parts[1].metadata
}
await expand("subtask", "")
await say("a", "Greet the person", { metadata: await expand("text", "Ana B.") })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "b" } } })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "a" } } })
"""
# A program in our place: it writes down its words and its input, and answers.
_PROGRAM = """
import json, sys
words = sys.argv[2:]
with open(sys.argv[1], "a") as stream:
    print(json.dumps([*words, "" if "capture" in words else sys.stdin.read()]), file=stream)
print(json.dumps({"hookSpecificOutput": {"hookEventName": "x", "additionalContext": "remembered"}}))
"""


def _run(tmp_path: Path, command: LaunchCommand) -> list[list[dict[str, Any]]]:
    """Installs the plugin, runs it in Node, and returns the parts of each message."""
    environment = HostEnvironment(tmp_path / "user", "linux")
    apply_changes(plan_install(HOSTS["opencode"], environment, command), tmp_path / "backups")
    plugin = tmp_path / "user" / ".config" / "opencode" / "plugins" / "memoranda.js"
    module = plugin.with_suffix(".mjs")
    shutil.copy(plugin, module)
    host = tmp_path / "host.mjs"
    host.write_text(_HOST.replace("PLUGIN", str(module)))
    done = subprocess.run([str(_NODE), str(host)], capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _wait_for_lines(file: Path, count: int) -> list[str]:
    """Waits until a detached process has written the last line of a file; returns the lines."""
    wait_until(lambda: len(file.read_text().splitlines()) >= count)
    return file.read_text().splitlines()


@pytest.mark.skipif(_NODE is None, reason="Node is not installed")
def test_a_prompt_gets_context_and_a_session_is_recorded_when_it_is_idle(tmp_path: Path) -> None:
    """Prompts that the model writes for sub-agents, and parts that OpenCode adds to a message, get no context."""
    program, calls = tmp_path / "program.py", tmp_path / "calls"
    program.write_text(_PROGRAM)
    command = LaunchCommand((sys.executable, str(program), str(calls)), ("--home", "/my home"))
    first, of_agent, synthetic, again, *_ = _run(tmp_path, command)
    assert [part["text"] for part in first] == ["Which port?", "remembered"]
    added = first[1]
    assert {**added, "id": ""} == {
        "id": "", "sessionID": "a", "messageID": "msg_1", "type": "text", "text": "remembered", "synthetic": True,
    }  # fmt: skip
    assert added["id"].startswith("prt_") and added["id"] > first[0]["id"] and len(added["id"]) == len(first[0]["id"])
    assert (len(of_agent), len(synthetic), len(again)) == (1, 1, 2)
    lines = [json.loads(line) for line in _wait_for_lines(calls, 4)]
    home = ["--home", "/my home"]
    assert [line[:-1] for line in lines[:2]] == [["hook", "opencode", "UserPromptSubmit", *home]] * 2
    payloads = [json.loads(line[-1]) for line in lines[:2]]
    assert [payload["source"] for payload in payloads] == ["", "compact"]
    assert {(payload["session_id"], payload["prompt"]) for payload in payloads} == {("a", "Which port?")}
    (capture,) = lines[3:]
    assert capture[:4] == ["hook", "opencode", "capture", "--transcript"] and capture[4].endswith("opencode.db")
    assert capture[5:-1] == ["--session", "a", *home]


@pytest.mark.skipif(_NODE is None, reason="Node is not installed")
def test_a_program_that_is_gone_does_not_stop_a_prompt(tmp_path: Path) -> None:
    """The prompt stays as it is."""
    shown = _run(tmp_path, LaunchCommand((str(tmp_path / "moved" / "memoranda"),)))
    assert [len(parts) for parts in shown] == [1, 1, 1, 1, 2, 2, 1]


@pytest.mark.skipif(_NODE is None, reason="Node is not installed")
def test_a_command_is_stored_and_delivered_as_it_was_typed(tmp_path: Path) -> None:
    """Beside the text that it expands to, which stays what the model gets."""
    program, calls = tmp_path / "program.py", tmp_path / "calls"
    program.write_text(_PROGRAM)
    *_, task, command, said = _run(tmp_path, LaunchCommand((sys.executable, str(program), str(calls))))
    assert [part.get("metadata") for part in task] == [None, {"memoranda_typed": "/greet"}]
    assert [part.get("metadata") for part in command] == [None, {"memoranda_typed": "/greet Ana B."}]
    assert [part["text"] for part in said] == ["Greet the person", "remembered"]
    delivered = [json.loads(line)[-1] for line in _wait_for_lines(calls, 3)[:3]]
    assert [json.loads(payload)["prompt"] for payload in delivered] == ["Which port?", "Which port?", "/greet Ana B."]


def test_one_session_of_the_database_is_recorded_with_its_sub_agents(tmp_path: Path) -> None:
    """Other sessions are left to an import, which adds nothing to this one; what a plugin added is skipped."""
    talk = [(info, [*parts, {"type": "text", "text": "ours", "synthetic": True}]) for info, parts in TALK]
    with closing(begin_database(tmp_path / "opencode")) as connection:
        add_session(connection, talk)
        add_session(connection, TALK, session=_AGENT, parent=SESSION)
        add_session(connection, TALK, session=_OTHER)
    database = tmp_path / "opencode" / "opencode.db"
    with memoranda.open(tmp_path / "home") as memory:
        summary = capture_transcript(memory, database, "opencode", SESSION)
        assert summary is not None and set(summary.sessions.values()) == {"new"}
        assert set(summary.sessions) == {f"opencode-{SESSION}", f"opencode-{_AGENT}"}
        assert "ours" not in [row["content"] for row in memory.sessions.get_messages(f"opencode-{SESSION}")]
        agent = memory.sessions.get_session(f"opencode-{_AGENT}")
        assert agent is not None and agent["parent_session_id"] == f"opencode-{SESSION}"
        assert capture_transcript(memory, database, "opencode", "ses_unknown") is None
        importer = Importer(memory.home.root, memory.sessions, rescan=True)
        reader = OpenCode()
        imported = importer.apply(reader, reader.scan(tmp_path / "opencode"))
        importer.close()
    assert [name for name, result in imported.sessions.items() if result == "new"] == [f"opencode-{_OTHER}"]


def test_a_database_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """The log of hooks can then name it."""
    database = tmp_path / "opencode.db"
    database.write_bytes(b"no database")
    with memoranda.open(tmp_path / "home") as memory:
        summary = capture_transcript(memory, database, "opencode", SESSION)
    assert summary is not None and summary.problem_count == 1
