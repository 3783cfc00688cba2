"""Checks that the user's own words support what a review wants to save.

The check compares words, on purpose: a model that was talked into a write would also be talked into approving it. It
checks a text clause by clause. The user must have used most content words of a clause within a few sentences of each
other, and all of its names, numbers, paths and identifiers. Words that the user only denied do not support the same
words without the denial. Recalled memory, tool results and the assistant's words are not the user's, so they support
nothing.

The check does not understand the text: a question supports the same words as a statement.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from memoranda.agent.review.clauses import (
    EMPTY_WORDS,
    EMPTY_WORDS_OF_SKILLS,
    ClauseWord,
    clauses,
    content_words,
    denies,
    sentences,
    share,
    token_set,
)
from memoranda.safety.fence import sanitize_context

_MIN_SUPPORT = 0.6
_MIN_MENTION = 0.34
_MIN_COVERAGE = 0.8
_MIN_KEPT = 0.5
_WINDOW_SENTENCES = 4
_MAX_SENTENCES = 4_000
_KEPT_END_CHARS = 10_000
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_NOTHING_KNOWN: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UnsupportedClause:
    """A clause without support: `missing` are words that the user did not use; or the user said the contrary."""

    clause: str
    missing: tuple[str, ...]
    contrary: bool = False


@dataclass(frozen=True, slots=True)
class _Clause:
    tokens: frozenset[str]
    denies: bool


class UserEvidence:
    """The user's own words in one conversation."""

    def __init__(self, messages: Sequence[str]) -> None:
        all_sentences = [sentence for message in messages for sentence in sentences(own_words(message))]
        recent = all_sentences[-_MAX_SENTENCES:]
        tokens = list(map(token_set, recent))
        # Neighbouring sentences count together, also across messages, because one may answer the other.
        self._windows = [
            frozenset(chain.from_iterable(tokens[start : start + _WINDOW_SENTENCES])) for start in range(len(tokens))
        ]
        self._clauses = [
            _Clause(token_set(clause), denies(clause)) for sentence in recent for clause in clauses(sentence)
        ]

    def find_unsupported(self, text: str, existing: str = "", *, skill: bool = False) -> UnsupportedClause | None:
        """The first clause of a text without support; `existing` is text that is saved already and needs none."""
        known = token_set(existing) if existing else _NOTHING_KNOWN
        has_content = False
        for clause in clauses(text):
            words = content_words(clause, EMPTY_WORDS_OF_SKILLS if skill else EMPTY_WORDS)
            new = [word for word in words if not word.is_in(known)]
            has_content = has_content or bool(words)
            if not new:
                continue
            if not any(_supports(window, words, new, known) for window in self._windows):
                return UnsupportedClause(clause, self._missing_words(new))
            if not self._agrees(new, denies(clause)):
                return UnsupportedClause(clause, (), contrary=True)
        return None if has_content else UnsupportedClause(text.strip(), ())

    def adds_words(self, text: str, existing: str) -> bool:
        """Whether a text has content words that the existing text lacks."""
        known = token_set(existing)
        return any(not word.is_in(known) for clause in clauses(text) for word in content_words(clause))

    def mentions(self, text: str) -> bool:
        """Whether the user spoke about the subject of a text."""
        words = content_words(text)
        return any(share(words, window) >= _MIN_MENTION for window in self._windows)

    def _agrees(self, words: list[ClauseWord], denied: bool) -> bool:
        """Whether at least one of the user's best matching clauses agrees: it denies exactly if `denied`."""
        shares = [(share(words, clause.tokens), clause.denies) for clause in self._clauses]
        best = max((part for part, _ in shares), default=0.0)
        return any(part == best and denies == denied for part, denies in shares)

    def _missing_words(self, words: list[ClauseWord]) -> tuple[str, ...]:
        """The words that the best matching sentences lack."""
        best = max(self._windows, key=lambda window: share(words, window), default=_NOTHING_KNOWN)
        return tuple(dict.fromkeys(word.text for word in words if not word.is_in(best)))


def own_words(message: str) -> str:
    """A message without recalled memory and quoted lines; only the beginning and end if it is long."""
    own = _QUOTED.sub("", sanitize_context(message))
    # A pasted book is not the user's own words.
    return own if len(own) <= 2 * _KEPT_END_CHARS else f"{own[:_KEPT_END_CHARS]}\n{own[-_KEPT_END_CHARS:]}"


def is_covered(text: str, by: Collection[str]) -> bool:
    """Whether other texts together contain most words of a text, without saying the contrary."""
    known = frozenset(chain.from_iterable(token_set(other) for other in by if denies(other) == denies(text)))
    return share(content_words(text), known) >= _MIN_COVERAGE


def keeps_most(old: str, new: str) -> bool:
    """Whether a new text keeps at least half of the old words, without saying the contrary."""
    words = content_words(old)
    return denies(old) == denies(new) and (not words or share(words, token_set(new)) >= _MIN_KEPT)


def _supports(window: frozenset[str], words: list[ClauseWord], new: list[ClauseWord], known: frozenset[str]) -> bool:
    together = window | known
    if not all(word.is_in(together) for word in words if word.specific):
        return False
    # Words of the existing entry are not evidence for new ones.
    return share(new, window) >= _MIN_SUPPORT
