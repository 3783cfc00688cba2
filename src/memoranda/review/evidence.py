"""Whether the user's own words support what is to be saved.

The measure is lexical, on purpose: a model that was talked into something would also be talked into approving it.
A text is taken clause by clause. Of the words of a clause that say something, most must have been used by the user
within a few sentences of each other, and names, numbers, paths and the like all of them; and what the user only denied
does not support the same words without the denial. What was recalled, what tools returned and what the assistant said
is not among the user's words, so it supports nothing.

It does not understand: a question of the user's supports the same words as a statement would.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from memoranda.review.clauses import (
    EMPTY,
    SKILL_EMPTY,
    ClauseWord,
    clauses,
    denies,
    sentences,
    share,
    telling_words,
    token_set,
)
from memoranda.safety.fence import sanitize_context

_ENOUGH = 0.6
_TOUCHED = 0.34
_COVERED = 0.8
_MOST_OF_IT = 0.5
_SENTENCES_TOGETHER = 4
_MOST_SENTENCES = 4_000
_END = 10_000
_QUOTED = re.compile(r"^\s*>.*$", re.MULTILINE)
_NOTHING_KNOWN: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UnsupportedClause:
    """A clause that the user did not say: its words that are not the user's, or that the user said the contrary."""

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
        every = [sentence for message in messages for sentence in sentences(own_words(message))]
        said = every[-_MOST_SENTENCES:]
        tokens = list(map(token_set, said))
        # Sentences that follow each other, also from one message to the next: an answer to a question is one.
        self._windows = [
            frozenset(chain.from_iterable(tokens[start : start + _SENTENCES_TOGETHER])) for start in range(len(tokens))
        ]
        self._clauses = [_Clause(token_set(each), denies(each)) for sentence in said for each in clauses(sentence)]

    def lacks(self, text: str, given: str = "", *, skill: bool = False) -> UnsupportedClause | None:
        """The first clause of a text that has no support; `given` is text that stands already and needs none."""
        known = token_set(given) if given else _NOTHING_KNOWN
        says_something = False
        for clause in clauses(text):
            words = telling_words(clause, SKILL_EMPTY if skill else EMPTY)
            new = [word for word in words if not word.is_in(known)]
            says_something = says_something or bool(words)
            if not new:
                continue
            if not any(_supports(window, words, new, known) for window in self._windows):
                return UnsupportedClause(clause, self._missing(new))
            if not self._agrees(new, denies(clause)):
                return UnsupportedClause(clause, (), contrary=True)
        return None if says_something else UnsupportedClause(text.strip(), ())

    def adds(self, text: str, given: str) -> bool:
        """Whether a text says a word more than another; what says other things with the same words needs more."""
        known = token_set(given)
        return any(not word.is_in(known) for clause in clauses(text) for word in telling_words(clause))

    def touches(self, text: str) -> bool:
        """Whether the user spoke of what a text says."""
        words = telling_words(text)
        return any(share(words, window) >= _TOUCHED for window in self._windows)

    def _agrees(self, words: list[ClauseWord], denied: bool) -> bool:
        """Whether the user said it as it is to be saved, denied or not, in one of the places that fit best."""
        shares = [(share(words, clause.tokens), clause.denies) for clause in self._clauses]
        best = max((part for part, _ in shares), default=0.0)
        return any(part == best and denies == denied for part, denies in shares)

    def _missing(self, words: list[ClauseWord]) -> tuple[str, ...]:
        """What the place that fits best does not have."""
        best = max(self._windows, key=lambda window: share(words, window), default=_NOTHING_KNOWN)
        return tuple(dict.fromkeys(word.text for word in words if not word.is_in(best)))


def own_words(message: str) -> str:
    """A message without what was fenced into it and lines that quote somebody else; of a long one both ends."""
    own = _QUOTED.sub("", sanitize_context(message))
    # Whoever pastes a book has not said everything that is in it.
    return own if len(own) <= 2 * _END else f"{own[:_END]}\n{own[-_END:]}"


def is_covered(text: str, by: Collection[str]) -> bool:
    """Whether other texts together say what a text says, and none of them the contrary."""
    known = frozenset(chain.from_iterable(token_set(each) for each in by if denies(each) == denies(text)))
    return share(telling_words(text), known) >= _COVERED


def keeps_most(old: str, new: str) -> bool:
    """Whether a new text still has most of what the old one said, and does not say the contrary."""
    words = telling_words(old)
    return denies(old) == denies(new) and (not words or share(words, token_set(new)) >= _MOST_OF_IT)


def _supports(window: frozenset[str], words: list[ClauseWord], new: list[ClauseWord], known: frozenset[str]) -> bool:
    together = window | known
    if not all(word.is_in(together) for word in words if word.specific):
        return False
    # Words that stood there before are no reason to believe new ones.
    return share(new, window) >= _ENOUGH
