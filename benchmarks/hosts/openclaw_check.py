"""Checks the installation into OpenClaw with the real program: recall, tools, recorded turns, and removal.

    npm install --prefix /tmp/openclaw openclaw@2026.9.6        # needs Node 24.16 or later
    .venv/bin/python benchmarks/hosts/openclaw_check.py --openclaw /tmp/openclaw/node_modules/.bin/openclaw
    .venv/bin/python benchmarks/hosts/openclaw_check.py --runs 4 --json

OpenClaw runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed. Each turn runs in its own process, or with --gateway in one gateway for all. By default OpenClaw offers its
tools through a tool search; with --direct-tools it offers each tool directly.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.check_command import add_program_option, create_parser, program_path
from benchmarks.hosts.plugin_check import PluginMachine, check, scripted_model
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
  plugins: {{ slots: {{ memory: "memory-core" }} }}, // the memory before the installation
}}
"""


class OpenClawMachine(PluginMachine):
    """A machine with OpenClaw, which calls the scripted server."""

    host, title = "openclaw", "OpenClaw"
    direct_tools = False
    uses_gateway = False
    _turns = 0
    _gateway: subprocess.Popen[bytes] | None = None

    @property
    def host_directory(self) -> Path:
        return self.user / ".openclaw"

    def variables(self) -> dict[str, str]:
        """Returns a PATH on which this Node comes first."""
        return {"PATH": os.pathsep.join([str(Path(self.program[0]).parent), os.environ["PATH"]])}

    def prepare(self) -> None:
        (self.host_directory / "workspace").mkdir(parents=True)
        tool_search = "false" if self.direct_tools else '{ mode: "tools" }'
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]
        config = CONFIG.format(url=self.server.openai_url, port=self._port, tool_search=tool_search)
        (self.host_directory / "openclaw.json").write_text(config)
        (self.host_directory / "workspace" / "MEMORY.md").write_text("The office cat is called Quark.\n")
        (self.host_directory / "workspace" / "USER.md").write_text("Prefers short answers.\n")

    def ask(self, prompt: str) -> None:
        self._turns += 1
        flags = [] if self.uses_gateway else ["--local"]
        if self.uses_gateway and self._gateway is None:
            self._start_gateway()
        self.run([*self.program, "agent", *flags, "--session-key", f"agent:main:run-{self._turns}", "-m", prompt])

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
        """Stops the gateway, if one was started."""
        if self._gateway is not None:
            self._gateway.terminate()
            self._gateway.wait()

    def version(self) -> str:
        return self.run([*self.program, "--version"]).strip().splitlines()[-1]

    def settings(self) -> dict[str, bytes]:
        return self.read_files(self.host_directory / "openclaw.json", self.host_directory / "extensions")

    def curated_files(self) -> dict[str, bytes]:
        return self.read_files(self.host_directory / "workspace/MEMORY.md", self.host_directory / "workspace/USER.md")


def main() -> None:
    parser = create_parser(__doc__, "openclaw", 10, "turns, each in its own session")
    add_program_option(parser, "node")
    parser.add_argument("--gateway", action="store_true", help="run the turns in a gateway")
    parser.add_argument("--direct-tools", action="store_true", help="turn off OpenClaw's tool search")
    options = parser.parse_args()
    OpenClawMachine.direct_tools, OpenClawMachine.uses_gateway = options.direct_tools, options.gateway
    node = program_path(options, "node", installer="your package manager")
    openclaw = Path(program_path(options, "openclaw")).resolve()
    with TemporaryDirectory(ignore_cleanup_errors=True) as root, ScriptedServer(scripted_model) as server:
        machine = OpenClawMachine(Path(root), [node, str(openclaw)], server)
        try:
            counts = check(machine, options.runs)
        finally:
            machine.close()
    counts.report(as_json=options.json)


if __name__ == "__main__":
    main()
