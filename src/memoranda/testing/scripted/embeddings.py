"""Embeddings without a model: hashed words and parts of words, in the format of OpenAI's `/embeddings`.

The vector of a text depends on nothing but the text, and texts that share words or parts of words are near each other.
That is enough to run a memory that needs embeddings; it says nothing about the quality of real ones.
"""

import base64
import hashlib
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

from memoranda.models.tokens import estimate_text
from memoranda.search.index.tokenizer import STOP_WORDS
from memoranda.support.tool import JsonObject
from memoranda.testing.scripted.steps import Body, ReceivedRequest, Refuse

DIMENSIONS = 1536
_MAX_DIMENSIONS = 16_384
_MAX_INPUTS = 2048
_GRAM = 3
_GRAM_WEIGHT = 1.2
_STOP_WORD_WEIGHT = 0.1


def embed_text(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A vector of length 1; an empty text has the vector of the empty word."""
    vector = [0.0] * dimensions
    for feature, weight in _features(text):
        number = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest())
        vector[number % dimensions] += weight if number >> 63 else -weight
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length else [1.0, *vector[1:]]


def answer_embeddings(received: ReceivedRequest, dimensions: int = DIMENSIONS) -> Body | Refuse:
    """Answers an embeddings request; `dimensions` applies when the request does not name a number."""
    wanted = received.json.get("dimensions", dimensions)
    inputs = _inputs(received.json.get("input"))
    if not isinstance(wanted, int) or not 1 <= wanted <= _MAX_DIMENSIONS:
        return Refuse(400, f"'dimensions' must be a number from 1 to {_MAX_DIMENSIONS}.", "invalid_request_error")
    if not inputs or len(inputs) > _MAX_INPUTS:
        return Refuse(400, f"'input' must be a text or 1 to {_MAX_INPUTS} texts.", "invalid_request_error")
    encoded = received.json.get("encoding_format") == "base64"
    data = [_entry(index, embed_text(text, wanted), encoded) for index, text in enumerate(inputs)]
    tokens = sum(estimate_text(text) for text in inputs)
    model = received.json.get("model") or "scripted-embeddings"
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Body({"object": "list", "data": data, "model": model, "usage": usage})


def _entry(index: int, vector: list[float], encoded: bool) -> JsonObject:
    value = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if encoded else vector
    return {"object": "embedding", "index": index, "embedding": value}


def _inputs(value: Any) -> list[str]:
    """The texts of a request: one, several, or token numbers in place of texts."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return []
    if value and all(isinstance(entry, int) for entry in value):
        return [_from_tokens(value)]
    if all(isinstance(entry, str) for entry in value):
        return value
    if all(isinstance(entry, list) for entry in value):
        return [_from_tokens(entry) for entry in value]
    return []


def _from_tokens(tokens: list[Any]) -> str:
    return " ".join(f"token{token}" for token in tokens)


def _features(text: str) -> Iterator[tuple[str, float]]:
    """The words, and the parts of three letters of each word; words that say little count little."""
    for word in re.findall(r"\w+", text.casefold()):
        weight = _STOP_WORD_WEIGHT if word in STOP_WORDS else 1.0
        yield f"word {word}", weight
        padded = f"<{word}>"
        grams = [padded[start : start + _GRAM] for start in range(len(padded) - _GRAM + 1)]
        for gram in grams:
            yield f"part {gram}", _GRAM_WEIGHT * weight / math.sqrt(len(grams))
