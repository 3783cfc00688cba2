"""WordLlama's static word vectors, read from the files of its package: no network, no model to run.

The vector of a text is the sum of the vectors of its words. Each word counts by how rare it is in English, estimated
from its number in the tokenizer's vocabulary, which is ordered by frequency; repetitions count by their square root.
So the vector of a message never changes, whatever the store contains. A word that is rare in English may still be in
every message of a store (the name of a speaker), so in a query the smaller of both rarities counts.

The package's own loader would look for the tokenizer on the network, so it is not used.
"""

import json
import re
import struct
import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memoranda.search.meaning.embedder import INSTALL, MIN_LIKENESS, NO_TIMEOUT, EmbedderError, Rarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoranda.search.meaning.embedder import Vectors

NAME = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_DIMENSIONS = 256
# The first tokens of the vocabulary are bytes and signs; words follow, the most frequent first.
_FIRST_WORD = 259
_WORD_START = "▁"
_MIN_RARITY = 0.3
_MAX_WORDS = 200_000
_MAX_CHARS = 8_000
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


class StaticVectors:
    """The vectors of one process; words that were looked up once are remembered."""

    name = f"{NAME}-l2-supercat-256"
    dimensions = _DIMENSIONS
    is_fast = True
    min_likeness = MIN_LIKENESS
    is_multilingual = False

    def __init__(self, root: Path) -> None:
        try:
            import numpy as np
            from tokenizers import Tokenizer

            self._tokens = _read_safetensors(root / _WEIGHTS, np)
            self._tokenizer = Tokenizer.from_file(str(root / _TOKENIZER))
        except ImportError as error:
            raise EmbedderError(f"{error.name} is not installed: {INSTALL}.") from error
        except Exception as error:
            # tokenizers raises plain Exception for a file that it cannot read.
            raise EmbedderError(f"The vectors of wordllama in {root} cannot be read: {error}.") from error
        self._numpy = np
        self._vocabulary_size = len(self._tokens)
        self._lock = threading.Lock()
        self._forget_words()

    @classmethod
    def installed(cls) -> "StaticVectors":
        """The vectors of the installed package; raises EmbedderError if there is none."""
        root = package_directory()
        if root is None:
            raise EmbedderError(f"The package wordllama is not installed: {INSTALL}.")
        return _load(root)

    def embed(
        self, texts: Sequence[str], *, timeout: float = NO_TIMEOUT, background: bool = False, user: str = ""
    ) -> "Vectors":
        np = self._numpy
        found = np.zeros((len(texts), _DIMENSIONS), np.float32)
        with self._lock:
            if len(self._rows) > _MAX_WORDS:
                self._forget_words()
            counted = [self._count_words(text) for text in texts]
            words, rarities = self._table()
        for number, counts in enumerate(counted):
            if counts:
                rows = np.fromiter(counts.keys(), np.int64, len(counts))
                weights = np.sqrt(np.fromiter(counts.values(), np.float32, len(counts))) * rarities[rows]
                found[number] = weights @ words[rows]
        return self._normalize(found)

    def embed_query(self, text: str, rarity: Rarity, *, timeout: float = NO_TIMEOUT, user: str = "") -> "Vectors":
        np = self._numpy
        total = np.zeros((1, _DIMENSIONS), np.float32)
        with self._lock:
            for word in _WORD.findall(text[:_MAX_CHARS]):
                row = self._row(word)
                total += min(self._rarities[row], rarity(word)) * self._vectors[row]
        return self._normalize(total)

    def close(self) -> None:
        """Nothing to close: the vectors are shared by all homes of the process."""

    def _forget_words(self) -> None:
        self._rows: dict[str, int] = {}
        self._vectors: list[Any] = []
        self._rarities: list[float] = []
        self._matrix: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def _count_words(self, text: str) -> Counter[int]:
        rows = self._rows
        return Counter([rows[word] if word in rows else self._row(word) for word in _WORD.findall(text[:_MAX_CHARS])])

    def _row(self, word: str) -> int:
        """The number of a word's vector: the mean of its tokens' vectors."""
        row = self._rows.get(word)
        if row is None:
            tokens = self._encode(word)
            lower = word.lower()
            plain = tokens if len(tokens) == 1 or lower == word else self._encode(lower)
            row = self._rows[word] = len(self._vectors)
            self._vectors.append(self._tokens[tokens].mean(axis=0, dtype=self._numpy.float32) if tokens else 0.0)
            self._rarities.append(self._rarity(min(tokens, plain, key=len)))
        return row

    def _encode(self, word: str) -> list[int]:
        whole = self._tokenizer.token_to_id(_WORD_START + word)
        tokens: list[int] = self._tokenizer.encode(word, add_special_tokens=False).ids if whole is None else [whole]
        return tokens

    def _rarity(self, tokens: Sequence[int]) -> float:
        rank = self._vocabulary_size if len(tokens) != 1 else max(tokens[0], _FIRST_WORD + 1)
        return log(rank / _FIRST_WORD) + _MIN_RARITY

    def _table(self) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
        np = self._numpy
        if self._matrix is None or len(self._matrix[1]) < len(self._vectors):
            known = 0 if self._matrix is None else len(self._matrix[1])
            new = np.zeros((len(self._vectors) - known, _DIMENSIONS), np.float32)
            for number, vector in enumerate(self._vectors[known:]):
                new[number] = vector
            before = [] if self._matrix is None else [self._matrix[0]]
            self._matrix = np.concatenate([*before, new]), np.array(self._rarities, np.float32)
        return self._matrix

    def _normalize(self, vectors: "Vectors") -> "Vectors":
        lengths = self._numpy.linalg.norm(vectors, axis=1, keepdims=True)
        normalized: Vectors = vectors / self._numpy.maximum(lengths, 1e-9)
        return normalized


def package_directory() -> Path | None:
    """Where the package is installed; looking for it does not import it."""
    spec = find_spec(NAME)
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


@lru_cache(maxsize=1)
def _load(root: Path) -> StaticVectors:
    return StaticVectors(root)


def _read_safetensors(path: Path, np: Any) -> Any:
    """The one table of a safetensors file, mapped into memory: a length, a header in JSON, then the numbers."""
    with path.open("rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(size))
    (table,) = (entry for name, entry in header.items() if name != "__metadata__")
    if table["dtype"] != "F16" or table["shape"][1] != _DIMENSIONS:
        raise ValueError(f"{path.name} has {table['dtype']} numbers in {table['shape']}")
    start = 8 + size + table["data_offsets"][0]
    return np.memmap(path, "<f2", "r", offset=start, shape=tuple(table["shape"]))
