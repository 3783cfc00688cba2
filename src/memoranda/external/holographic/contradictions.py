"""Finds facts that cannot both be right: the same subject and the same attribute with different values.

Two facts contradict each other if the words that they do not share are one short value in each, and the shared words
name an attribute with one value: a number or a time, "the … of X is", or a verb of `_ATTRIBUTES` ("lives in"). So do
opposites ("loves", "hates"), a statement and its denial, and a value and the change from it. The rule is for plain
English sentences and prefers missing a pair to inventing one: it skips the past, the objects of other verbs ("likes",
"uses"), and facts with more than one difference.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations, islice, takewhile
from operator import attrgetter
from typing import Any, NamedTuple

from memoranda.external.holographic.entities import aliases_of, entities_of
from memoranda.external.holographic.fact_store import Fact, FactStore
from memoranda.external.holographic.word_index import stems
from memoranda.search.index.related_words import opposite_words, related_words
from memoranda.search.index.stemmer import stem

_MAX_FACTS = 5000
_MAX_GROUP = 40
_MAX_PAIRS = 60_000
_MAX_VALUE_WORDS = 3
# Longer facts are not plain sentences, so they are not compared.
_MAX_FACT_CHARS = 400
# Words at least this close mean the same; words with this many relations in common are of one kind.
_MIN_SAME = 0.8
_MIN_COMMON = 5
_ENTITY = "\x00"
_TOKEN = re.compile(r"\x00\d+|\d[\d.,:]*\d|[\w@][\w@./+#-]*[\w+#]|\w")
_DENIALS = stems("not no never without")
_SKIPPED = _DENIALS | stems("""
    a an the has have its his her their my our your this that s t of and aka also still really very currently now always
    usually only just already again do longer anymore so too every each year old get go send want there can
""")
# The year of what happens only once contradicts, although it is past.
_PAST = re.compile(
    r"(?s)^(?!.*\b(?:born|founded|joined|died) .*(?<![\x00\d])\d).*(?:(?<!is )(?<!are )\b(?:was|were|had|did|wrote|went"
    r"|met|got|took|came|left|kept|ran|built|gave|made|used to|formerly|previously|originally|until|once|ago)\b"
    r"|\x00\d+ (?!moved|named)\w+ed\b)"
)
# A change denies the former value.
_REWRITTEN = (
    (re.compile(r"\bcan(?:'t|not| not) stand\b"), "hates"),
    (re.compile(r"\b(?:moved|switched|changed|migrated) (?:over )?from (.+?) to .*"), r"not \1"),
    (re.compile(r"n't\b|\bcannot\b|\b(?:quit|stopped|gave up)\b"), " not"),
    (re.compile(r"\breports to\b"), "manager to"),
)
# Attributes with one value: the words before the value, and synonyms which the table of related words does not have.
_ATTRIBUTES = {
    "home": ("in to", "lives resides moved based located stored"),
    "host": ("on at by to", "hosted deployed served listens"),
    "job": ("at by for", "works employed employer"),
    "manager": ("to by under", "boss supervisor managed"),
    "owner": ("by to", "owned maintained belongs led"),
    "code": ("in", "written implemented"),
    "name": ("name", "called"),
    "cost": ("", "charges price"),
    "data": ("", "database"),
    "is": ("", "are"),
}
_ATTRIBUTE_OF = {stem(word): attribute for attribute, (_, words) in _ATTRIBUTES.items() for word in words.split()}
_GLUE = stems("is in at on to for with from by into over under as near than since during via about")
_NO_NOUNS = _GLUE | {"cost"}
# An entity may have many of these, so "the … is" does not mean a single value.
_MANY_VALUES = stems("friend colleague hobby tool member child brother sister part feature language goal note issue")
_TIMES_AND_NUMBERS = stems("""
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december morning noon evening night half one two three four five six seven eight nine ten
""")
_UNITS = stems("second minute hour day week month am pm")


class Contradiction(NamedTuple):
    """Two facts, the newer one first. `score` is the share of common words, not counting the value."""

    newer: Fact
    older: Fact
    score: float

    def as_data(self) -> dict[str, Any]:
        names, others = self.newer.entities, self.older.entities
        shared = [name for name in names if name in others]
        return {
            "fact_a": self.newer.as_data(),
            "fact_b": self.older.as_data(),
            "shared_entities": shared,
            "entity_overlap": round(len(shared) / max(1, len({*names, *others})), 3),
            **dict.fromkeys(("content_similarity", "contradiction_score"), round(self.score, 3)),
        }


class FactClaim(NamedTuple):
    """A fact as the stems of its words in order; each entity is one token. Empty if the rule skips the fact."""

    tokens: tuple[str, ...]
    denied: bool


def find_contradictions(
    store: FactStore, *, category: str | None = None, min_trust: float = 0.0, limit: int = 10
) -> list[Contradiction]:
    """The pairs of facts that contradict each other, the clearest first."""
    with store.database.reading() as connection:
        newest = store.list_facts(category=category, min_trust=min_trust, limit=_MAX_FACTS)
        facts = {fact.fact_id: fact for fact in newest if len(fact.content) <= _MAX_FACT_CHARS}
        links = entities_of(connection, list(facts))
        names = aliases_of(connection)
    claims = {
        fact_id: read_claim(fact.content, {known.entity_id: names[known.entity_id] for known in links.get(fact_id, [])})
        for fact_id, fact in facts.items()
    }
    pairs = (((facts[a], facts[b]), compare(claims[a], claims[b])) for a, b in _candidate_pairs(claims))
    age = attrgetter("updated_at", "fact_id")
    found = [Contradiction(max(pair, key=age), min(pair, key=age), score) for pair, score in pairs if score]
    found.sort(key=lambda pair: (-pair.score, -pair.newer.fact_id))
    return found[:limit]


def read_claim(content: str, names: dict[int, list[str]]) -> FactClaim:
    """Parses a fact; `names` are all names of its entities."""
    text = content.replace("’", "'").casefold()
    for pattern, words in _REWRITTEN:
        text = pattern.sub(words, text)
    by_name = {name: entity_id for entity_id, aliases in names.items() for name in aliases}
    for name, entity_id in sorted(by_name.items(), key=lambda item: -len(item[0])):
        text = re.sub(rf"(?<![\w.@/-]){re.escape(name.casefold())}(?![\w@/-]|\.\w)", f"{_ENTITY}{entity_id}", text)
    if _PAST.search(text):
        return FactClaim((), False)
    roots = [stem(word) if word.isalpha() else word for word in _TOKEN.findall(text)]
    tokens = tuple(_ATTRIBUTE_OF.get(word, word) for word in roots if word not in _SKIPPED)
    return FactClaim(tokens, not _DENIALS.isdisjoint(roots))


def compare(a: FactClaim, b: FactClaim) -> float:
    """The score of two claims that contradict each other; 0 if they do not."""
    first, second = ([token for token in claim.tokens if token not in _GLUE] for claim in (a, b))
    shared = frozenset(first).intersection(second)
    if not shared or (first[0] != second[0] and not any(token.startswith(_ENTITY) for token in shared)):
        return 0.0
    if a.denied or b.denied:
        denial, statement = (first, second) if a.denied else (second, first)
        if a.denied == b.denied or len(denial) < 2 or any(_synonyms(word).isdisjoint(statement) for word in denial):
            return 0.0
        return len(shared) / len(frozenset(statement))
    only, others = ({*first} - shared, {*second} - shared)
    if len(only) == len(others) == 1 and others <= opposite_words(*only):
        return 1.0
    mine, theirs = _find_value(a.tokens, shared, second), _find_value(b.tokens, shared, first)
    if mine is None or theirs is None or (mine.extra and theirs.extra) or not _has_one_value(mine, theirs, shared):
        return 0.0
    return len(shared) / (len(shared) + mine.extra + theirs.extra)


class _Value(NamedTuple):
    words: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    is_measure: bool
    extra: int
    """How many words belong neither to the value nor to the other fact: "… with her cat"."""


def _find_value(tokens: tuple[str, ...], shared: frozenset[str], others: list[str]) -> _Value | None:
    """The value: the one run of words that the other fact does not have; None if there is none, or more than one."""
    different = [index for index, token in enumerate(tokens) if token not in shared and token not in _GLUE]
    # The last word is the value; another word for the same attribute comes before it.
    different = [index for index in different if index == different[-1] or _synonyms(tokens[index]).isdisjoint(others)]
    measures = [index for index in different if tokens[index][0].isdigit() or tokens[index] in _TIMES_AND_NUMBERS]
    words = [index for index in different if tokens[index] not in _ATTRIBUTES and tokens[index] not in _UNITS]
    candidates = measures or words or different
    if not candidates:
        return None
    start = end = candidates[0]
    while end in candidates or (measures and end in different and tokens[end] in _UNITS):
        end += 1
    if end - start > _MAX_VALUE_WORDS or (candidates[-1] >= end and (measures or tokens[end] not in _GLUE)):
        return None
    extra = sum(not start <= index < end and tokens[index] not in _UNITS for index in different)
    return _Value(tokens[start:end], tokens[:start], tokens[end:], bool(measures), extra)


def _has_one_value(mine: _Value, theirs: _Value, shared: frozenset[str]) -> bool:
    """Whether the shared words name an attribute that has one value at a time."""
    if mine.is_measure != theirs.is_measure or not (mine.before or theirs.before):
        # Without words before the values the subjects differ: "Ana lives in Berlin" and "Bob lives in Berlin".
        return False
    content = {token for token in shared if not token.startswith(_ENTITY)}
    before = {token for value in (mine, theirs) for token in value.before[-1:]}
    if mine.is_measure:
        return (bool(content) or before == {"is"}) and not (_is_name(mine) or _is_name(theirs))
    if content - {"prefer"} and "prefer" in mine.before + theirs.before + mine.words + theirs.words:
        return True
    nouns = (_subject_nouns(mine) | _subject_nouns(theirs)) & shared
    if nouns:
        return nouns.isdisjoint(_MANY_VALUES)
    is_attribute = any(before.issubset(_ATTRIBUTES[name][0].split()) for name in content & _ATTRIBUTES.keys())
    return is_attribute or (before == {"is"} and _is_same_kind(mine.words[-1], theirs.words[-1]))


def _is_name(value: _Value) -> bool:
    """Whether a number belongs to a name ("table 56"): it follows a noun, and does not count the last words."""
    nouns = list(takewhile(lambda token: token not in _NO_NOUNS and token[0] != _ENTITY, value.before[::-1]))
    counts = len(value.after) in (1, 2) and value.after[0] not in _GLUE and (len(nouns) < 3 or value.after[0] == "time")
    return value.words[-1].isdigit() and len(nouns) >= 2 and not counts


@lru_cache(maxsize=4096)
def _synonyms(word: str) -> frozenset[str]:
    close = {other for other, closeness in related_words(word).items() if closeness > _MIN_SAME}
    return frozenset({word, *close}) - opposite_words(word)


def _is_same_kind(word: str, other: str) -> bool:
    """Whether two words are opposites or of one class: not the same, but related, or related to the same words."""
    first, second = related_words(word), related_words(other)
    closeness = first.get(other, 0)
    return closeness < _MIN_SAME and (closeness > 0 or len(first.keys() & second.keys()) >= _MIN_COMMON)


def _subject_nouns(value: _Value) -> frozenset[str]:
    """The nouns in "the … of X is"; in a sentence without a name the first one is X."""
    tokens = value.before + value.words + value.after
    subject = [token for token in tokens[: tokens.index("is")] if token not in _GLUE] if "is" in tokens else []
    nouns = [token for token in subject if not token.startswith(_ENTITY)]
    return frozenset(nouns[1:] if nouns == subject else nouns)


def _candidate_pairs(claims: dict[int, FactClaim]) -> Iterator[tuple[int, int]]:
    """Pairs of facts that share a subject and the beginning of another word, each once, the newest first."""
    groups: dict[tuple[str, str], list[int]] = {}
    for fact_id in sorted(claims, reverse=True):
        tokens = claims[fact_id].tokens
        subjects = dict.fromkeys(token for token in tokens if token.startswith(_ENTITY) or token == tokens[0])
        words = dict.fromkeys(token if token.startswith(_ENTITY) else token[:5] for token in tokens)
        for key in ((subject, word) for subject in subjects for word in words if word != subject):
            group = groups.setdefault(key, [])
            if len(group) < _MAX_GROUP:
                group.append(fact_id)
    pairs = (pair for group in groups.values() for pair in combinations(group, 2))
    return iter(dict.fromkeys(islice(pairs, _MAX_PAIRS)))
