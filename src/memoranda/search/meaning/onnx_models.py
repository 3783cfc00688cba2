"""Models in ONNX format from a directory of the user (the model and its `tokenizer.json`).

A sentence encoder embeds texts; a cross-encoder reads a query and a passage together, and scores the pair. The files of
a sentence-transformers export are understood: the pooling of `1_Pooling/config.json` counts, and without it the mean
over the tokens. A model runs on one thread, so that a search leaves the other cores to their owner.
"""

import json
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.search.meaning.embedder import INSTALL_ONNX, MIN_LIKENESS, NO_TIMEOUT, EmbedderError, Rarity

if TYPE_CHECKING:
    from memoranda.search.meaning.embedder import Vectors

_MODEL_NAMES = ("model_quantized.onnx", "model.onnx")
_TOKENIZER = "tokenizer.json"
_POOLING = "1_Pooling/config.json"
MAX_TOKENS = 128
_MAX_CHARS = 1_500
_BATCH = 16
# English models have about 30,000 tokens, multilingual ones several times as many.
_MULTILINGUAL = 100_000


class OnnxModel:
    """A model of transformer layers with its tokenizer; `run` returns the first output."""

    def __init__(self, path: Path, max_tokens: int) -> None:
        """`path` is a directory, or the file of the model with its tokenizer beside it."""
        self.file = find_model(path)
        try:
            import numpy
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbedderError(f"{error.name} is not installed: {INSTALL_ONNX}.") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Warnings about unused parts of a model would be printed to the terminal.
        options.log_severity_level = 3
        try:
            self.tokenizer = Tokenizer.from_file(str(self.file.with_name(_TOKENIZER)))
            self._session = onnxruntime.InferenceSession(str(self.file), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            # Both libraries raise plain Exception for a file that they cannot read.
            raise EmbedderError(f"The model {self.file} cannot be loaded: {error}.") from error
        self.numpy: Any = numpy
        self.tokenizer.enable_truncation(max_tokens)
        self.tokenizer.enable_padding()
        self._inputs = [entry.name for entry in self._session.get_inputs()]
        self._lock = threading.Lock()

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> tuple[Any, Any]:
        """The first output for a batch of texts or pairs of texts, and which of its tokens are not padding."""
        np = self.numpy
        with self._lock:
            encoded = self.tokenizer.encode_batch(list(texts))
        every = {
            "input_ids": np.array([entry.ids for entry in encoded], np.int64),
            "attention_mask": np.array([entry.attention_mask for entry in encoded], np.int64),
            "token_type_ids": np.array([entry.type_ids for entry in encoded], np.int64),
        }
        try:
            output = self._session.run(None, {name: every[name] for name in self._inputs})[0]
        except Exception as error:
            # onnxruntime raises classes of its own C++ module.
            raise EmbedderError(f"The model {self.file} failed: {error}.") from error
        return output, every["attention_mask"]


class OnnxEmbedder:
    """Embeds texts with a sentence encoder."""

    is_fast = False
    min_likeness = MIN_LIKENESS

    def __init__(self, path: Path) -> None:
        self._model = OnnxModel(path, MAX_TOKENS)
        self._by_first_token = _pools_first_token(self._model.file.parent)
        self.is_multilingual = self._model.tokenizer.get_vocab_size() >= _MULTILINGUAL
        size = self._model.file.stat().st_size
        self.dimensions = self._embed(["dimensions"]).shape[1]
        self.name = f"onnx-{self._model.file.parent.name}-{size}-{self.dimensions}"

    def embed(
        self, texts: Sequence[str], *, timeout: float = NO_TIMEOUT, background: bool = False, user: str = ""
    ) -> "Vectors":
        np = self._model.numpy
        # Texts of similar length are batched, because a batch is as long as its longest text.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        found = np.zeros((len(texts), self.dimensions), np.float32)
        deadline = time.monotonic() + timeout
        for start in range(0, len(order), _BATCH):
            if time.monotonic() > deadline:
                raise EmbedderError(f"{self._model.file.name} did not embed {len(texts)} messages in {timeout:.1f} s.")
            batch = order[start : start + _BATCH]
            found[batch] = self._embed([texts[number][:_MAX_CHARS] for number in batch])
        vectors: Vectors = found
        return vectors

    def embed_query(self, text: str, rarity: Rarity, *, timeout: float = NO_TIMEOUT, user: str = "") -> "Vectors":
        return self.embed([text], timeout=timeout)

    def close(self) -> None:
        """Nothing to close: the model is shared by all homes of the process."""

    def _embed(self, texts: Sequence[str]) -> Any:
        np = self._model.numpy
        output, mask = self._model.run(texts)
        if output.ndim == 3 and self._by_first_token:
            output = output[:, 0]
        elif output.ndim == 3:
            output = (output * mask[..., None]).sum(1) / np.maximum(mask.sum(1, keepdims=True), 1)
        if output.ndim != 2:
            raise EmbedderError(f"{self._model.file} is no sentence encoder: its output has {output.ndim} dimensions.")
        return output / np.maximum(np.linalg.norm(output, axis=1, keepdims=True), 1e-9)


@lru_cache(maxsize=4)
def load_onnx_embedder(path: Path) -> OnnxEmbedder:
    return OnnxEmbedder(path)


def find_model(path: Path) -> Path:
    """The file of a model; raises EmbedderError if it or its tokenizer is missing."""
    path = path.expanduser()
    files = [path] if path.suffix == ".onnx" else [path / name for name in _MODEL_NAMES]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise EmbedderError(f"There is no ONNX model at {path}: expected {' or '.join(file.name for file in files)}.")
    if not file.with_name(_TOKENIZER).is_file():
        raise EmbedderError(f"{file} has no {_TOKENIZER} beside it.")
    return file


def _pools_first_token(directory: Path) -> bool:
    try:
        pooling = json.loads((directory / _POOLING).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(isinstance(pooling, dict) and pooling.get("pooling_mode_cls_token"))


_MAX_PAIR_TOKENS = 256
_MAX_PASSAGE_CHARS = 2_000
_PASSAGE_BATCH = 4


class CrossEncoder:
    """Scores pairs with a model that has one output (how well it fits) or two (no, yes)."""

    def __init__(self, path: Path) -> None:
        self._model = OnnxModel(path, _MAX_PAIR_TOKENS)

    def score(self, query: str, passages: Sequence[str], *, timeout: float, user: str = "") -> list[float]:
        """A number from 0 to 1 for each passage; raises EmbedderError, also when the time is over."""
        np = self._model.numpy
        deadline = time.monotonic() + timeout
        found: list[float] = []
        for start in range(0, len(passages), _PASSAGE_BATCH):
            if time.monotonic() > deadline:
                raise EmbedderError(f"{self._model.file.name} did not score {len(passages)} messages in time.")
            output, _ = self._model.run(
                [(query, text[:_MAX_PASSAGE_CHARS]) for text in passages[start : start + _PASSAGE_BATCH]]
            )
            if output.ndim != 2 or output.shape[1] not in (1, 2):
                raise EmbedderError(f"{self._model.file} is no cross-encoder: its output is not one number per pair.")
            fits = output[:, 0] if output.shape[1] == 1 else output[:, 1] - output[:, 0]
            found += [float(value) for value in 1 / (1 + np.exp(-fits.astype(np.float64).clip(-50, 50)))]
        return found


@lru_cache(maxsize=2)
def load_cross_encoder(path: Path) -> CrossEncoder:
    return CrossEncoder(path)
