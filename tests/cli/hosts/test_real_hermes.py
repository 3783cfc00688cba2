"""The installation works with the real Hermes, where that is installed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.hosts.hermes_check import HermesMachine
from benchmarks.hosts.plugin_check import check, scripted_model
from memoranda.testing.scripted.server import ScriptedServer

_HERMES = shutil.which("hermes")


@pytest.mark.slow
@pytest.mark.skipif(_HERMES is None, reason="Hermes is not installed")
def test_the_real_hermes_recalls_calls_tools_and_is_recorded(tmp_path: Path) -> None:
    """Uninstalling restores its settings byte for byte, and its own memory files never change."""
    assert _HERMES is not None
    with ScriptedServer(scripted_model) as server:
        counts = check(HermesMachine(tmp_path, [_HERMES], server), runs=2)
    assert counts.is_complete(), counts
