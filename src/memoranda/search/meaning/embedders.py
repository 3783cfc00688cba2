"""Makes the embedders that `search.semantic_model` names."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from memoranda.search.meaning.embedder import Embedder, EmbedderError
from memoranda.search.meaning.onnx_embedder import load_onnx_embedder
from memoranda.search.meaning.static_vectors import NAME, StaticVectors

ONNX = "onnx:"
ENDPOINT = "endpoint:"
CHOICES = f"{NAME}, {ONNX}DIRECTORY or {ENDPOINT}MODEL"

MakeEndpoint = Callable[[str], Embedder]
"""Makes the embedder for a model of the configured service; raises EmbedderError."""


def make_embedder(model: str, make_endpoint: MakeEndpoint | None = None) -> Embedder:
    """One embedder by its name; raises EmbedderError."""
    if model == NAME:
        return StaticVectors.installed()
    if path := model.removeprefix(ONNX) if model.startswith(ONNX) else "":
        return load_onnx_embedder(Path(path))
    if make_endpoint is not None and (name := model.removeprefix(ENDPOINT) if model.startswith(ENDPOINT) else ""):
        return make_endpoint(name)
    raise EmbedderError(f"search.semantic_model has no embedder {model!r}: use {CHOICES}.")


def embedder_loader(models: Sequence[str], make_endpoint: MakeEndpoint | None = None) -> Callable[[], list[Embedder]]:
    """A function that makes the embedders when it is first called, and returns the same ones afterwards."""

    @lru_cache(maxsize=1)
    def load() -> list[Embedder]:
        return [make_embedder(model, make_endpoint) for model in models]

    return load
