"""Writes small real ONNX models with a tokenizer: each token has a vector of its own, and nothing is learned."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

UNKNOWN, PADDING = "[UNK]", "[PAD]"


def write_encoder(directory: Path, vectors: Mapping[str, Sequence[float]]) -> Path:
    """A sentence encoder whose tokens have these vectors; all other words have zeros."""
    return _write(directory, vectors, pooled=False)


def write_cross_encoder(directory: Path, scores: Mapping[str, float]) -> Path:
    """A cross-encoder that scores a pair of texts with the sum of its words' scores."""
    return _write(directory, {word: [score] for word, score in scores.items()}, pooled=True)


def _write(directory: Path, vectors: Mapping[str, Sequence[float]], *, pooled: bool) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    directory.mkdir(parents=True)
    width = len(next(iter(vectors.values())))
    rows = {PADDING: [0.0] * width, UNKNOWN: [0.0] * width, **vectors}
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(rows)}, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "model.onnx").write_bytes(_model(list(rows.values()), width, pooled))
    return directory


def _model(rows: Sequence[Sequence[float]], width: int, pooled: bool) -> bytes:
    """A model with one node that looks up vectors, and one that adds them up if `pooled`."""
    numbers = struct.pack(f"<{len(rows) * width}f", *(number for row in rows for number in row))
    table = _number(1, len(rows)) + _number(1, width) + _number(2, 1) + _text(8, "table") + _bytes(9, numbers)
    looked_up = "looked_up" if pooled else "output"
    nodes = _bytes(1, _text(1, "table") + _text(1, "input_ids") + _text(2, looked_up) + _text(4, "Gather"))
    if pooled:
        axes = _text(1, "axes") + _number(8, 1) + _number(20, 7)
        keep = _text(1, "keepdims") + _number(3, 0) + _number(20, 2)
        attributes = _bytes(5, axes) + _bytes(5, keep)
        nodes += _bytes(1, _text(1, looked_up) + _text(2, "output") + _text(4, "ReduceSum") + attributes)
    inputs = _bytes(11, _value("input_ids", 7, ("batch", "tokens")))
    shape = ("batch", width) if pooled else ("batch", "tokens", width)
    graph = nodes + _text(2, "graph") + _bytes(5, table) + inputs + _bytes(12, _value("output", 1, shape))
    return _number(1, 7) + _bytes(7, graph) + _bytes(8, _number(2, 11))


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(_bytes(1, _number(1, size) if isinstance(size, int) else _text(2, size)) for size in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    """A field of Protocol Buffers with a length."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
