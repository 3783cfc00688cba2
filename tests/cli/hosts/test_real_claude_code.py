"""The installation works with the real Claude Code, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.claude_code_check import ClaudeCodeMachine, check
from benchmarks.hosts.model_server import REPLY
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer

_CLAUDE = shutil.which("claude")


@pytest.mark.slow
@pytest.mark.skipif(_CLAUDE is None, reason="Claude Code is not installed")
def test_the_real_claude_code_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings."""
    assert _CLAUDE is not None
    with ScriptedServer(lambda request: Reply(REPLY)) as server:
        counts = check(ClaudeCodeMachine(tmp_path, _CLAUDE, server), runs=2)
    assert counts.is_complete(), counts
