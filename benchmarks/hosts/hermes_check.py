"""Checks the installation into Hermes with the real program: recall, tools, recorded turns, and removal.

    uv venv /tmp/hermes && uv pip install --python /tmp/hermes/bin/python hermes-agent==0.19.0
    .venv/bin/python benchmarks/hosts/hermes_check.py --hermes /tmp/hermes/bin/hermes    # about two minutes
    .venv/bin/python benchmarks/hosts/hermes_check.py --runs 4 --json

Hermes runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.check_command import create_parser, program_path
from benchmarks.hosts.plugin_check import PluginMachine, check, scripted_model
from memoranda.testing.scripted.server import ScriptedServer

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


def main() -> None:
    options = create_parser(__doc__, "hermes", 10, "turns, each in its own session").parse_args()
    hermes = program_path(options, "hermes", installer="pip")
    with TemporaryDirectory() as root, ScriptedServer(scripted_model) as server:
        counts = check(HermesMachine(Path(root), [hermes], server), options.runs)
    counts.report(as_json=options.json)


if __name__ == "__main__":
    main()
