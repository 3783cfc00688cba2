"""Checks the installation into Gemini CLI with the real program: memory, evidence, recording, and removal.

    npm install --prefix /tmp/gemini @google/gemini-cli@0.61.0
    .venv/bin/python benchmarks/hosts/gemini_check.py --gemini /tmp/gemini/node_modules/.bin/gemini    # three minutes
    .venv/bin/python benchmarks/hosts/gemini_check.py --runs 3 --json

Gemini CLI runs in a temporary home, in a folder that it trusts, against a local server that speaks the Gemini API, so
no account is needed.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.check_command import create_parser, program_path
from benchmarks.hosts.gemini_server import GeminiServer
from benchmarks.hosts.prompt_check import Counts, PromptMachine, check

MODEL = "gemini-2.5-flash"
SETTINGS = """{
  // mine
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "true"}]}]}
}
"""
_FILES = (".gemini/settings.json",)


def check_gemini(root: Path, gemini: str, server: GeminiServer, runs: int) -> Counts:
    """Checks an installation in a new home directory."""
    machine = PromptMachine(
        root, gemini, server, "gemini-cli", GEMINI_API_KEY="none", GOOGLE_GEMINI_BASE_URL=server.url
    )
    directory = machine.user / ".gemini"
    directory.mkdir()
    (directory / "settings.json").write_text(SETTINGS)
    (directory / "trustedFolders.json").write_text(json.dumps({str(machine.project): "TRUST_FOLDER"}))

    def ask(prompt: str) -> dict[str, Any]:
        return machine.ask("--model", MODEL, "--prompt", prompt)

    def resume(prompt: str) -> dict[str, Any]:
        return machine.ask("--model", MODEL, "--resume", "latest", "--prompt", prompt)

    return check(machine, runs, ask, resume, _FILES)


def main() -> None:
    options = create_parser(__doc__, "gemini", 20, "first requests").parse_args()
    gemini = program_path(options, "gemini")
    with TemporaryDirectory(ignore_cleanup_errors=True) as root, GeminiServer() as server:
        counts = check_gemini(Path(root), gemini, server, options.runs)
    counts.report(as_json=options.json)


if __name__ == "__main__":
    main()
