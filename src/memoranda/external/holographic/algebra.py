"""Holographic reduced representations as vectors of phases.

A vector has one phase per dimension; a full turn is 65,536. Binding adds the phases of two vectors, and the result
resembles neither; unbinding subtracts them again. A bundle resembles each of its vectors: with a similarity of 2/π if
it has two, and of `expected_similarity(n)` if it has n. The similarity of unrelated vectors is zero, within
`noise(dimension)`.

A sketch has two bits per dimension, the signs of cosine and sine. Comparing two sketches takes one XOR and one bit
count, so a search compares thousands of sketches and then computes exact similarities for a few. numpy is used if it is
installed, with the same results.
"""

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from importlib import import_module
from itertools import repeat
from operator import add, and_, sub
from typing import Any, TypeAlias

Vector: TypeAlias = "array[int]"

TURN = 1 << 16
_MASK = TURN - 1
_QUARTER = TURN // 4
# Converts the similarity of two sketches to that of their vectors: the mean of a triangle wave against a cosine.
SKETCH_FACTOR = 8 / math.pi**2
_ONE, _ZERO = ord("1"), ord("0")
# Indexed by the high byte of a phase: whether its cosine, and its sine, is positive.
_COSINE_SIGNS = bytes(_ONE if high < 64 or high >= 192 else _ZERO for high in range(256))
_SINE_SIGNS = bytes(_ONE if high < 128 else _ZERO for high in range(256))


@lru_cache(maxsize=2048)
def atom(word: str, dimension: int) -> Vector:
    """The vector of a word, the same on every machine: SHA-256 of the word and a counter, read as phases."""
    blocks = -(-dimension // 16)
    digests = b"".join(sha256(f"{word}:{block}".encode()).digest() for block in range(blocks))
    return unpack(digests[: 2 * dimension])


def bind(a: Vector, b: Vector) -> Vector:
    return array("H", map(and_, map(add, a, b), repeat(_MASK)))


def unbind(bound: Vector, key: Vector) -> Vector:
    return array("H", map(and_, map(sub, bound, key), repeat(_MASK)))


def bundle(vectors: Sequence[Vector]) -> Vector:
    """One vector that resembles all of the vectors."""
    if len(vectors) == 1:
        return vectors[0]
    numpy = fast_arithmetic()
    if numpy is not None:
        return _fast_bundle(numpy, vectors)
    cosines, sines = _cosines(), _sines()
    x: Iterable[float] = map(cosines.__getitem__, vectors[0])
    y: Iterable[float] = map(sines.__getitem__, vectors[0])
    for vector in vectors[1:]:
        x = list(map(add, x, map(cosines.__getitem__, vector)))
        y = list(map(add, y, map(sines.__getitem__, vector)))
    scale = TURN / math.tau
    return array("H", [round(angle * scale) & _MASK for angle in map(math.atan2, y, x)])


def similarity(a: Vector, b: Vector) -> float:
    """The mean cosine of the differences: 1 for the same vector, about 0 for unrelated ones."""
    # A negative difference indexes the table from its end, where its cosine is.
    return sum(map(_cosines().__getitem__, map(sub, a, b))) / len(a)


def similarities(key: Vector, vectors: Sequence[Vector]) -> list[float]:
    """The similarity of one vector to each of many."""
    numpy = fast_arithmetic()
    if numpy is None or not vectors:
        return [similarity(vector, key) for vector in vectors]
    rows = numpy.stack([numpy.frombuffer(vector, dtype=numpy.uint16) for vector in vectors])
    differences = rows - numpy.frombuffer(key, dtype=numpy.uint16)
    found: list[float] = _fast_cosines(numpy)[differences].mean(axis=1).tolist()
    return found


def expected_similarity(count: int) -> float:
    """The similarity of a bundle of `count` vectors to each of them: 1, 2/π, 0.52, then about √(π/4n)."""
    exact = (1.0, 1.0, 2 / math.pi, 0.52)
    return exact[count] if count < len(exact) else math.sqrt(math.pi / (4 * count))


def noise(dimension: int) -> float:
    """The standard deviation of the similarity of unrelated vectors."""
    return 1 / math.sqrt(2 * dimension)


def sketch(vector: Vector) -> bytes:
    """The sketch of a vector: two bits per dimension."""
    high = pack(vector)[1::2]
    bits = int(high.translate(_COSINE_SIGNS) + high.translate(_SINE_SIGNS), 2)
    return bits.to_bytes(-(-2 * len(vector) // 8), "little")


def sketch_similarity(a: int, b: int, dimension: int) -> float:
    """Estimates the similarity of two vectors from their sketches, given as little-endian integers."""
    return 1 - (a ^ b).bit_count() / dimension


def pack(vector: Vector) -> bytes:
    """The vector as bytes: two per phase, little-endian."""
    if sys.byteorder == "big":
        vector = array("H", vector)
        vector.byteswap()
    return vector.tobytes()


def unpack(data: bytes) -> Vector:
    vector = array("H")
    vector.frombytes(data)
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


@cache
def fast_arithmetic() -> Any:
    """The numpy module, or None. Imported with the first vector, so that nothing else waits for the import."""
    try:
        return import_module("numpy")
    except ImportError:
        return None


@cache
def _cosines() -> list[float]:
    return [math.cos(math.tau * phase / TURN) for phase in range(TURN)]


@cache
def _sines() -> list[float]:
    cosines = _cosines()
    return cosines[-_QUARTER:] + cosines[:-_QUARTER]


@cache
def _fast_cosines(numpy: Any) -> Any:
    return numpy.array(_cosines())


@cache
def _fast_sines(numpy: Any) -> Any:
    return numpy.array(_sines())


def _fast_bundle(numpy: Any, vectors: Sequence[Vector]) -> Vector:
    x = y = 0.0
    for vector in vectors:
        phases = numpy.frombuffer(vector, dtype=numpy.uint16)
        x = x + _fast_cosines(numpy)[phases]
        y = y + _fast_sines(numpy)[phases]
    turned = numpy.rint(numpy.arctan2(y, x) * (TURN / math.tau)).astype(numpy.int64) & _MASK
    return array("H", turned.astype(numpy.uint16).tobytes())
