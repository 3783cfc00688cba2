"""Checks the installation into OpenCode with the real program: memory, evidence, recording, and removal.

    npm install --prefix /tmp/opencode opencode-ai@1.18.33
    .venv/bin/python benchmarks/hosts/opencode_check.py --opencode /tmp/opencode/node_modules/.bin/opencode
    .venv/bin/python benchmarks/hosts/opencode_check.py --runs 3 --json

OpenCode runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed. With its first plugin it installs a package from npm into its settings directory, which needs the network.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from benchmarks.hosts.chat_server import ChatServer
from benchmarks.hosts.check_command import create_parser, program_path
from benchmarks.hosts.prompt_check import Counts, PromptMachine, check

_DIRECTORY = ".config/opencode"
_FILES = (f"{_DIRECTORY}/opencode.jsonc", f"{_DIRECTORY}/plugins")


def check_opencode(root: Path, opencode: str, server: ChatServer, runs: int) -> Counts:
    """Checks an installation in a new home directory."""
    machine = PromptMachine(root, opencode, server, "opencode")
    directory = machine.user / _DIRECTORY
    directory.mkdir(parents=True)
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": server.url, "apiKey": "none"},
        "models": {"model": {}},
    }
    settings = {
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": False,
        "provider": {"scripted": provider},
    }
    (directory / "opencode.jsonc").write_text(f"// mine\n{json.dumps(settings, indent=2)}\n")

    def ask(prompt: str) -> dict[str, Any]:
        return machine.ask("run", prompt)

    def resume(prompt: str) -> dict[str, Any]:
        return machine.ask("run", "--continue", prompt)

    return check(machine, runs, ask, resume, _FILES)


def main() -> None:
    options = create_parser(__doc__, "opencode", 20, "first requests").parse_args()
    opencode = program_path(options, "opencode")
    with TemporaryDirectory(ignore_cleanup_errors=True) as root, ChatServer() as server:
        counts = check_opencode(Path(root), opencode, server, options.runs)
    counts.report(as_json=options.json)


if __name__ == "__main__":
    main()
