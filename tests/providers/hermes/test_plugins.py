"""The memory plugins that Hermes 0.19.0 contains, unmodified, in a home of Memoranda; needs `.hermes-venv`.

`MEMORANDA_HERMES_PLUGINS` names their directory if Hermes is installed elsewhere.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

ROOT = Path(__file__).parents[3]
# An address where nothing listens: setup must not need the service.
NOWHERE = "http://127.0.0.1:9"
SETTINGS = {
    "byterover": ("auto_extract=false",),
    "hindsight": ("mode=local_external", f"api_url={NOWHERE}", "api_key=k"),
    "honcho": ("api_key=k", f"baseUrl={NOWHERE}"),
    "mem0": ("api_key=k", f"host={NOWHERE}"),
    "openviking": (f"endpoint={NOWHERE}", "api_key=k"),
    "retaindb": ("api_key=k", f"base_url={NOWHERE}"),
    "supermemory": ("api_key=k",),
}


def _plugins() -> Path | None:
    named = os.environ.get("MEMORANDA_HERMES_PLUGINS")
    found = [Path(named)] if named else sorted(ROOT.glob(".hermes-venv/lib/python*/site-packages/plugins/memory"))
    return found[0] if found and (found[0] / "mem0").is_dir() else None


PLUGINS = _plugins()


@pytest.mark.slow
@pytest.mark.skipif(PLUGINS is None, reason="Hermes is not installed in .hermes-venv")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_plugin_of_hermes_is_set_up_unmodified(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads, saves its settings, and status says that its deliveries cannot be monitored."""
    assert PLUGINS is not None
    for variable in [variable for variable in os.environ if variable.startswith((name.upper(), "BRV_"))]:
        monkeypatch.delenv(variable)
    terminal = Terminal(tmp_path / "home")
    shutil.copytree(
        PLUGINS / name,
        terminal.home / "plugins" / name,
        ignore=shutil.ignore_patterns("__pycache__", "*.pyc"),
    )
    pairs = [part for setting in SETTINGS[name] for part in ("--set", setting)]
    assert terminal.json("provider", "setup", f"home:{name}", *pairs)["success"]
    status = terminal.json("provider", "status")
    assert (status["provider"], status["problem"], status["own_thread"]) == (f"home:{name}", None, True)
