"""The installation works with the real OpenCode, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.chat_server import ChatServer
from benchmarks.hosts.opencode_check import check_opencode

_OPENCODE = shutil.which("opencode")


@pytest.mark.slow
@pytest.mark.skipif(_OPENCODE is None, reason="OpenCode is not installed")
def test_the_real_opencode_gets_memory_and_evidence_and_is_recorded(tmp_path: Path) -> None:
    """This is true from its first request on; uninstalling restores its settings and removes the plugin."""
    assert _OPENCODE is not None
    with ChatServer() as server:
        counts = check_opencode(tmp_path, _OPENCODE, server, runs=2)
    assert counts.is_complete(), counts
