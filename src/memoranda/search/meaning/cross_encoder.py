"""A cross-encoder in ONNX format: reads a query and a passage together, and scores the pair."""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from memoranda.search.meaning.embedder import EmbedderError
from memoranda.search.meaning.onnx_embedder import OnnxModel

_MAX_TOKENS = 256
_MAX_CHARS = 2_000
_BATCH = 4


class CrossEncoder:
    """Scores pairs with a model that has one output (how well it fits) or two (no, yes)."""

    def __init__(self, path: Path) -> None:
        self._model = OnnxModel(path, _MAX_TOKENS)

    def score(self, query: str, passages: Sequence[str], *, timeout: float, user: str = "") -> list[float]:
        """A number from 0 to 1 for each passage; raises EmbedderError, also when the time is over."""
        np = self._model.numpy
        deadline = time.monotonic() + timeout
        found: list[float] = []
        for start in range(0, len(passages), _BATCH):
            if time.monotonic() > deadline:
                raise EmbedderError(f"{self._model.file.name} did not score {len(passages)} messages in time.")
            output, _ = self._model.run([(query, text[:_MAX_CHARS]) for text in passages[start : start + _BATCH]])
            if output.ndim != 2 or output.shape[1] not in (1, 2):
                raise EmbedderError(f"{self._model.file} is no cross-encoder: its output is not one number per pair.")
            fits = output[:, 0] if output.shape[1] == 1 else output[:, 1] - output[:, 0]
            found += [float(value) for value in 1 / (1 + np.exp(-fits.astype(np.float64).clip(-50, 50)))]
        return found


@lru_cache(maxsize=2)
def load_cross_encoder(path: Path) -> CrossEncoder:
    return CrossEncoder(path)
