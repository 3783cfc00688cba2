"""Checks the installation into Codex with the real program: memory, evidence, recording, and removal.

    npm install --global @openai/codex@0.169.0
    .venv/bin/python -m pytest tests/acceptance/hosts/test_codex.py

Codex runs in a temporary home against a local server that speaks the Responses API, so no account is needed. In the
first half of the runs no user has reviewed the hooks, so Codex skips them. The second half runs them without a review
(`--dangerously-bypass-hook-trust`), which has the same effect as trusting them in /hooks.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.hosts.machine import (
    ANSWER,
    ASKING,
    OTHERS,
    Machine,
    changed_files,
    choose_prompts,
    find_program,
    shows_memory,
)
from tests.acceptance.hosts.model_servers import REPLY, ResponsesServer

# A host takes seconds for a turn.
pytestmark = pytest.mark.timeout(3600)

MODEL = "gpt-5.5"
CONFIG = """# my settings
model = "{model}"
model_provider = "scripted"

[model_providers.scripted]
name = "Scripted"
base_url = "{url}"
wire_api = "responses"
"""


@dataclass
class Counts:
    """What the requests and the record contained, over all runs."""

    version: str
    runs: int
    memory_before_review: int = 0
    tools_before_review: int = 0
    memory: int = 0
    memory_from_hook: int = 0
    asking: int = 0
    evidence_when_asking: int = 0
    evidence_otherwise: int = 0
    recorded_before_review: int = 0
    recorded: int = 0
    changed_files_after_uninstall: list[str] = field(default_factory=list)

    def is_complete(self) -> bool:
        """Whether every figure is as it should be; recording and evidence need hooks that run."""
        every_run = (self.memory_before_review, self.tools_before_review, self.memory, self.memory_from_hook)
        return (
            set(every_run) == {self.runs}
            and (self.recorded_before_review, self.recorded) == (0, self.runs)
            and (self.evidence_when_asking, self.evidence_otherwise) == (self.asking, 0)
            and not self.changed_files_after_uninstall
        )


class CodexMachine(Machine):
    """A machine with Codex, which calls the scripted server."""

    def __init__(self, root: Path, codex: str, server: ResponsesServer) -> None:
        super().__init__(root, {"OPENAI_API_KEY": "none"})
        self._codex, self._server = codex, server
        self._settings = [self.user / ".codex" / name for name in ("config.toml", "hooks.json")]
        self._settings[0].parent.mkdir()
        self._settings[0].write_text(CONFIG.format(model=MODEL, url=server.url))

    def ask(self, prompt: str, *flags: str) -> dict[str, Any]:
        """Runs `codex exec` once and returns its first request."""
        start = len(self._server.requests)
        self.run([self._codex, "exec", "--skip-git-repo-check", *flags, prompt])
        return self._server.requests[start]

    def version(self) -> str:
        return self.run([self._codex, "--version"]).strip()

    def settings(self) -> dict[str, bytes]:
        return self.read_files(*self._settings)


def check(machine: CodexMachine, runs: int) -> Counts:
    """Installs, runs Codex with and without reviewed hooks, uninstalls, and counts what was seen."""
    machine.fill_home()
    counts = Counts(machine.version(), runs)
    before = machine.settings()
    machine.memoranda("install", "codex", "--yes")
    for number in range(runs):
        request = machine.ask(OTHERS[number])
        counts.memory_before_review += shows_memory(json.dumps(request))
        counts.tools_before_review += "session_search" in json.dumps(request["tools"])
    counts.recorded_before_review = machine.wait_for_sessions("codex", 0, REPLY)
    for prompt in choose_prompts(runs):
        request = machine.ask(prompt, "--dangerously-bypass-hook-trust")
        context = "\n".join(_developer_texts(request))
        counts.memory += shows_memory(json.dumps(request))
        counts.memory_from_hook += shows_memory(context)
        if prompt == ASKING:
            counts.asking += 1
            counts.evidence_when_asking += ANSWER in context
        else:
            counts.evidence_otherwise += "<memory-context>" in context
    counts.recorded = machine.wait_for_sessions("codex", runs, REPLY)
    machine.memoranda("uninstall", "codex", "--yes")
    counts.changed_files_after_uninstall = changed_files(before, machine.settings())
    return counts


def _developer_texts(request: dict[str, Any]) -> list[str]:
    items = [item for item in request["input"] if item.get("role") == "developer"]
    return [part["text"] for item in items for part in item["content"] if "text" in part]


def test_codex_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings byte for byte."""
    with ResponsesServer() as server:
        counts = check(CodexMachine(tmp_path, find_program("codex"), server), runs=20)
    assert counts.is_complete(), counts
