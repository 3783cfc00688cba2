"""Builds the table of related words, `src/memoranda/index/related_words.txt`, from three open sources.

- WordNet 3.0 says which words are related and how: synonyms, a class and its members, derivations.
- SCOWL says which words are common (sizes 10 to 35, and names up to 50); `modern_words.txt` adds words that it lacks.
- A sentence encoder (all-MiniLM-L6-v2 as ONNX) says how close two words are in meaning. It drops relations of rare
  senses and adds close words that WordNet does not connect, such as "restart" and "reboot".

Both sides of a row are stems, as the index has them. No text of a test set is read. The README beside this file says
where the sources come from.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from memoranda.index.stemmer import stem
from memoranda.index.stop_words import STOP_WORDS

_TABLE = Path(__file__).parents[2] / "src" / "memoranda" / "index" / "related_words.txt"
_MODERN_WORDS = Path(__file__).with_name("modern_words.txt")
_COMMON_SIZES = (10, 20)
_SIZES = (*_COMMON_SIZES, 35)
_NAME_SIZES = (10, 35, 40, 50)
_PARTS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_RELATIONS = {"@": "class", "@i": "class", "~": "member", "~i": "member", "+": "derived"}
_RELATIONS |= dict.fromkeys(("&", "\\", "="), "similar")
_SENSES = 3
_CLASS_SENSES = 2
_MEMBER_DEPTH = 3
# The smallest closeness with which a relation of WordNet counts, and what the relation adds to it.
_LIMITS = {"synonym": (0.28, 0.15), "class": (0.38, 0.1), "member": (0.33, 0.1), "derived": (0.35, 0.1)}
_LIMITS |= {"similar": (0.4, 0.1)}
_CLOSE = 0.5
_CLOSE_WORDS = 20
_CROWD = 11
_MAX_RELATED = 24
# How much of a relation counts in the other direction.
_REVERSED = 0.9
_BATCH = 128
_DIMENSION = 384


class Synset(NamedTuple):
    """One meaning in WordNet: its words, and pointers (relation, part of speech, offset) to other meanings."""

    words: list[str]
    pointers: list[tuple[str, str, str]]


class WordNet:
    """The database files of WordNet."""

    def __init__(self, directory: Path) -> None:
        parts = sorted(set(_PARTS.values()))
        self._synsets = {part: dict(_read_synsets(directory / f"data.{part}")) for part in parts}
        self._senses = {part: dict(_read_senses(directory / f"index.{part}")) for part in parts}

    def related(self, word: str) -> Iterator[tuple[str, str]]:
        """The words related to one word, each with the relation."""
        for part, senses in self._senses.items():
            for number, offset in enumerate(senses.get(word, [])[:_SENSES]):
                synset = self._synsets[part][offset]
                yield from ((other, "synonym") for other in synset.words)
                for relation, other_part, target in synset.pointers:
                    if relation != "member":
                        yield from ((other, relation) for other in self._synsets[other_part][target].words)
                if part == "noun" and number < _CLASS_SENSES:
                    yield from ((member, "member") for member in self._members(offset, _MEMBER_DEPTH))

    def _members(self, offset: str, depth: int) -> Iterator[str]:
        for relation, part, target in self._synsets["noun"][offset].pointers:
            if relation == "member" and part == "noun":
                yield from self._synsets["noun"][target].words
                if depth > 1:
                    yield from self._members(target, depth - 1)


def _read_synsets(path: Path) -> Iterator[tuple[str, Synset]]:
    for line in _data_lines(path):
        fields = line.partition("|")[0].split()
        count = int(fields[3], 16)
        words = [word.lower() for word in fields[4 : 4 + 2 * count : 2]]
        # Verbs have sentence frames after the pointers.
        rest = fields[5 + 2 * count :][: 4 * int(fields[4 + 2 * count])]
        pointers = [
            (_RELATIONS[symbol], _PARTS[part], target)
            for symbol, target, part in zip(rest[0::4], rest[1::4], rest[2::4], strict=False)
            if symbol in _RELATIONS
        ]
        yield fields[0], Synset(words, pointers)


def _read_senses(path: Path) -> Iterator[tuple[str, list[str]]]:
    for line in _data_lines(path):
        fields = line.split()
        yield fields[0], fields[6 + int(fields[3]) :]


def _data_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        yield from (line for line in lines if not line.startswith("  "))


class Vocabulary(NamedTuple):
    """The words that have a row, and those of them that may be related to another word: the most common ones."""

    words: list[str]
    common: frozenset[str]


def read_vocabulary(scowl: Path) -> Vocabulary:
    """The words of the lists and names, without rare forms of common words and words that a search ignores."""
    modern = " ".join(line for line in _MODERN_WORDS.read_text("utf-8").splitlines() if line[0] != "#").split()
    common = {*modern, *_read_list(scowl, "words", _COMMON_SIZES), *_read_list(scowl, "upper", _NAME_SIZES)}
    every = common | _read_list(scowl, "words", _SIZES)
    plain = {word for word in every if re.fullmatch("[a-z]{2,}", word) and not {word, stem(word)} & STOP_WORDS}
    stems = {stem(word) for word in common}
    words = sorted(word for word in plain if word in common or stem(word) not in stems)
    return Vocabulary(words, frozenset(common.intersection(words)))


def _read_list(scowl: Path, kind: str, sizes: tuple[int, ...]) -> set[str]:
    paths = [scowl / f"{variant}-{kind}.{size}" for variant in ("english", "american") for size in sizes]
    return {word for path in paths if path.exists() for word in path.read_text("latin-1").lower().split()}


def embed(words: list[str], model: Path) -> Any:
    """The vectors of the words, each of length one."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    [path] = model.glob("*.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options)
    inputs = [field.name for field in session.get_inputs()]
    ids = [tokenizer.encode(word).ids for word in words]
    # Words of equal length together: padding would change what a quantized model rounds.
    order = sorted(range(len(words)), key=lambda number: len(ids[number]))
    vectors = np.zeros((len(words), _DIMENSION), dtype="float32")
    for _, same in groupby(order, key=lambda number: len(ids[number])):
        numbers = list(same)
        for start in range(0, len(numbers), _BATCH):
            batch = numbers[start : start + _BATCH]
            tokens = np.array([ids[number] for number in batch])
            values = {"input_ids": tokens, "attention_mask": np.ones_like(tokens)}
            values["token_type_ids"] = np.zeros_like(tokens)
            means = session.run(None, {name: values[name] for name in inputs})[0].mean(axis=1)
            vectors[batch] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return vectors


def build(wordnet: WordNet, vocabulary: Vocabulary, vectors: Any) -> dict[str, dict[str, float]]:
    """The related stems of every stem, with their closeness."""
    words = vocabulary.words
    position = {word: number for number, word in enumerate(words)}
    penalty = _crowds(vectors) / 2 + np.array([word not in vocabulary.common for word in words])
    table: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for word, closeness in zip(words, _closeness(vectors), strict=True):
        found: dict[str, float] = {}
        for other, relation in wordnet.related(word):
            if other in position:
                lowest, bonus = _LIMITS[relation]
                close = float(closeness[position[other]])
                if close >= lowest:
                    found[other] = max(found.get(other, 0.0), close + bonus)
        for other in _close_words(word, words, closeness - penalty, found):
            close = float(closeness[position[other]])
            if close >= _CLOSE and other in vocabulary.common:
                found[other] = max(found.get(other, 0.0), close)
        row = table[stem(word)]
        for other, close in found.items():
            row[stem(other)] = max(row.get(stem(other), 0.0), close)
    for own, row in list(table.items()):
        row.pop(own, None)
        for other, close in row.items():
            table[other][own] = max(table[other].get(own, 0.0), _REVERSED * close)
    return {own: dict(sorted(row.items(), key=lambda pair: -pair[1])[:_MAX_RELATED]) for own, row in table.items()}


def _crowds(vectors: Any) -> Any:
    """How close each word is to its nearest words: words that are close to everything are poor neighbours."""
    crowds = [np.sort(np.partition(row, -_CROWD)[-_CROWD:])[:-1].mean() for row in _closeness(vectors)]
    return np.array(crowds, dtype="float32")


def _closeness(vectors: Any) -> Iterator[Any]:
    """For each word, how close it is to every word."""
    for start in range(0, len(vectors), _BATCH):
        yield from vectors[start : start + _BATCH] @ vectors.T


def _close_words(word: str, words: list[str], ranking: Any, known: dict[str, float]) -> Iterator[str]:
    """The words that are closest in meaning, without those that are merely spelled alike."""
    nearest = np.argpartition(-ranking, 6 * _CLOSE_WORDS)[: 6 * _CLOSE_WORDS]
    stems: set[str] = set()
    for number in nearest[np.argsort(-ranking[nearest])]:
        other = words[number]
        if stem(other) != stem(word) and (other[:3] != word[:3] or other in known):
            stems.add(stem(other))
            if len(stems) > _CLOSE_WORDS:
                return
            yield other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="the directory with data.noun")
    parser.add_argument("--scowl", type=Path, required=True, help="the directory with english-words.10")
    parser.add_argument("--model", type=Path, required=True, help="the directory with tokenizer.json and *.onnx")
    parser.add_argument("--output", type=Path, default=_TABLE)
    options = parser.parse_args()
    vocabulary = read_vocabulary(options.scowl)
    table = build(WordNet(options.wordnet), vocabulary, embed(vocabulary.words, options.model))
    rows = [
        " ".join([own, *(f"{other}{min(9, int(10 * close))}" for other, close in row.items())])
        for own, row in sorted(table.items(), key=lambda item: item[0].encode())
        if row and own.isalpha()
    ]
    options.output.write_text("\n".join(rows) + "\n", "ascii")
    print(f"{len(vocabulary.words)} words, {len(rows)} rows, {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
