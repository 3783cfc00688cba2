"""Finds sentences that do something dangerous, by the concepts of their words: who is to send what, and where to.

The order of the words does not matter, so one rule serves fourteen languages. The words of a text are looked up once;
only when the concepts of some rule are all in the text are its sentences examined one by one. All work is linear.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from memoranda.safety.concepts import PLACEHOLDERS, concept_book
from memoranda.safety.finding import Severity
from memoranda.safety.normalization import STOP, blank_punctuation, split_words
from memoranda.safety.phrase_matcher import separate_unspaced

_WINDOW = 32
_END = -1
_OWN_HOST = (
    r"localhost|127\.|10\.|192\.168\.|(?:[\w-]{1,60}\.){0,4}(?:internal|local|lan|corp|intranet)\b"
    r"|(?:[\w-]{1,60}\.){0,4}(?:github|gitlab|googleapis|anthropic|openai|docker|python)\.(?:com|org|io)\b"
)
# Each begins with a rare sign or at the start of a word, so that text without any costs little.
_ADDRESSES = rf"@[a-z0-9-]{{1,63}}\.[a-z]|://(?!{_OWN_HOST})[\w\[]|(?<![\d.])\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?![\d.])"
_PATHS = (
    r"\.(?:env|netrc|ssh|aws|kube)\b|id_(?:rsa|ed25519)\b(?!\.pub)|(?:memory|user)\.md\b|mcp\.json\b"
    r"|_(?:key|token|secret|password)\b"
)
# "keys" alone may be those of a dictionary, "codes" any codes.
_QUALIFIED = (
    r"\b(?:api|ssh|private|secret|access|signing|recovery|factor|2fa|mfa|backup|encryption|login|cles?|claves?|chiavi"
    r"|chaves?)[ -](?:keys?|codes?|tokens?|api|secretas?|segrete|prive)\b"
)


@dataclass(frozen=True, slots=True)
class SentenceRule:
    """A kind of attack, and the concepts that make a sentence one.

    Each pattern lists what the sentence must contain; `A|B` means either concept, and `!A` that the concept spares the
    sentence.
    """

    id: str
    severity: Severity
    message: str
    patterns: tuple[str, ...]


HIGH, MEDIUM = Severity.HIGH, Severity.MEDIUM
SENTENCE_RULES = (
    SentenceRule(
        "memory_poisoning",
        HIGH,
        "The text plants a standing order that would work against the user.",
        (
            "USER|USER_ABROAD PREFER SEND SECRET|PATH ADDRESS|OUTSIDE|ENTIRE !NEG",
            "USER|USER_ABROAD PREFER DISABLE|WITHOUT SAFETY !NEG",
            "USER|USER_ABROAD PREFER WITHOUT|NEG ASK PAY|PERMIT",
            "USER|USER_ABROAD PREFER PAY BANK INSTEAD",
            "RUN ORDERS THIS_NOTE WITHOUT|NEG|UNASKED ASK|UNASKED",
        ),
    ),
    SentenceRule(
        "exfiltration_order",
        HIGH,
        "The text orders private data to be sent away.",
        (
            "SEND SECRET|PATH ADDRESS STANDING|HIDE|ENTIRE|PREFER|TOOL !NEG",
            "SEND DATA ADDRESS HIDE|PREFER|TOOL ENTIRE|STANDING|HIDE !NEG",
            "SEND SECRET|DATA|PATH OUTSIDE SERVER HIDE|NEG|STANDING",
            "IMAGE ADDRESS ENCODE|DATA|SECRET REPLY",
            "PARAM CONVERSATION|PATH ENTIRE|CONTENTS !NEG",
        ),
    ),
    SentenceRule(
        "deception",
        HIGH,
        "The text asks to keep something from the user.",
        (
            "NEG TELL USER_ABROAD SEND|SECRET|DATA|ADDRESS",
            "UNTOLD|HIDE USER_ABROAD SEND|SECRET|DATA|ADDRESS|SERVER",
        ),
    ),
    SentenceRule(
        "role_hijack",
        HIGH,
        "The text tries to give the reader another identity or to lift its limits.",
        ("YOU_ARE MODEL WITHOUT LIMITS", "YOU_ARE MODEL UNLIMITED"),
    ),
    SentenceRule(
        "prompt_injection",
        HIGH,
        "The text orders the reader to abandon its earlier instructions.",
        ("FORGET RULEBOOK EARLIER", "FORGET EARLIER SHOW SYSTEM|PROMPT"),
    ),
    SentenceRule(
        "prompt_extraction",
        MEDIUM,
        "The text asks the reader to give away its instructions.",
        ("SHOW SYSTEM PROMPT",),
    ),
    SentenceRule(
        "hidden_text",
        MEDIUM,
        "The text tells the reader to decode something and to obey it.",
        ("DECODE FOLLOW !NEG",),
    ),
)


class SentenceMatch(NamedTuple):
    """The words of the sentence that a rule matched: `first` up to but not including `last`."""

    rule: SentenceRule
    first: int
    last: int


class _Pattern(NamedTuple):
    """A pattern as bits of concepts: one mask for each concept it needs, and one of those that spare a sentence."""

    rule: SentenceRule
    needs: tuple[int, ...]
    spares: int


@cache
def _patterns() -> tuple[_Pattern, ...]:
    mask = concept_book().mask
    return tuple(
        _Pattern(
            rule,
            tuple(mask(item) for item in pattern.split() if not item.startswith("!")),
            mask("|".join(item[1:] for item in pattern.split() if item.startswith("!"))),
        )
        for rule in SENTENCE_RULES
        for pattern in rule.patterns
    )


def find_sentences(plain: str, words: list[str]) -> Iterator[SentenceMatch]:
    """Find the sentences of a folded text that match a rule; `words` are the words of that text."""
    book = concept_book()
    present = book.mask("|".join(PLACEHOLDERS))
    for mask in book.concepts_of(set(words)).values():
        present |= mask
    patterns = [pattern for pattern in _patterns() if all(map(present.__and__, pattern.needs))]
    if not patterns:
        return
    marked = split_words(separate_unspaced(blank_punctuation(_mark_addresses(plain))))
    ends: list[int] = []
    for number, masks in _concept_sentences(marked, book.concepts_of(set(marked))):
        rule = _match(masks, patterns)
        if rule is not None:
            # Marking replaces words but no sentence end, so a sentence has the same number in both lists.
            ends = ends or [index for index, word in enumerate([*words, STOP]) if word == STOP]
            first = ends[number - 1] + 1 if number else 0
            yield SentenceMatch(rule, first, max(first + 1, ends[number]))


def _mark_addresses(plain: str) -> str:
    """Put words in the place of addresses, paths of secrets and qualified keys, which are several words otherwise."""
    if "@" in plain or "://" in plain or "." in plain:
        plain = _compiled(_ADDRESSES).sub(f" {PLACEHOLDERS['ADDRESS']} ", plain)
    plain = _compiled(_PATHS).sub(f" {PLACEHOLDERS['PATH']} ", plain)
    return _compiled(_QUALIFIED).sub(f" {PLACEHOLDERS['SECRET']} ", plain)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _concept_sentences(words: list[str], concepts: dict[str, int]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The number of each sentence, with the places and concepts of its words."""
    number = 0
    masks: list[tuple[int, int]] = []
    concepts[STOP] = _END
    for place, mask in enumerate(map(concepts.get, words)):
        if mask is None:
            continue
        if mask is not _END:
            masks.append((place, mask))
            continue
        if masks:
            yield number, masks
            masks = []
        number += 1
    if masks:
        yield number, masks


def _match(masks: list[tuple[int, int]], patterns: list[_Pattern]) -> SentenceRule | None:
    """The first rule that a sentence matches; a long sentence is examined in windows that overlap by half."""
    windows: dict[int, int] = {}
    for place, mask in masks:
        half = (place - masks[0][0]) // (_WINDOW // 2)
        windows[half] = windows.get(half, 0) | mask
        windows[half - 1] = windows.get(half - 1, 0) | mask
    for present in windows.values():
        for rule, needs, spares in patterns:
            if not present & spares and all(map(present.__and__, needs)):
                return rule
    return None
