"""Checks the installation into Claude Code with the real program: memory, evidence, tools, recording, and removal.

    npm install --global @anthropic-ai/claude-code@2.1.328
    .venv/bin/python -m pytest tests/acceptance/hosts/test_claude_code.py

Claude Code runs in a temporary home against a local server that speaks Anthropic's Messages API, so no account is
needed.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from tests.acceptance.hosts.machine import (
    ANSWER,
    ASKING,
    Machine,
    changed_files,
    choose_prompts,
    find_program,
    shows_memory,
)
from tests.acceptance.hosts.model_servers import REPLY

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)


@dataclass
class Counts:
    """What the requests and the record contained, over all runs."""

    version: str
    runs: int
    memory: int = 0
    tools: int = 0
    asking: int = 0
    evidence_when_asking: int = 0
    evidence_otherwise: int = 0
    recorded: int = 0
    changed_files_after_uninstall: list[str] = field(default_factory=list)

    def is_complete(self) -> bool:
        return (
            {self.memory, self.tools, self.recorded} == {self.runs}
            and (self.evidence_when_asking, self.evidence_otherwise) == (self.asking, 0)
            and not self.changed_files_after_uninstall
        )


class ClaudeCodeMachine(Machine):
    """A machine with Claude Code, which calls the scripted server."""

    def __init__(self, root: Path, claude: str, server: ScriptedServer) -> None:
        settings = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none"}
        super().__init__(root, {**settings, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"})
        self._claude, self._server = claude, server

    def ask(self, prompt: str) -> str:
        """Runs `claude -p` once and returns the text of its first request with tools."""
        start = len(self._server.received)
        self.run([self._claude, "-p", prompt])
        return next(request.text for request in self._server.received[start:] if request.json.get("tools"))

    def version(self) -> str:
        return self.run([self._claude, "--version"]).strip()

    def settings(self) -> dict[str, bytes]:
        """Returns the settings, without the counters that Claude Code keeps in the same file."""
        return self.read_files(self.user / ".claude" / "settings.json") | {"mcpServers": self._servers()}

    def _servers(self) -> bytes:
        file = self.user / ".claude.json"
        return json.dumps(json.loads(file.read_text()).get("mcpServers") if file.exists() else None).encode()


def check(machine: ClaudeCodeMachine, runs: int) -> Counts:
    """Installs, runs Claude Code, uninstalls, and counts what was seen."""
    machine.fill_home()
    counts = Counts(machine.version(), runs)
    before = machine.settings()
    machine.memoranda("install", "claude-code", "--yes")
    for prompt in choose_prompts(runs):
        request = machine.ask(prompt)
        counts.memory += shows_memory(request)
        counts.tools += "mcp__memoranda__session_search" in request
        if prompt == ASKING:
            counts.asking += 1
            counts.evidence_when_asking += ANSWER in request
        else:
            counts.evidence_otherwise += "<memory-context>" in request
    counts.recorded = machine.wait_for_sessions("claude-code", runs, REPLY)
    machine.memoranda("uninstall", "claude-code", "--yes")
    counts.changed_files_after_uninstall = changed_files(before, machine.settings())
    return counts


def test_claude_code_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings."""
    with ScriptedServer(lambda request: Reply(REPLY)) as server:
        counts = check(ClaudeCodeMachine(tmp_path, find_program("claude"), server), runs=20)
    assert counts.is_complete(), counts
