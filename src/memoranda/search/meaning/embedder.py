"""The protocol of an embedder: a model that turns texts into vectors."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from memoranda.errors import MemorandaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    """One row of length 1 per text; a text without a meaning has a row of zeros."""

INSTALL = "pip install 'memoranda[semantic]'"
INSTALL_ONNX = "pip install 'memoranda[onnx]'"
# Half of the questions are at least so alike to a message that answers them, and one in ten to one of another store.
MIN_LIKENESS = 0.5
NO_TIMEOUT = float("inf")
Rarity = Callable[[str], float]
"""How much a word distinguishes the messages of a store: its inverse document frequency."""

_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]")
_MIN_LATIN = 0.7


class EmbedderError(MemorandaError):
    """An embedder is not installed, not set up, or failed; the text says which and what to do."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how alike the texts are. Several threads may call it."""

    @property
    def name(self) -> str:
        """Identifies the model; vectors of different names are never compared."""

    @property
    def dimensions(self) -> int: ...

    @property
    def is_fast(self) -> bool:
        """Whether a search can embed hundreds of messages; if not, only messages of the index are compared."""

    @property
    def is_multilingual(self) -> bool:
        """Whether queries in other scripts than the Latin one have a meaning for it."""

    @property
    def min_likeness(self) -> float:
        """How alike a message must be to be found by its meaning alone."""

    def embed(self, texts: Sequence[str], *, timeout: float, background: bool = False, user: str = "") -> "Vectors":
        """The vectors of messages; raises EmbedderError. `user` and `background` are for the spend ledger."""

    def embed_query(self, text: str, rarity: Rarity, *, timeout: float, user: str = "") -> "Vectors":
        """The vector of a query, as a matrix with one row; raises EmbedderError."""

    def close(self) -> None: ...


def understands(embedder: Embedder, text: str) -> bool:
    """Whether a text is in a language that the embedder may know, judged by its script."""
    if embedder.is_multilingual:
        return True
    letters = len(_LETTER.findall(text))
    return letters > 0 and len(_LATIN.findall(text)) >= _MIN_LATIN * letters
