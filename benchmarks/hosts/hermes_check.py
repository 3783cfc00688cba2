"""Checks the installation into Hermes with the real program: recall, tools, recorded turns, and removal.

    uv venv /tmp/hermes && uv pip install --python /tmp/hermes/bin/python hermes-agent==0.19.0
    .venv/bin/python benchmarks/hosts/hermes_check.py --hermes /tmp/hermes/bin/hermes    # about two minutes
    .venv/bin/python benchmarks/hosts/hermes_check.py --runs 4 --json

Hermes runs in a home of its own against a local server that speaks the chat completions API, so no account is needed.
"""

import argparse
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.plugin_check import PluginMachine, check, read_files, scripted_model
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
    """A user's home directory with Hermes in it."""

    host, title = "hermes", "Hermes"

    @property
    def root(self) -> Path:
        return self.user_home / ".hermes"

    def prepare(self) -> None:
        (self.root / "memories").mkdir(parents=True)
        (self.root / "config.yaml").write_text(CONFIG.format(url=self.server.openai_url))
        (self.root / "memories" / "MEMORY.md").write_text("The office cat is called Quark.")
        (self.root / "memories" / "USER.md").write_text("Prefers short answers.")

    def ask(self, prompt: str) -> None:
        self.run([*self.program, "-z", prompt])

    def version(self) -> str:
        return self.run([*self.program, "--version"]).splitlines()[0]

    def settings(self) -> dict[str, bytes]:
        return read_files(self.root, "config.yaml", "plugins")

    def curated_files(self) -> dict[str, bytes]:
        return read_files(self.root, "memories/MEMORY.md", "memories/USER.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hermes", default=shutil.which("hermes"), help="the program; the one on the PATH by default")
    parser.add_argument("--runs", type=int, default=10, help="turns, each in a session of its own")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    if not options.hermes:
        raise SystemExit("hermes is not on the PATH; install it with pip, or name it with --hermes.")
    with TemporaryDirectory() as root, ScriptedServer(scripted_model) as server:
        machine = HermesMachine(Path(root), [str(Path(options.hermes).absolute())], server)
        counts = check(machine, options.runs)
    print(json.dumps(asdict(counts), indent=2) if options.json else counts.format())
    sys.exit(0 if counts.is_complete() else 1)


if __name__ == "__main__":
    main()
