"""Gives providers the local sentence encoder that search by meaning is configured with.

Only a model in a directory of this machine is given (`onnx:DIRECTORY`). A service is not, because a provider that keeps
its facts on this machine would then send them elsewhere; word vectors are not, because they hardly improve recall.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from memoranda.search.settings import RecallSettings

if TYPE_CHECKING:
    from memoranda.search.meaning.embedder import Embedder

_LOCAL = "onnx:"


class LocalTextEmbedder:
    """A sentence encoder that is loaded when it is first used."""

    def __init__(self, model: str, seconds: float) -> None:
        self._model = model
        self._seconds = seconds

    @property
    def name(self) -> str:
        return self._embedder.name

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        vectors = self._embedder.embed(texts, timeout=self._seconds)
        return [vector.astype("<f4").tobytes() for vector in vectors]

    @cached_property
    def _embedder(self) -> "Embedder":
        from memoranda.search.meaning.embedders import make_embedder

        return make_embedder(self._model)


def configured_embedder(settings: RecallSettings) -> LocalTextEmbedder | None:
    """The first local sentence encoder of the settings, if search by meaning is on."""
    local = [model for model in settings.semantic_model if model.startswith(_LOCAL)]
    return LocalTextEmbedder(local[0], settings.semantic_seconds) if settings.semantic and local else None
