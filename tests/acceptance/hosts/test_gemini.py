"""Checks the installation into Gemini CLI with the real program: memory, evidence, recording, and removal.

    npm install --global @google/gemini-cli@0.61.0
    .venv/bin/python -m pytest tests/acceptance/hosts/test_gemini.py

Gemini CLI runs in a temporary home, in a folder that it trusts, against a local server that speaks the Gemini API, so
no account is needed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.hosts.machine import find_program
from tests.acceptance.hosts.model_servers import GeminiServer
from tests.acceptance.hosts.prompt_check import Counts, PromptMachine, check

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)

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


def test_gemini_cli_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings byte for byte."""
    with GeminiServer() as server:
        counts = check_gemini(tmp_path, find_program("gemini"), server, runs=20)
    assert counts.is_complete(), counts
