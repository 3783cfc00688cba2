"""Checks the installation into OpenCode with the real program: memory, evidence, recording, and removal.

    npm install --global opencode-ai@1.18.33
    .venv/bin/python -m pytest tests/acceptance/hosts/test_opencode.py

OpenCode runs in a temporary home against a local server that speaks OpenAI's Chat Completions API, so no account is
needed. With its first plugin it installs a package from npm into its settings directory, which needs the network.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.hosts.machine import find_program
from tests.acceptance.hosts.model_servers import ChatServer
from tests.acceptance.hosts.prompt_check import Counts, PromptMachine, check

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)

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


def test_opencode_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings byte for byte."""
    with ChatServer() as server:
        counts = check_opencode(tmp_path, find_program("opencode"), server, runs=20)
    assert counts.is_complete(), counts
