"""Matches phrase rules against a list of words in linear time.

Each word that a rule uses gets a symbol, and all other words share the symbol of a filler. A text is then a short
string with one symbol per word, and a rule is a regular expression over symbols whose gaps are bounded, so no text can
make it slow. A rule is only tried when all its required words are present.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice, repeat
from typing import NamedTuple

from memoranda.safety import vocabulary
from memoranda.safety.concept_words import UNSPACED_CONCEPTS
from memoranda.safety.concepts import fold_word
from memoranda.safety.normalization import STOP
from memoranda.safety.phrase_rules import RULES, PhraseRule

_FILLER = "-"
_BREAK = "\n"
_FIRST_SYMBOL = 0x4E00
_MAX_PER_RULE = 3
# This many matches are enough; a text of nothing but rule words would otherwise try every rule.
_MAX_MATCHES = 64
_STACCATO = r"(?:\n.){3,}\n?"
_UNSPACED_SCRIPTS = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"


class PhraseMatch(NamedTuple):
    """The words that a rule matched: `first` up to but not including `last`."""

    rule: PhraseRule
    first: int
    last: int


class _Pattern(NamedTuple):
    rule: PhraseRule
    expression: str
    needs: tuple[frozenset[str], ...]
    first: frozenset[str]


class _RuleBook:
    """All rules as expressions over symbols, and the symbols of the words they use."""

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {STOP: _BREAK}
        self._classes = {name: [fold_word(word) for word in words] for name, words in vocabulary.word_classes().items()}
        self._by_symbol: dict[str, list[_Pattern]] = {}
        for rule in RULES:
            for text in rule.patterns:
                self._add(rule, text)

    def candidates(self, present: frozenset[str]) -> Iterator[_Pattern]:
        """The patterns all of whose required words are present."""
        for symbol in sorted(self._by_symbol.keys() & present):
            for pattern in self._by_symbol[symbol]:
                if all(map(present.intersection, pattern.needs)):
                    yield pattern

    def first_symbols(self, rule_id: str) -> frozenset[str]:
        """The symbols with which the patterns of a rule begin."""
        patterns = chain.from_iterable(self._by_symbol.values())
        return frozenset().union(*(pattern.first for pattern in patterns if pattern.rule.id == rule_id))

    def _add(self, rule: PhraseRule, text: str) -> None:
        """Add a pattern under its rarest required words; every rule has some."""
        needs: list[frozenset[str]] = []
        expression = self._compile_pattern(text, needs)
        key = min(needs, key=len)
        pattern = _Pattern(rule, expression, tuple(need for need in needs if need is not key), needs[0])
        for symbol in key:
            self._by_symbol.setdefault(symbol, []).append(pattern)

    def _compile_pattern(self, pattern: str, needs: list[frozenset[str]] | None) -> str:
        parts: list[str] = []
        forbidden = ""
        for item in pattern.split():
            if item.startswith("!~"):
                forbidden = item[2:]
            elif item.startswith("~"):
                parts.append(f".{{0,{item[1:]}}}?")
            elif item == "$":
                parts.append(rf"(?={_BREAK}|\Z)")
            elif forbidden:
                parts.append(f"(?!.{{0,{forbidden}}}{self._compile_item(item, None)})")
                forbidden = ""
            else:
                parts.append(self._compile_item(item, needs))
        return "".join(parts)

    def _compile_item(self, item: str, needs: list[frozenset[str]] | None) -> str:
        if item == "SYSTEM_PROMPT":
            pairs = "|".join(self._compile_pattern(pair, None) for pair in vocabulary.PAIRS)
            return f"(?:{pairs}|{self._symbol_set(item)})"
        symbols = self._symbol_set(item)
        if needs is not None:
            needs.append(frozenset(symbols[1:-1]))
        return symbols

    def _symbol_set(self, item: str) -> str:
        words = [word for name in item.split("|") for word in self._classes.get(name, [fold_word(name)])]
        return "[" + "".join(sorted({self._symbol_of(word) for word in words})) + "]"

    def _symbol_of(self, word: str) -> str:
        return self.symbols.setdefault(word, chr(_FIRST_SYMBOL + len(self.symbols)))


@cache
def _rule_book() -> _RuleBook:
    return _RuleBook()


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


@cache
def _unspaced_words() -> str:
    return f"({_alternatives([*vocabulary.UNSPACED.values(), *UNSPACED_CONCEPTS.values()])})"


def separate_unspaced(spaced: str) -> str:
    """Put blanks around the words that rules use, in scripts that are written without blanks."""
    if spaced.isascii() or not re.search(_UNSPACED_SCRIPTS, spaced):
        return spaced
    return " ".join(_compiled(_unspaced_words()).split(spaced))


def _alternatives(classes: list[str]) -> str:
    """All words, longest first, grouped by their first letter so that `re` can skip letters that begin none."""
    groups: dict[str, list[str]] = {}
    for word in sorted(
        {fold_word(word) for words in classes for word in words.split()}, key=lambda word: (-len(word), word)
    ):
        groups.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in sorted(groups.items()))


@cache
def _first_symbols(rule_id: str) -> frozenset[str]:
    return _rule_book().first_symbols(rule_id)


def can_begin_phrase(words: Iterable[str], rule_id: str) -> bool:
    """Whether one of these words can be the first of a phrase that a rule forbids."""
    return not _first_symbols(rule_id).isdisjoint(map(_rule_book().symbols.get, words, repeat(_FILLER)))


def can_form_phrase(words: Iterable[str], rule_id: str = "") -> bool:
    """Whether these words, in any order, could form a phrase that a rule forbids: any rule, or the one with this id."""
    book = _rule_book()
    present = frozenset(map(book.symbols.get, words, repeat(_FILLER)))
    return any(rule_id in ("", pattern.rule.id) for pattern in book.candidates(present))


def find_phrases(words: list[str]) -> list[PhraseMatch]:
    """Find every rule's phrases in a list of folded words; of those of one kind that overlap, the first."""
    kept: list[PhraseMatch] = []
    ends: dict[str, int] = {}
    counts: Counter[str] = Counter()
    # Several words may lead to the same pattern; a set contains each of its matches once.
    found = set(islice(_find_matches(words), _MAX_MATCHES))
    for phrase in sorted(found, key=lambda phrase: (phrase.first, phrase.rule.id, phrase.last)):
        if phrase.first >= ends.get(phrase.rule.id, 0) and counts[phrase.rule.id] < _MAX_PER_RULE:
            counts[phrase.rule.id] += 1
            ends[phrase.rule.id] = phrase.last
            kept.append(phrase)
    return kept


def _find_matches(words: list[str]) -> Iterator[PhraseMatch]:
    book = _rule_book()
    symbols = "".join(map(book.symbols.get, words, repeat(_FILLER)))
    if _BREAK in symbols:  # "Ignore. All. Previous. Instructions." is one phrase
        symbols = re.sub(_STACCATO, lambda match: match[0].replace(_BREAK, _FILLER), symbols)
    for pattern in book.candidates(frozenset(symbols)):
        for match in islice(_compiled(pattern.expression).finditer(symbols), _MAX_PER_RULE):
            yield PhraseMatch(pattern.rule, match.start(), match.end())
