"""Finds facts that cannot both be right: the same entity and the same attribute word with different values.

The comparison looks at the words that two facts do not share. If those are one short value in each, and the shared
words name an attribute that has one value at a time ("lives in", "the timeout of … is"), the facts contradict each
other. So do a statement and its denial. The rule is for plain English sentences and prefers missing a pair to inventing
one: it skips the past, attributes with many values ("likes", "uses"), and facts with more than one difference.
`benchmarks/contradictions.py` counts what it finds.
"""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

from memoranda.index.stemmer import stem
from memoranda.providers.holographic.entity_links import KnownEntity, aliases_of, entities_of
from memoranda.providers.holographic.fact import Fact
from memoranda.providers.holographic.fact_store import FactStore

_MAX_FACTS = 5000
_MAX_GROUP = 40
_MAX_PAIRS = 20_000
_MAX_VALUE_WORDS = 3
# Longer facts are not plain sentences, so they are not compared.
_MAX_FACT_CHARS = 400
_ENTITY = "\x00"
_TOKEN = re.compile(r"\x00\d+|\d[\d.,:]*\d|[\w@][\w@./+#-]*[\w+#]|\w")


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


_VERB = "is"
_BE = _words("is are")
_DENIALS = _words("not no never")
_PREPOSITIONS = _words("in at on to for with from by into over under as near without than since during via")
_SKIPPED = _words("""
    a an the has have its his her their my our your this that s t of and aka also still really very currently now always
    usually only just already again does do longer anymore so too up every each year years old
""")
_PAST = re.compile(
    r"\b(?:was|were|had|did|wrote|went|met|got|took|came|left|kept|ran|built|gave|made|used to|formerly|previously"
    r"|originally|until|once|ago)\b"
)
# Phrases that name one attribute, and the word that replaces them.
_PHRASES = tuple(
    (re.compile(rf"\b(?:{phrase})\b"), f" {attribute} ")
    for phrase, attribute in (
        ("lives? in|resides? in|moved to|home is in", "home"),
        ("works? (?:at|for)|is employed (?:by|at)|employer is", "employer"),
        ("reports? to", "manager"),
        ("(?:is |are )?(?:hosted|deployed|served) (?:on|at|in|by)", "host"),
        ("(?:is |are )?(?:owned|maintained|run) by|belongs? to", "owner"),
        ("(?:is |are )?(?:stored|kept) in|stores? (?:its )?data in", "database"),
        ("(?:is |are )?(?:written|implemented) in", "programming"),
        ("named|is called", "name"),
        ("(?:wakes?|gets?) up", "wakes"),
        ("colour", "color"), ("favourite", "favorite"),
    )
)  # fmt: skip
# An entity has one value of these attributes at a time, wherever the word appears in a fact.
_ONE_VALUE = _stems(
    "home employer manager host owner database programming name wakes born married happens expires lands"
)
# The same, if both facts also name the object: "prefers dark mode", not "prefers tea".
_ONE_VALUE_OF_SOMETHING = _stems("""
    takes lasts costs starts ends opens closes begins meets due led drives retries prefers
""")
# An entity may have many of these, so "the … is" does not mean a single value.
_MANY_VALUES = _stems("""
    friend colleague hobby tool member child brother sister part feature language goal interest example note bug issue
    reason
""")


class Contradiction(NamedTuple):
    """Two facts, the newer one first. `score` is the share of common words, not counting the value."""

    newer: Fact
    older: Fact
    shared: tuple[str, ...]
    entity_overlap: float
    score: float

    def as_data(self) -> dict[str, Any]:
        return {
            "fact_a": self.newer.as_data(),
            "fact_b": self.older.as_data(),
            "shared_entities": list(self.shared),
            "entity_overlap": round(self.entity_overlap, 3),
            "content_similarity": round(self.score, 3),
            "contradiction_score": round(self.score, 3),
        }


class FactClaim(NamedTuple):
    """A fact as the stems of its words in order; each entity is one token."""

    tokens: tuple[str, ...]
    entities: frozenset[int]
    denied: bool
    past: bool


def find_contradictions(
    store: FactStore, *, category: str | None = None, min_trust: float = 0.0, limit: int = 10
) -> list[Contradiction]:
    """The pairs of facts that contradict each other, the clearest first."""
    with store.database.reading() as connection:
        newest = store.list_facts(category=category, min_trust=min_trust, limit=_MAX_FACTS)
        facts = {fact.fact_id: fact for fact in newest}
        links = entities_of(connection, list(facts))
        names = aliases_of(connection)
    claims = {
        fact_id: read_claim(fact.content, {known.entity_id: names[known.entity_id] for known in links.get(fact_id, [])})
        for fact_id, fact in facts.items()
    }
    found = []
    for first, second in _candidate_pairs(claims):
        score = compare(claims[first], claims[second])
        if score:
            found.append(_contradiction(facts[first], facts[second], links[first], links[second], score))
    found.sort(key=lambda pair: (-pair.score, -pair.newer.fact_id))
    return found[:limit]


def read_claim(content: str, names: dict[int, list[str]]) -> FactClaim:
    """Parses a fact; `names` are all names of its entities."""
    if len(content) > _MAX_FACT_CHARS:
        return FactClaim((), frozenset(), False, False)
    text = content.replace("’", "'").casefold().replace("n't", " not").replace("cannot", "can not")
    by_name = {name: entity_id for entity_id, aliases in names.items() for name in aliases}
    for name, entity_id in sorted(by_name.items(), key=lambda item: -len(item[0])):
        text = re.sub(rf"(?<![\w.@/-]){re.escape(name.casefold())}(?![\w@/-]|\.\w)", f"{_ENTITY}{entity_id}", text)
    past = bool(_PAST.search(text))
    for phrase, attribute in _PHRASES:
        text = phrase.sub(attribute, text)
    words = _TOKEN.findall(text)
    tokens = tuple(
        _VERB if word in _BE else stem(word) if word.isalpha() else word
        for word in words
        if word not in _SKIPPED and word not in _DENIALS
    )
    past = past or any(
        word.endswith("ed") and before.startswith(_ENTITY) for before, word in zip(["", *words], words, strict=False)
    )
    return FactClaim(tokens, frozenset(names), any(word in _DENIALS for word in words), past)


def compare(a: FactClaim, b: FactClaim) -> float:
    """The score of two claims that contradict each other; 0 if they do not."""
    shared = frozenset(a.tokens) & frozenset(b.tokens)
    if a.past or b.past or not any(token.startswith(_ENTITY) for token in shared):
        return 0.0
    if a.denied or b.denied:
        denial, statement = (a, b) if a.denied else (b, a)
        contrary = not statement.denied and len(shared) > 1 and frozenset(denial.tokens) <= shared
        return len(shared) / len(frozenset(statement.tokens)) if contrary else 0.0
    mine, theirs = _split_value(a.tokens, shared), _split_value(b.tokens, shared)
    if mine is None or theirs is None or (mine.extra and theirs.extra):
        return 0.0
    if not _has_one_value(a.tokens, b.tokens, shared, mine.words, theirs.words):
        return 0.0
    return len(shared) / (len(shared) + len(mine.extra) + len(theirs.extra))


class _Value(NamedTuple):
    words: tuple[str, ...]
    extra: tuple[str, ...]
    """Words after the value that follow a preposition: "… with her cat"."""


def _split_value(tokens: tuple[str, ...], shared: frozenset[str]) -> _Value | None:
    """The value: the one run of words that the other fact does not have; None if there is none, or more than one."""
    different = [
        index for index, token in enumerate(tokens) if token not in shared and token not in (*_PREPOSITIONS, _VERB)
    ]
    if not different:
        return None
    end = different[0]
    while end in different:
        end += 1
    words, extra = tokens[different[0] : end], tuple(tokens[index] for index in different if index >= end)
    if len(words) > _MAX_VALUE_WORDS or (extra and tokens[end] not in _PREPOSITIONS):
        return None
    return _Value(words, extra)


def _has_one_value(
    a: tuple[str, ...], b: tuple[str, ...], shared: frozenset[str], mine: tuple[str, ...], theirs: tuple[str, ...]
) -> bool:
    """Whether the shared words name an attribute that has one value at a time."""
    if a[0] == mine[0] and b[0] == theirs[0]:
        # The claims differ in their subject: "Ana lives in Berlin" and "Bob lives in Berlin".
        return False
    digits = [[word[0].isdigit() for word in value] for value in (mine, theirs)]
    if any(any(value[1:]) for value in digits) or digits[0][0] != digits[1][0]:
        # "reads 3 times" and "writes 5 times" differ in more than a value.
        return False
    if shared & _ONE_VALUE:
        return True
    # Numbers: versions, ports, and "X is 41", which shares only the entity and the verb.
    if digits[0][0] and ("." in mine[0] or "port" in shared or len(shared) == 2):
        return True
    content = {token for token in shared if not token.startswith(_ENTITY)} - _PREPOSITIONS - {_VERB}
    if content & _ONE_VALUE_OF_SOMETHING and content - _ONE_VALUE_OF_SOMETHING:
        return True
    # "The … of X is": a noun before the verb of one fact, which the other fact also has.
    nouns = (_subject_nouns(a) | _subject_nouns(b)) & shared
    return bool(nouns) and not nouns & _MANY_VALUES


def _subject_nouns(tokens: tuple[str, ...]) -> frozenset[str]:
    subject = tokens[: tokens.index(_VERB)] if _VERB in tokens else ()
    return frozenset(token for token in subject if not token.startswith(_ENTITY) and token not in _PREPOSITIONS)


def _candidate_pairs(claims: dict[int, FactClaim]) -> Iterator[tuple[int, int]]:
    """Pairs of facts that share an entity and another word, each once, the newest first."""
    groups: dict[tuple[int, str], list[int]] = {}
    for fact_id in sorted(claims, reverse=True):
        claim = claims[fact_id]
        words = dict.fromkeys(token for token in claim.tokens if not token.startswith(_ENTITY))
        for key in ((entity, word) for entity in sorted(claim.entities) for word in words):
            group = groups.setdefault(key, [])
            if len(group) < _MAX_GROUP:
                group.append(fact_id)
    seen: set[tuple[int, int]] = set()
    for group in groups.values():
        for pair in combinations(group, 2):
            if pair not in seen:
                seen.add(pair)
                yield pair
        if len(seen) >= _MAX_PAIRS:
            return


def _contradiction(
    a: Fact, b: Fact, links_a: list[KnownEntity], links_b: list[KnownEntity], score: float
) -> Contradiction:
    newer, older = (a, b) if (a.updated_at, a.fact_id) >= (b.updated_at, b.fact_id) else (b, a)
    shared = [known for known in links_a if known in links_b]
    overlap = len(shared) / max(1, len({*links_a, *links_b}))
    return Contradiction(newer, older, tuple(known.name for known in shared), overlap, score)
