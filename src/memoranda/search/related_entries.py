"""Finds the curated entries that share words with a question."""

from collections.abc import Iterable

from memoranda.search.index.stop_words import STOP_WORDS
from memoranda.search.index.tokenizer import is_single_character, tokenize
from memoranda.search.query import FRAMING


def entries_matching(question: str, entries: Iterable[str]) -> list[str]:
    """The entries that share words with a question, those that share most first; equal ones keep their order."""
    subject = _subject_words(question)
    shared = [(len(subject.intersection(tokenize(entry))), entry) for entry in entries]
    return [entry for count, entry in sorted(shared, key=lambda pair: -pair[0]) if count]


def _subject_words(question: str) -> frozenset[str]:
    """The words of a question without stop words, framing words and single characters of unspaced scripts."""
    words = frozenset(tokenize(question))
    meaningful = frozenset(word for word in words - STOP_WORDS if not is_single_character(word))
    return meaningful - FRAMING or meaningful or words
