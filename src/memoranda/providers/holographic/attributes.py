"""Two facts as a frame that they share and values in which they differ: "Ana lives in" with "Berlin" and "Tokyo".

The comparison is meant to be right rather than complete. It gives nothing when an attribute is not known to have
one value (likes, visited, uses), when one fact only says more than the other, when they speak of different times, or
when they differ in who is spoken of.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import NamedTuple

from memoranda.index.segments import segment
from memoranda.providers.holographic.words import SMALL

_MOST_TOKENS = 60
_LONGEST_VALUE = 6
# Behind a value: "years old", "mode". More than that, and what differs is a detail inside something else.
_LONGEST_ENDING = 2
_LEAST_ENTITY = "\x00"


def _tokens(words: str) -> frozenset[str]:
    return frozenset(token for word in words.split() for token in segment(word))


# Different words for one attribute.
_SYNONYMS = (
    (
        re.compile(r"\b(?:(?:is|are) (?:based|living|located)|lives?|resides?|moved|relocated) (?:in|to|at)\b"),
        "livesin",
    ),
    (re.compile(r"\b(?:(?:is )?employed by|(?:is working|works?) (?:at|for))\b"), "worksat"),
    (re.compile(r"\bis written in\b"), "writtenin"),
    (re.compile(r"\bis (?:hosted|deployed) (?:on|in|at|to)\b"), "hostedat"),
    (re.compile(r"\bis (?:named|called)\b"), "isnamed"),
    (re.compile(r"\bfavorite\b"), "favourite"),
    (re.compile(r"\b(?:currently|now|nowadays|these days|at the moment|today)\b"), " "),
)
_PAST = re.compile(
    r"\b(?:used to|formerly|previously|once|no longer|lived|worked|was|were|had|until|till|before|originally"
    r"|in the past)\b"
)
_NEGATION = _tokens("not never don't doesn't didn't isn't aren't wasn't weren't can't won't cannot")
_FILLING = _tokens("a an the do does did very really also still")
_PREPOSITIONS = _tokens("in at on for to with from by of about into over under as near")
# Attributes that have one value at a time. Any other may have many: who likes tea may like coffee.
_ONE = _tokens("""
livesin worksat writtenin hostedat isnamed prefer born married located listens owned led managed happens due expires
costs weighs default timezone capital birthday
""")
# One, if it is a number.
_COUNTED = _tokens("use has have need keep get allow start begin end open close run last take retry set")
# Said of one thing after another, even with a number or an "is": these are never one value.
_MANY = _tokens(
    "like love enjoy visit met meet know knew read watch fixed fix visited friend colleague hobby member ate"
)
_IS = _tokens("is are =")
_TIMES = _tokens("""
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december spring summer autumn fall winter morning evening afternoon night weekend weekday week month
year quarter
""")
_YEAR = re.compile(r"(?:19|20)\d\d")


class Reading(NamedTuple):
    """A fact as tokens, in which every entity is one token of its own."""

    tokens: tuple[str, ...]
    entities: frozenset[int]
    past: bool
    negated: bool


class Difference(NamedTuple):
    """What two facts say of one attribute."""

    frames: tuple[tuple[str, ...], tuple[str, ...]]
    values: tuple[tuple[str, ...], tuple[str, ...]]
    negated: bool = False


def read(content: str, entities: Mapping[int, Iterable[str]]) -> Reading:
    """`entities` are the fact's own, each with all its names."""
    plain = content.casefold().replace("’", "'")
    past = _PAST.search(plain) is not None
    for pattern, word in _SYNONYMS:
        plain = pattern.sub(word, plain)
    tokens = segment(plain)[:_MOST_TOKENS]
    names = [(segment(name), entity_id) for entity_id, known in entities.items() for name in known]
    for name, entity_id in sorted(names, key=lambda pair: -len(pair[0])):
        tokens = _replaced(tokens, name, f"{_LEAST_ENTITY}{entity_id}")
    negated = any(token in _NEGATION for token in tokens)
    kept = tuple(token for token in tokens if token not in _FILLING and token not in _NEGATION)
    return Reading(kept, frozenset(entities), past, negated)


def telling(reading: Reading) -> set[str]:
    """The tokens that may name an attribute."""
    return {token for token in reading.tokens if token not in SMALL and not token.startswith(_LEAST_ENTITY)}


def attributes(reading: Reading) -> set[str]:
    """Keys for what a fact may say of its entities: two facts that can contradict each other share one."""
    tokens = reading.tokens
    keys = {"as said: " + " ".join(tokens)}
    if any(token in _MANY for token in tokens):
        return keys
    words = [token for token in tokens if token not in SMALL and not _is_number(token)]
    ending = words[-1:]
    keys.update(token for token in words if token in _ONE)
    if any(map(_is_number, tokens)):
        keys.update(token for token in words if token in _COUNTED)
        keys.update(ending)
        keys.add("is a number")
    for index, token in enumerate(tokens):
        if token in _IS:
            keys.update(word for word in tokens[:index] if word not in SMALL and not word.startswith(_LEAST_ENTITY))
            keys.update(ending)
    return keys


def compare(a: Reading, b: Reading) -> Difference | None:
    """Where two facts differ, if what they differ in can only be one of the two."""
    if a.past != b.past:
        return None
    if a.negated != b.negated:
        same = a.tokens == b.tokens and bool(telling(a))
        return Difference((a.tokens, b.tokens), ((), ()), negated=True) if same else None
    spans = _differing(a.tokens, b.tokens)
    if spans is None:
        return None
    (first, second), common = spans
    values = (_value(a.tokens[slice(*first)]), _value(b.tokens[slice(*second)]))
    frames = (a.tokens[: first[0]] + a.tokens[first[1] :], b.tokens[: second[0]] + b.tokens[second[1] :])
    if not _comparable(a.tokens[slice(*first)], b.tokens[slice(*second)], values):
        return None
    if not (a.entities & b.entities) - _entities(values[0]) - _entities(values[1]):
        return None
    predicates = [token for token in common if token not in SMALL and not token.startswith(_LEAST_ENTITY)]
    if not _single_valued(predicates, (a.tokens[: first[0]], a.tokens[first[1] :]), values):
        return None
    return Difference(frames, values)


def _replaced(tokens: list[str], name: list[str], entity: str) -> list[str]:
    found: list[str] = []
    index = 0
    while index < len(tokens):
        if name and tokens[index : index + len(name)] == name:
            found.append(entity)
            index += len(name)
        else:
            found.append(tokens[index])
            index += 1
    return found


_Span = tuple[int, int]
_Values = tuple[tuple[str, ...], tuple[str, ...]]


def _differing(a: Sequence[str], b: Sequence[str]) -> tuple[tuple[_Span, _Span], list[str]] | None:
    """The last place in which they differ, and what they have in common; None when one just says more, or less."""
    blocks = [block for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks() if block.size]
    if not blocks:
        return None
    common = [token for block in blocks for token in a[block.a : block.a + block.size]]
    gaps = [
        ((before.a + before.size, after.a), (before.b + before.size, after.b)) for before, after in pairwise(blocks)
    ]
    different = [gap for gap in gaps if all(_value(side[slice(*span)]) for side, span in zip((a, b), gap, strict=True))]
    last = blocks[-1]
    tails = ((last.a + last.size, len(a)), (last.b + last.size, len(b)))
    if all(start < end for start, end in tails):
        # "Berlin in summer" and "Tokyo in winter" differ twice.
        return None if different else (tails, common)
    if any(start < end for start, end in tails) or len(different) != 1:
        return None
    (gap,) = different
    ending = a[gap[0][1] :]
    return None if sum(token not in SMALL for token in ending) > _LONGEST_ENDING else (gap, common)


def _value(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for token in tokens if token not in SMALL)


def _comparable(a: Sequence[str], b: Sequence[str], values: _Values) -> bool:
    """Whether two values are of one kind."""
    if not values[0] or not values[1] or set(values[0]) & set(values[1]) or len(max(values, key=len)) > _LONGEST_VALUE:
        return False
    leading = [tokens[0] if tokens[0] in _PREPOSITIONS else "" for tokens in (a, b)]
    if leading[0] != leading[1]:
        return False
    if any(map(_is_number, values[0])) != any(map(_is_number, values[1])):
        return False
    timed = [[token in _TIMES or _YEAR.fullmatch(token) is not None for token in value] for value in values]
    # "Berlin in summer" and "Tokyo in winter" go together; "Monday" and "Friday" do not.
    return not any(any(flags) and not all(flags) for flags in timed)


def _single_valued(predicates: list[str], where: tuple[tuple[str, ...], tuple[str, ...]], values: _Values) -> bool:
    """Whether what stands before and behind the values speaks of something that there is one of."""
    if any(token in _MANY for token in predicates):
        return False
    prefix, ending = where
    # "The editor of Ana is vim": what is named before "is" there is one of. But who is tall can be a doctor.
    stated = bool(predicates and prefix) and prefix[-1] in _IS
    if stated or any(token in _ONE for token in predicates):
        return True
    # "30", "30 seconds"; but "report 30" is a thing with a number.
    numbers = all(_is_number(value[0]) and len(value) <= 2 for value in values)
    return numbers and (bool(ending) or prefix[-1:] == ("is",) or any(token in _COUNTED for token in predicates))


def _is_number(token: str) -> bool:
    return token.isdecimal()


def _entities(tokens: Iterable[str]) -> frozenset[int]:
    return frozenset(int(token[1:]) for token in tokens if token.startswith(_LEAST_ENTITY))
