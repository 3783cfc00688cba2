"""The installation works with the real OpenClaw, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.openclaw_check import OpenClawMachine
from benchmarks.hosts.plugin_check import check, scripted_model
from memoranda.testing.scripted.server import ScriptedServer

_OPENCLAW, _NODE = shutil.which("openclaw"), shutil.which("node")


@pytest.mark.slow
@pytest.mark.skipif(_OPENCLAW is None, reason="OpenClaw is not installed")
def test_the_real_openclaw_recalls_calls_tools_and_is_recorded(tmp_path: Path) -> None:
    """Uninstalling restores its settings byte for byte, and its own memory files never change."""
    assert _OPENCLAW is not None
    assert _NODE is not None
    with ScriptedServer(scripted_model) as server:
        program = [_NODE, str(Path(_OPENCLAW).resolve())]
        counts = check(OpenClawMachine(tmp_path, program, server), runs=2)
    assert counts.is_complete(), counts
