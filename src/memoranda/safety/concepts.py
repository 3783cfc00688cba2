"""Looks up what words mean: the concepts of `concept_words`, one bit each."""

from functools import cache

from memoranda.safety.concept_words import CONCEPTS, UNSPACED_CONCEPTS
from memoranda.safety.normalization import blank_punctuation, fold

_STEM = 4
PLACEHOLDERS = {"ADDRESS": "0address0", "PATH": "0path0", "SECRET": "0secret0"}
"""Words put in the place of an address, a path of secrets and a qualified key, which are several words otherwise."""


class ConceptBook:
    """The concepts of every listed word and of every listed beginning."""

    def __init__(self) -> None:
        names = dict.fromkeys([*PLACEHOLDERS, *CONCEPTS, *UNSPACED_CONCEPTS])
        self.bits = {name: 1 << number for number, name in enumerate(names)}
        self._words = {word: self.bits[name] for name, word in PLACEHOLDERS.items()}
        self._stems: dict[str, list[tuple[str, int]]] = {}
        for source in (CONCEPTS, UNSPACED_CONCEPTS):
            for name, words in source.items():
                for word in words.split():
                    self._add(word, self.bits[name])

    def _add(self, word: str, bit: int) -> None:
        folded = fold_word(word)
        if word.endswith("*"):
            self._stems.setdefault(folded[:_STEM], []).append((folded, bit))
        else:
            self._words[folded] = self._words.get(folded, 0) | bit

    def mask(self, group: str) -> int:
        """The bits of concepts that are separated by `|`."""
        return sum(self.bits[name] for name in group.split("|") if name)

    def concepts_of(self, words: set[str]) -> dict[str, int]:
        """The concepts of each word that has any."""
        found = {word: self._words[word] for word in self._words.keys() & words}
        for word in words:
            if word[:_STEM] in self._stems:
                for stem, bit in self._stems[word[:_STEM]]:
                    if word.startswith(stem):
                        found[word] = found.get(word, 0) | bit
        return found


@cache
def concept_book() -> ConceptBook:
    """The one book of concepts, built at first use."""
    return ConceptBook()


def fold_word(word: str) -> str:
    """A word of a vocabulary as it appears among the words of a folded text."""
    return blank_punctuation(fold(word)).strip().replace(" ", "")
