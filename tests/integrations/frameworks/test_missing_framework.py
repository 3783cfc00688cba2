"""An adapter whose framework is missing can be imported, and its use says what to install."""

import subprocess
import sys

import pytest

_PROGRAM = """
import sys
sys.modules[sys.argv[1]] = None  # As if it were not installed.
import importlib
adapter = importlib.import_module(f"memoranda.integrations.frameworks.{sys.argv[2]}")
try:
    getattr(adapter, sys.argv[3])(None)
except ImportError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "module", "name", "extra"),
    [
        ("pydantic_ai", "pydantic_ai", "MemorandaCapability", "pydantic-ai"),
        ("agent_framework", "agent_framework", "MemorandaHistory", "agent-framework"),
        ("strands", "strands", "MemorandaRepository", "strands"),
        ("google.adk", "google_adk", "MemorandaSessionService", "google-adk"),
        ("llama_index", "llama_index", "MemorandaBlock", "llama-index"),
    ],
)
def test_the_use_of_an_adapter_names_the_extra_to_install(package: str, module: str, name: str, extra: str) -> None:
    """Importing it does not fail, so its names can be looked up anywhere."""
    command = [sys.executable, "-c", _PROGRAM, package, module, name]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"pip install 'memoranda[{extra}]'" in result.stdout
