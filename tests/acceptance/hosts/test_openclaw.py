"""Checks the installation into OpenClaw with the real program: recall, tools, recorded turns, and removal.

    npm install --global openclaw@2026.9.6        # needs Node 24.16 or later
    .venv/bin/python -m pytest tests/acceptance/hosts/test_openclaw.py

OpenClaw runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed. Each turn runs in its own process, or one gateway runs all. By default OpenClaw offers its tools through a tool
search; without it, it offers each tool directly.
"""

import os
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.testing.scripted.server import ScriptedServer
from tests.acceptance.hosts.machine import find_program
from tests.acceptance.hosts.plugin_check import PluginMachine, check, scripted_model

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)

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
    _turns = 0
    _gateway: subprocess.Popen[bytes] | None = None

    def __init__(
        self, root: Path, program: list[str], server: ScriptedServer, direct_tools: bool, uses_gateway: bool
    ) -> None:
        self._direct_tools, self._uses_gateway = direct_tools, uses_gateway
        super().__init__(root, program, server)

    @property
    def host_directory(self) -> Path:
        return self.user / ".openclaw"

    def variables(self) -> dict[str, str]:
        """Returns a PATH on which this Node comes first."""
        return {"PATH": os.pathsep.join([str(Path(self.program[0]).parent), os.environ["PATH"]])}

    def prepare(self) -> None:
        (self.host_directory / "workspace").mkdir(parents=True)
        tool_search = "false" if self._direct_tools else '{ mode: "tools" }'
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]
        config = CONFIG.format(url=self.server.openai_url, port=self._port, tool_search=tool_search)
        (self.host_directory / "openclaw.json").write_text(config)
        (self.host_directory / "workspace" / "MEMORY.md").write_text("The office cat is called Quark.\n")
        (self.host_directory / "workspace" / "USER.md").write_text("Prefers short answers.\n")

    def ask(self, prompt: str) -> None:
        self._turns += 1
        flags = [] if self._uses_gateway else ["--local"]
        if self._uses_gateway and self._gateway is None:
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


@pytest.mark.parametrize("uses_gateway", [False, True])
@pytest.mark.parametrize("direct_tools", [False, True])
def test_openclaw_recalls_calls_tools_and_is_recorded(tmp_path: Path, direct_tools: bool, uses_gateway: bool) -> None:
    """Uninstalling restores its settings byte for byte, and its own memory files never change."""
    program = [find_program("node"), str(Path(find_program("openclaw")).resolve())]
    with (
        ScriptedServer(scripted_model) as server,
        closing(OpenClawMachine(tmp_path, program, server, direct_tools, uses_gateway)) as machine,
    ):
        counts = check(machine, runs=10)
    assert counts.is_complete(), counts
