"""The installation works with the real Gemini CLI, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.gemini_check import check_gemini
from benchmarks.hosts.gemini_server import GeminiServer

_GEMINI = shutil.which("gemini")


@pytest.mark.slow
@pytest.mark.skipif(_GEMINI is None, reason="Gemini CLI is not installed")
def test_the_real_gemini_cli_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings byte for byte."""
    assert _GEMINI is not None
    with GeminiServer() as server:
        counts = check_gemini(tmp_path, _GEMINI, server, runs=2)
    assert counts.is_complete(), counts
