"""Checks the installation into Hermes with the real program: recall, tools, recorded turns, and removal.

    pip install hermes-agent==0.19.0
    .venv/bin/python -m pytest tests/acceptance/hosts/test_hermes.py

Hermes runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed.
"""

from pathlib import Path

import pytest

from memoranda.testing.scripted.server import ScriptedServer
from tests.acceptance.hosts.machine import find_program
from tests.acceptance.hosts.plugin_check import PluginMachine, check, scripted_model

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)

CONFIG = """# my settings
model:
  default: scripted   # any name will do
  provider: custom
  base_url: {url}
  api_key: none
memory:
  provider: ""  # only the files
"""


class HermesMachine(PluginMachine):
    """A machine with Hermes, which calls the scripted server."""

    host, title = "hermes", "Hermes"

    @property
    def host_directory(self) -> Path:
        return self.user / ".hermes"

    def prepare(self) -> None:
        (self.host_directory / "memories").mkdir(parents=True)
        (self.host_directory / "config.yaml").write_text(CONFIG.format(url=self.server.openai_url))
        (self.host_directory / "memories" / "MEMORY.md").write_text("The office cat is called Quark.")
        (self.host_directory / "memories" / "USER.md").write_text("Prefers short answers.")

    def ask(self, prompt: str) -> None:
        self.run([*self.program, "-z", prompt])

    def version(self) -> str:
        return self.run([*self.program, "--version"]).splitlines()[0]

    def settings(self) -> dict[str, bytes]:
        return self.read_files(self.host_directory / "config.yaml", self.host_directory / "plugins")

    def curated_files(self) -> dict[str, bytes]:
        return self.read_files(self.host_directory / "memories/MEMORY.md", self.host_directory / "memories/USER.md")


def test_hermes_recalls_calls_tools_and_is_recorded(tmp_path: Path) -> None:
    """Uninstalling restores its settings byte for byte, and its own memory files never change."""
    with ScriptedServer(scripted_model) as server:
        counts = check(HermesMachine(tmp_path, [find_program("hermes")], server), runs=10)
    assert counts.is_complete(), counts
