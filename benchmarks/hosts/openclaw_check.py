"""Checks the installation into OpenClaw with the real program: recall, tools, recorded turns, and removal.

    npm install --prefix /tmp/openclaw openclaw@2026.9.6        # needs Node 24.16 or later
    .venv/bin/python benchmarks/hosts/openclaw_check.py --openclaw /tmp/openclaw/node_modules/.bin/openclaw
    .venv/bin/python benchmarks/hosts/openclaw_check.py --runs 4 --json

OpenClaw runs in a home of its own against a local server that speaks the chat completions API, so no account is needed.
Each turn runs in a process of its own, or with --gateway in one gateway for all. By default OpenClaw offers its tools
behind a tool search; with --direct-tools it offers them one by one.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.plugin_check import PluginMachine, check, read_files, scripted_model
from memoranda.testing.scripted.server import ScriptedServer

_START_TIMEOUT = 120.0
CONFIG = """{{
  // my settings
  agents: {{ defaults: {{ model: {{ primary: "scripted/one" }} }} }},
  models: {{
    mode: "merge",
    providers: {{
      scripted: {{
        baseUrl: "{url}", apiKey: "none", api: "openai-completions",
        models: [{{
          id: "one", name: "One", reasoning: false, input: ["text"], contextWindow: 196608, maxTokens: 8192,
          cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }},
        }}],
      }},
    }},
  }},
  gateway: {{ mode: "local", port: {port}, bind: "loopback", auth: {{ mode: "token", token: "check" }} }},
  tools: {{ toolSearch: {tool_search} }},
  plugins: {{ slots: {{ memory: "memory-core" }} }}, // the memory of before
}}
"""


class OpenClawMachine(PluginMachine):
    """A user's home directory with OpenClaw in it."""

    host, title = "openclaw", "OpenClaw"
    direct_tools = False
    uses_gateway = False
    _turns = 0
    _gateway: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> Path:
        return self.user_home / ".openclaw"

    def variables(self) -> dict[str, str]:
        """Returns the PATH with Node first, in case another one is on it."""
        return {"PATH": os.pathsep.join([str(Path(self.program[0]).parent), os.environ["PATH"]])}

    def prepare(self) -> None:
        (self.root / "workspace").mkdir(parents=True)
        tool_search = "false" if self.direct_tools else '{ mode: "tools" }'
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]
        config = CONFIG.format(url=self.server.openai_url, port=self._port, tool_search=tool_search)
        (self.root / "openclaw.json").write_text(config)
        (self.root / "workspace" / "MEMORY.md").write_text("The office cat is called Quark.\n")
        (self.root / "workspace" / "USER.md").write_text("Prefers short answers.\n")

    def ask(self, prompt: str) -> None:
        self._turns += 1
        where = [] if self.uses_gateway else ["--local"]
        if self.uses_gateway and self._gateway is None:
            self._start_gateway()
        self.run([*self.program, "agent", *where, "--session-key", f"agent:main:run-{self._turns}", "-m", prompt])

    def _start_gateway(self) -> None:
        nothing = subprocess.DEVNULL
        self._gateway = subprocess.Popen(
            [*self.program, "gateway", "run"], env=self.environment, stdin=nothing, stdout=nothing, stderr=nothing
        )
        deadline = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < deadline:
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.5)
        raise SystemExit(f"The gateway did not listen within {_START_TIMEOUT:g} seconds.")

    def close(self) -> None:
        """Stops the gateway, if there is one."""
        if self._gateway is not None:
            self._gateway.terminate()
            self._gateway.wait()

    def version(self) -> str:
        return self.run([*self.program, "--version"]).strip().splitlines()[-1]

    def settings(self) -> dict[str, bytes]:
        return read_files(self.root, "openclaw.json", "extensions")

    def curated_files(self) -> dict[str, bytes]:
        return read_files(self.root, "workspace/MEMORY.md", "workspace/USER.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openclaw", default=shutil.which("openclaw"), help="the program; the one on the PATH")
    parser.add_argument("--node", default=shutil.which("node"), help="the Node to run it with; the one on the PATH")
    parser.add_argument("--runs", type=int, default=10, help="turns, each in a session of its own")
    parser.add_argument("--gateway", action="store_true", help="run the turns in a gateway")
    parser.add_argument("--direct-tools", action="store_true", help="switch OpenClaw's tool search off")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    if not options.openclaw or not options.node:
        raise SystemExit("openclaw or node is not on the PATH; install it with npm, or name it with --openclaw.")
    OpenClawMachine.direct_tools, OpenClawMachine.uses_gateway = options.direct_tools, options.gateway
    program = [str(Path(options.node).absolute()), str(Path(options.openclaw).resolve())]
    with TemporaryDirectory(ignore_cleanup_errors=True) as root, ScriptedServer(scripted_model) as server:
        machine = OpenClawMachine(Path(root), program, server)
        try:
            counts = check(machine, options.runs)
        finally:
            machine.close()
    print(json.dumps(asdict(counts), indent=2) if options.json else counts.format())
    sys.exit(0 if counts.is_complete() else 1)


if __name__ == "__main__":
    main()
