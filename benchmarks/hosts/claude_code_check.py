"""Checks the installation into Claude Code with the real program: memory, evidence, tools, recording, and removal.

    npm install --prefix /tmp/claude @anthropic-ai/claude-code@2.1.197
    .venv/bin/python benchmarks/hosts/claude_code_check.py --claude /tmp/claude/node_modules/.bin/claude
    .venv/bin/python benchmarks/hosts/claude_code_check.py --runs 3 --json

Claude Code runs in a temporary home against a local server that speaks Anthropic's Messages API, so no account is
needed.
"""

import argparse
import json
import shutil
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.machine import ANSWER, ASKING, NOTE, OTHERS, Machine, changed_files
from memoranda.llm.model import Reply
from memoranda.testing.scripted.server import ScriptedServer

REPLY = "Noted."


@dataclass
class Counts:
    """What the requests and the record contained, over all runs."""

    version: str = ""
    runs: int = 0
    memory: int = 0
    tools: int = 0
    asking: int = 0
    evidence_when_asking: int = 0
    evidence_otherwise: int = 0
    recorded: int = 0
    changed_files_after_uninstall: list[str] = field(default_factory=list)

    def is_complete(self) -> bool:
        """Whether every run had what it should have."""
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
        return self.read_files([self.user / ".claude" / "settings.json"]) | {"mcpServers": self._servers()}

    def _servers(self) -> bytes:
        file = self.user / ".claude.json"
        return json.dumps(json.loads(file.read_text()).get("mcpServers") if file.exists() else None).encode()


def check(machine: ClaudeCodeMachine, runs: int) -> Counts:
    """Installs, runs Claude Code, uninstalls, and counts what was seen."""
    machine.fill_home()
    counts = Counts(machine.version(), runs)
    before = machine.settings()
    machine.memoranda("install", "claude-code", "--yes")
    for number in range(runs):
        prompt = OTHERS[number] if number % 2 else ASKING
        request = machine.ask(prompt)
        counts.memory += NOTE in request
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


def _format_counts(counts: Counts) -> str:
    lines = [
        f"{counts.version}, {counts.runs} first requests of claude -p",
        f"memory                         {counts.memory} of {counts.runs}",
        f"tools                          {counts.tools} of {counts.runs}",
        f"evidence when it is relevant   {counts.evidence_when_asking} of {counts.asking}",
        f"evidence otherwise             {counts.evidence_otherwise} of {counts.runs - counts.asking}",
        f"sessions recorded              {counts.recorded} of {counts.runs}",
        f"files changed after uninstall  {', '.join(counts.changed_files_after_uninstall) or 'none'}",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claude", default=shutil.which("claude"), help="the program; the one on the PATH by default")
    parser.add_argument("--runs", type=int, default=20, help="how many sessions to start")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    if not options.claude:
        raise SystemExit("claude is not on the PATH; install it with npm, or name it with --claude.")
    claude = str(Path(options.claude).absolute())
    with TemporaryDirectory() as root, ScriptedServer(lambda request: Reply(REPLY)) as server:
        counts = check(ClaudeCodeMachine(Path(root), claude, server), options.runs)
    print(json.dumps(asdict(counts), indent=2) if options.json else _format_counts(counts))
    sys.exit(0 if counts.is_complete() else 1)


if __name__ == "__main__":
    main()
