"""Providers get the local sentence encoder of the settings, and nothing that sends texts elsewhere."""

from pathlib import Path

import pytest

import memoranda
from memoranda.api.search_extras import configured_embedder
from memoranda.search.settings import RecallSettings
from tests.external.plugins import add_plugin

pytestmark = pytest.mark.slow

_PLUGIN = """
from pathlib import Path
from memoranda.external.provider import MemoryProvider

class Listener(MemoryProvider):
    name = "listener"
    def is_available(self):
        return True
    def initialize(self, session_id, **facts):
        Path(facts["hermes_home"], "received").write_text(type(facts.get("embedder")).__name__)
    def get_tool_schemas(self):
        return []
"""


@pytest.mark.parametrize("models", [("wordllama",), ("endpoint:text-embedding-3-small",), ()])
def test_only_a_model_on_this_machine_is_given(models: tuple[str, ...]) -> None:
    """A service is not: facts that are stored here would be sent to it."""
    assert configured_embedder(RecallSettings(semantic=True, semantic_model=models)) is None


def test_the_encoder_is_given_if_search_by_meaning_is_on() -> None:
    """It is not loaded before it is used, so a missing directory is no error here."""
    settings = RecallSettings(semantic=True, semantic_model=("wordllama", "onnx:/nowhere"))
    assert configured_embedder(settings) is not None
    assert configured_embedder(RecallSettings(semantic=False, semantic_model=("onnx:/nowhere",))) is None


def test_a_provider_is_started_with_it(tmp_path: Path) -> None:
    """If the home has search by meaning with a local model."""
    add_plugin(tmp_path, "listener", _PLUGIN)
    settings = "memory:\n  provider: listener\nsearch:\n  semantic: true\n  semantic_model: ['onnx:/nowhere']\n"
    (tmp_path / "config.yaml").write_text(settings)
    with memoranda.open(tmp_path) as memory, memory.session():
        pass
    assert (tmp_path / "received").read_text() == "LocalTextEmbedder"
