"""Checks the installation into Claude Code with the real program: memory, evidence, tools, recording, and removal.

    npm install --prefix /tmp/claude @anthropic-ai/claude-code@2.1.197
    .venv/bin/python benchmarks/hosts/claude_code_check.py --claude /tmp/claude/node_modules/.bin/claude
    .venv/bin/python benchmarks/hosts/claude_code_check.py --runs 3 --json

Claude Code runs in a temporary home against a local server that speaks Anthropic's Messages API, so no account is
needed.
"""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.check_command import CheckCounts, create_parser, program_path
from benchmarks.hosts.machine import ANSWER, ASKING, Machine, changed_files, choose_prompts, shows_memory
from benchmarks.hosts.model_server import REPLY
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer


@dataclass
class Counts(CheckCounts):
    """What the requests and the record contained, over all runs."""

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

    def format(self) -> str:
        lines = [
            f"{self.version}, {self.runs} first requests of claude -p",
            f"memory                         {self.memory} of {self.runs}",
            f"tools                          {self.tools} of {self.runs}",
            f"evidence when it is relevant   {self.evidence_when_asking} of {self.asking}",
            f"evidence otherwise             {self.evidence_otherwise} of {self.runs - self.asking}",
            f"sessions recorded              {self.recorded} of {self.runs}",
            f"files changed after uninstall  {', '.join(self.changed_files_after_uninstall) or 'none'}",
        ]
        return "\n".join(lines)


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


def main() -> None:
    options = create_parser(__doc__, "claude", 20, "how many sessions to start").parse_args()
    claude = program_path(options, "claude")
    with TemporaryDirectory() as root, ScriptedServer(lambda request: Reply(REPLY)) as server:
        counts = check(ClaudeCodeMachine(Path(root), claude, server), options.runs)
    counts.report(as_json=options.json)


if __name__ == "__main__":
    main()
