"""Makes the embedders that `search.semantic_model` names, and checks for the doctor whether they can be loaded.

One of them asks any service with OpenAI's `/embeddings`, through the HTTP client of the caller.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memoranda.errors import ProviderError
from memoranda.search.meaning.embedder import INSTALL, MIN_LIKENESS, Embedder, EmbedderError, Rarity
from memoranda.search.meaning.onnx_models import load_cross_encoder, load_onnx_embedder
from memoranda.search.meaning.static_vectors import NAME, StaticVectors
from memoranda.search.settings import RecallSettings
from memoranda.support.health_issues import HealthIssue
from memoranda.support.tool import JsonObject

if TYPE_CHECKING:
    from memoranda.search.meaning.embedder import Vectors

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


def check(config_file: Path, settings: RecallSettings) -> Iterator[HealthIssue]:
    """Yield what prevents search by meaning, or reranking; services are not called."""
    for model in settings.semantic_model if settings.semantic else ():
        if not model.startswith(ENDPOINT):
            yield from _try(config_file, "search.semantic_model", partial(make_embedder, model))
        elif not settings.semantic_url:
            problem = f"search.semantic_url is not set: the address of the service that runs {model}"
            yield HealthIssue("warning", config_file, problem, "set it, or choose another search.semantic_model")
    if settings.rerank.startswith(ONNX):
        path = Path(settings.rerank.removeprefix(ONNX))
        yield from _try(config_file, "search.rerank", lambda: load_cross_encoder(path))


def _try(config_file: Path, setting: str, load: Callable[[], object]) -> Iterator[HealthIssue]:
    try:
        load()
    except EmbedderError as error:
        problem = f"{setting} does not work, so searches rank by words only: {error}"
        yield HealthIssue("warning", config_file, problem, f"install what is missing, or change {setting}")


_PATH = "/embeddings"
_MAX_CHARS = 4_000
_BATCH = 64
_MAX_DIMENSIONS = 16_384


class Post(Protocol):
    """Sends a request and returns the parsed answer; raises ProviderError."""

    def __call__(self, path: str, body: Any = None, *, timeout: float | None = None) -> Any: ...


Finish = Callable[[int, str], None]
"""Records the end of a request: the tokens that the service counted, 0 if it does not say, and its outcome."""


class Meter(Protocol):
    """Records requests in the spend ledger."""

    def start(self, texts: Sequence[str], *, background: bool, user: str) -> Finish:
        """Called before a request; raises BudgetSpentError if a background request exceeds the budget of the day."""


class EndpointEmbedder:
    """Embeds texts with a model of a service. Its vectors are normalized here, because some services do not."""

    is_fast = False
    min_likeness = MIN_LIKENESS
    is_multilingual = True

    def __init__(self, model: str, post: Post, meter: Meter, service: str = "") -> None:
        """`service` is where the model runs, such as a host name."""
        try:
            import numpy
        except ImportError as error:
            raise EmbedderError(f"numpy is not installed: {INSTALL}.") from error
        self._numpy: Any = numpy
        self._model = model
        self._post = post
        self._meter = meter
        self.name = f"endpoint-{service}-{model}"
        self._dimensions = 0

    @property
    def dimensions(self) -> int:
        """Known after the first answer; 0 before."""
        return self._dimensions

    def embed(self, texts: Sequence[str], *, timeout: float, background: bool = False, user: str = "") -> "Vectors":
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        rows = [self._request(batch, timeout, background, user) for batch in batches]
        vectors: Vectors = self._numpy.concatenate(rows)
        return vectors

    def embed_query(self, text: str, rarity: Rarity, *, timeout: float, user: str = "") -> "Vectors":
        return self.embed([text], timeout=timeout, user=user)

    def close(self) -> None:
        """Nothing to close: the caller owns the HTTP client."""

    def _request(self, texts: Sequence[str], timeout: float, background: bool, user: str) -> Any:
        np = self._numpy
        # Services refuse empty texts.
        inputs = [text[:_MAX_CHARS].strip() or "." for text in texts]
        body: JsonObject = {"model": self._model, "input": inputs, "encoding_format": "float"}
        finish = self._meter.start(inputs, background=background, user=user)
        answer: Any = None
        outcome = "ProviderError"
        try:
            answer = self._post(_PATH, body, timeout=timeout)
            outcome = "ok"
        except ProviderError as error:
            raise EmbedderError(f"the embeddings of {self._model} are not available: {error}") from error
        finally:
            finish(read_tokens(answer), outcome)
        vectors = np.array(read_vectors(answer, len(inputs)), np.float32)
        if self._dimensions not in (0, vectors.shape[1]):
            raise EmbedderError(f"{self._model} changed the length of its vectors; it is another model now.")
        self._dimensions = vectors.shape[1]
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def read_vectors(answer: Any, count: int) -> list[list[float]]:
    """The vectors of an answer in the order of the texts; raises EmbedderError if it is not such an answer."""
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or len(entries) != count:
        raise EmbedderError(f"the service did not answer with {count} embeddings.")
    found: dict[object, list[float]] = {}
    for number, entry in enumerate(entries):
        vector = entry.get("embedding") if isinstance(entry, dict) else None
        if not isinstance(vector, list) or not 1 <= len(vector) <= _MAX_DIMENSIONS or not all(map(_is_number, vector)):
            raise EmbedderError("the service answered with an embedding that is not a list of numbers.")
        place = entry.get("index", number)
        found[place if isinstance(place, int) else None] = vector
    if found.keys() != set(range(count)) or len({len(vector) for vector in found.values()}) != 1:
        raise EmbedderError("the service answered with embeddings that do not belong to the texts.")
    return [found[number] for number in range(count)]


def read_tokens(answer: Any) -> int:
    """How many tokens the service counted; 0 if it does not say."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    tokens = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
