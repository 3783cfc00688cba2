"""Finds sentences that do something dangerous, by the concepts of their words: who is to send what, and where to.

The order of the words does not matter, so one rule serves fourteen languages. The words of a text are looked up once;
only when the concepts of some rule are all in the text are its sentences examined one by one. All work is linear.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memoranda.safety.concepts import PLACEHOLDERS, concept_book
from memoranda.safety.finding import Severity
from memoranda.safety.normalization import STOP, blank_punctuation, split_sentences, split_words
from memoranda.safety.phrase_rules import separate_unspaced
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_once

_WINDOW = 32
_MAX_READ = 20_000
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
# A text without any of these has no address, no path of secrets and no qualified key.
_HINTS = {
    "ADDRESS": ("@", "://", ".0", ".1", ".2", ".3", ".4", ".5", ".6", ".7", ".8", ".9"),
    "PATH": (".env", ".netrc", ".ssh", ".aws", ".kube", "id_", ".md", "mcp", "_key", "_token", "_secret", "_password"),
    "SECRET": ("key", "code", "token", "api", "secret", "segret", "prive"),
}


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


_TOO_MANY = SentenceRule("hidden_text", MEDIUM, "The text contains more suspicious sentences than can be checked.", ())


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
    """Find the sentences of a folded text that match a rule; `words` are the words of that text.

    A first pass over the words assumes that every sentence has an address if the text has any; only the sentences that
    would match then are read again.
    """
    book = concept_book()
    concepts = book.concepts_of(set(words))
    assumed = book.mask("|".join(name for name, hints in _HINTS.items() if contains_any(hints, plain)))
    present = assumed
    for mask in concepts.values():
        present |= mask
    possible = _possible_patterns(present, _patterns())
    if not possible:
        return
    candidates = [number for number, masks in _concept_sentences(words, concepts) if _match(masks, assumed, possible)]
    if candidates:
        yield from _read_again(plain, words, candidates)


def _read_again(plain: str, words: list[str], candidates: list[int]) -> Iterator[SentenceMatch]:
    """Match the sentences with these numbers, with a word in the place of each address."""
    book = concept_book()
    texts = split_sentences(plain)
    ends = [index for index, word in enumerate([*words, STOP]) if word == STOP]
    room = max(_MAX_READ, len(plain) // 4)
    for number in candidates:
        first = ends[number - 1] + 1 if number else 0
        span = first, max(first + 1, ends[number])
        room -= len(texts[number])
        if room < 0:
            yield SentenceMatch(_TOO_MANY, *span)
            return
        marked = split_words(separate_unspaced(blank_punctuation(_mark_addresses(texts[number]))))
        for _, masks in _concept_sentences(marked, book.concepts_of(set(marked))):
            rule = _match(masks, 0, _patterns())
            if rule is not None:
                yield SentenceMatch(rule, *span)
                break


def _mark_addresses(plain: str) -> str:
    """Put words in the place of addresses, paths of secrets and qualified keys, which are several words otherwise."""
    if contains_any(_HINTS["ADDRESS"], plain):
        plain = compile_once(_ADDRESSES).sub(f" {PLACEHOLDERS['ADDRESS']} ", plain)
    plain = compile_once(_PATHS).sub(f" {PLACEHOLDERS['PATH']} ", plain)
    return compile_once(_QUALIFIED).sub(f" {PLACEHOLDERS['SECRET']} ", plain)


def _concept_sentences(words: list[str], concepts: dict[str, int]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The number of each sentence, with the places and concepts of its words."""
    number = 0
    masks: list[tuple[int, int]] = []
    concepts[STOP] = _END
    # Few words have a concept, and a comprehension passes over the others fastest.
    for place, mask in [(place, mask) for place, mask in enumerate(map(concepts.get, words)) if mask]:
        if mask is not _END:
            masks.append((place, mask))
            continue
        if masks:
            yield number, masks
            masks = []
        number += 1
    if masks:
        yield number, masks


def _possible_patterns(present: int, patterns: Sequence[_Pattern]) -> list[_Pattern]:
    """Those of the patterns all of whose concepts are present."""
    return [pattern for pattern in patterns if all(map(present.__and__, pattern.needs))]


def _match(masks: list[tuple[int, int]], assumed: int, patterns: Sequence[_Pattern]) -> SentenceRule | None:
    """The first rule that a sentence matches; a long sentence is examined in windows that overlap by half."""
    whole = assumed
    for _, mask in masks:
        whole |= mask
    possible = _possible_patterns(whole, patterns)
    if not possible:
        return None
    windows: dict[int, int] = {}
    for place, mask in masks:
        half = (place - masks[0][0]) // (_WINDOW // 2)
        windows[half] = windows.get(half, 0) | mask
        windows[half - 1] = windows.get(half - 1, 0) | mask
    for present in {mask | assumed for mask in windows.values()}:
        for rule, needs, spares in possible:
            if not present & spares and all(map(present.__and__, needs)):
                return rule
    return None
