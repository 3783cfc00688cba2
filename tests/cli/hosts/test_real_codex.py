"""The installation works with the real Codex, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.codex_check import CodexMachine, check
from benchmarks.hosts.responses_server import ResponsesServer

_CODEX = shutil.which("codex")


@pytest.mark.slow
@pytest.mark.skipif(_CODEX is None, reason="Codex is not installed")
def test_the_real_codex_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings byte for byte."""
    assert _CODEX is not None
    with ResponsesServer() as server:
        counts = check(CodexMachine(tmp_path, _CODEX, server), runs=2)
    assert counts.is_complete(), counts
