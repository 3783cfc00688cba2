"""A fact as a claim: who or what it is about, what it says of it, and in which words.

A light reading, good for the plain sentences that facts are. "The timeout of the proxy is 30 seconds" and "the proxy
has a timeout of 2 minutes" become the same attribute of the same thing with two values. What cannot be read this way is
a claim that is like no other, and so contradicts nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from memoranda.index.stemmer import stem
from memoranda.providers.holographic import lexicon

ENTITY = "\x00"
TIME, PLACE, OBJECT = "@time", "@place", ""
_MOST_WORDS = 60
_TOKEN = re.compile(
    r"\x00\d+|'s\b|\d{1,2}:\d\d(?:[ap]m)?|\d+(?:,\d{3})+|\d+(?:\.\d+)+|[\w@][\w@./:+#-]*[\w+#]|\w", re.IGNORECASE
)
_CONTRACTIONS = (
    (re.compile(r"\b(?:can't|cannot)\s+stand\b"), "hates"),
    (re.compile(r"\bno longer\b"), "not"),
    (re.compile(r"\b(?:quit|quits|stopped|gave up|given up) (?=\w+ing\b)"), "does not "),
    (re.compile(r"\bis an? (\w+) by (?:trade|profession)\b"), r"'s job is \1"),
    (re.compile(r"\bfor good\b"), " "),
    (re.compile(r"\bcan't\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\b(get|gets|got) up\b"), "wakes"),
    (re.compile(r"\b(wake|wakes) up\b"), "wakes"),
    (re.compile(r"\bhalf an hour\b"), "30 minutes"),
    (re.compile(r"\ban hour\b"), "60 minutes"),
    (re.compile(r"\b(\d+) hours?\b"), lambda match: f"{int(match[1]) * 60} minutes"),
    (re.compile(r"\b(\d{1,2}) ?([ap])m\b"), r"\1:00\2m"),
    (re.compile(r"\bthere (?:is|are) (no |a |an |some )?(.+?) (?:in|at|on|for) (.+)$"), r"\3 has \1\2"),
    (re.compile(r"\b(?:is|are) (?:set|equal) to\b"), "is"),
    (re.compile(r"\b(?:at least|at most|up to|more than|less than|about|around|or newer|or later|or older)\b"), " "),
    (re.compile(r"\b(?:every|each) (?:day|week|month|year|night)\b"), " "),
    (re.compile(r"\byears? old\b"), "years"),
)  # fmt: skip


class Claim(NamedTuple):
    """`chunks` are what follows the verb, by what introduces it; tokens are stems, entities a token each."""

    subject: frozenset[str]
    verb: str
    chunks: dict[str, tuple[str, ...]]
    entities: frozenset[int]
    negated: bool
    past: bool
    words: frozenset[str] = frozenset()
    """The stems of everything that is said, names included."""
    names: frozenset[str] = frozenset()
    """Tokens that were written with a capital letter, a digit or a sign in them."""


def read(content: str, entities: Mapping[int, Iterable[str]]) -> Claim:
    """`entities` are the fact's own, each with all its names."""
    plain = content.replace("’", "'").strip().rstrip(".!")
    spoken = frozenset(_tokens([word for word in _TOKEN.findall(plain.casefold()) if word not in _SMALL]))
    names = sorted(((name, number) for number, known in entities.items() for name in known), key=lambda n: -len(n[0]))
    for name, number in names:
        plain = re.sub(
            rf"(?<![\w.@/-]){re.escape(name)}(?![\w@/-]|\.\w)", f"{ENTITY}{number}", plain, flags=re.IGNORECASE
        )
    named = frozenset(
        word.casefold() if not word.isalpha() else stem(word.casefold())
        for index, word in enumerate(_TOKEN.findall(plain))
        if index and (word[0].isupper() or not word.isalpha())
    )
    plain = plain.casefold()
    before = any(re.search(rf"\b{words}\b", plain) for words in lexicon.BEFORE)
    for pattern, instead in _CONTRACTIONS:
        plain = pattern.sub(instead, plain)
    words = [word for word in _TOKEN.findall(plain)[:_MOST_WORDS] if word not in lexicon.FILLERS]
    place = _verb(words)
    if place is None:
        return Claim(_bag(words), "", {}, frozenset(entities), False, before)
    return _claim(words, place, frozenset(entities), before)._replace(names=named, words=spoken)


def _claim(words: list[str], place: int, entities: frozenset[int], before: bool) -> Claim:
    subject, rest = words[:place], words[place:]
    negated = any(word in lexicon.NEGATIONS for word in words)
    past = before or rest[0] in ("was", "were", "had", "did") or _is_past(rest[0])
    passive = False
    while len(rest) > 1 and (rest[0] in lexicon.AUXILIARIES or rest[0] in lexicon.NEGATIONS):
        if rest[0] in _BE | {"has", "have", "had"} and not _is_participle(rest):
            break
        passive = passive or rest[0] in _BE
        rest = rest[1:]
    if rest[0] == "born" or (rest[0] in ("moved", "relocated") and "to" in rest):
        # What is so since then is so now.
        past = before
    root, opposite = ("is", False) if rest[0] in _BE else lexicon.VERBS.get(stem(rest[0]), (stem(rest[0]), False))
    chunks = _chunks(rest[1:])
    if not subject:
        # "Send invoices to billing": what is said of the invoices.
        subject = list(chunks.pop(OBJECT, ()))
    claim = Claim(_bag(subject), root, chunks, entities, negated != opposite, past)
    introduced = {word for word in rest if word in lexicon.PREPOSITIONS}
    if passive or root not in ("call", "name"):
        claim = _as_attribute(claim, introduced)
    return _implied(claim)


_BE = frozenset(("is", "are", "was", "were", "be"))


def _implied(claim: Claim) -> Claim:
    """ "Ana is vegetarian" says what she does not eat."""
    said = claim.chunks.get(OBJECT, ())
    if claim.verb != "is" or len(said) != 1 or said[0] not in lexicon.IMPLIED:
        return claim
    verb, thing = lexicon.IMPLIED[said[0]]
    return claim._replace(verb=verb, chunks={OBJECT: (thing,)} if thing else {}, negated=not claim.negated)


def _verb(words: list[str]) -> int | None:
    """Where the verb is: an auxiliary if there is one, else the first word that looks like one."""
    for index, word in enumerate(words):
        if index and word in lexicon.AUXILIARIES:
            return index
    if words and words[0] in lexicon.ORDERS:
        return 0
    possible = [
        index for index, word in enumerate(words) if index and word.isalpha() and words[index - 1] not in _BEFORE_NOUNS
    ]
    # Words that may be nouns as well come last: "the login report needs a review".
    for looks_like_one in (_is_third_person, _is_past, lexicon.BARE_VERBS.__contains__):
        for index in possible:
            if looks_like_one(words[index]):
                return index
    return None


_BEFORE_NOUNS = lexicon.DETERMINERS | lexicon.PREPOSITIONS | {"'s"}


def _is_third_person(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss") and len(word) > 3


def _is_past(word: str) -> bool:
    return word in lexicon.IRREGULAR_PAST or (word.endswith("ed") and len(word) > 4 and word != "need")


def _is_participle(words: list[str]) -> bool:
    """Whether what follows an auxiliary is a participle; a state ("is disabled") is one only if somebody did it."""
    follow = [word for word in words[1:] if word not in lexicon.NEGATIONS]
    if not follow:
        return False
    word, after = follow[0], follow[1:2]
    if stem(word) in _STATES and after != ["by"]:
        return False
    return word in lexicon.PARTICIPLES or (word.endswith("ed") and len(word) > 4)


_STATES = frozenset(word for group in lexicon.EXCLUSIVE for word in group)


def _chunks(words: list[str]) -> dict[str, tuple[str, ...]]:
    """The words behind the verb by what introduces them; times are one chunk, places another."""
    found: dict[str, list[str]] = {}
    introduced, chunk = OBJECT, list[str]()

    def close() -> None:
        tokens = _tokens(chunk)
        if tokens:
            key = TIME if all(map(is_time, tokens)) else PLACE if introduced in _PLACES else introduced
            found.setdefault(key, []).extend(tokens)

    for word in words:
        if word in lexicon.PREPOSITIONS:
            close()
            introduced, chunk = word, []
        else:
            chunk.append(word)
    close()
    return {key: tuple(tokens) for key, tokens in found.items()}


_SMALL = lexicon.FILLERS | lexicon.PREPOSITIONS | lexicon.AUXILIARIES
_PLACES = frozenset(("in", "at", "on", "to", "into", "near", "under"))


def _bag(words: list[str]) -> frozenset[str]:
    return frozenset(lexicon.NOUNS.get(token, token) for token in _tokens(words) if token not in lexicon.PREPOSITIONS)


def _tokens(words: list[str]) -> list[str]:
    """Stems, without small words; numbers that are written out are numbers."""
    skipped = lexicon.DETERMINERS | lexicon.NEGATIONS | lexicon.AUXILIARIES | {"'s", "there", "and", "or"}
    last = len(words) - 1
    kept = [
        lexicon.NUMBERS.get(word, word)
        for index, word in enumerate(words)
        # A month, and a letter that something is called by: "blood type A".
        if word not in skipped or word == "may" or (word == "a" and index == last)
    ]
    return [
        word if not word.isalpha() or word in _KEPT or word.removesuffix("s") in lexicon.DAYS else stem(word)
        for word in kept
    ]


_KEPT = lexicon.DAYS | lexicon.MONTHS | lexicon.PARTS


def is_number(token: str) -> bool:
    return token[:1].isdigit()


def is_time(token: str) -> bool:
    """A day, a month, a clock, a year, or a number that may be part of a date."""
    return (
        token in _KEPT
        or token.removesuffix("s") in lexicon.DAYS
        or re.fullmatch(r"\d{1,2}:\d\d(?:[ap]m)?|(?:19|20)\d\d|\d{1,2}(?:st|nd|rd|th)?", token) is not None
    )


_TIMED = frozenset(("wake", "deadline", "birth"))


def _as_attribute(claim: Claim, introduced: set[str]) -> Claim:
    """A verb that says what a noun could is that noun: the thing's place, manager, language …"""
    special = _of_another(claim) or _turned(claim) or _stated(claim)
    if special is not None:
        return special
    for preposition in ("in", "at", "on", "to", "by", "for", "with", "as", ""):
        noun = lexicon.ATTRIBUTES.get((claim.verb, preposition))
        if noun is None or (preposition and preposition not in introduced):
            continue
        key = PLACE if preposition in _PLACES else preposition
        if key != OBJECT and OBJECT in claim.chunks:
            # "stores images in S3" says where the images are, not the thing itself.
            continue
        timed = noun in _TIMED and TIME in claim.chunks
        source = TIME if timed else key
        values = tuple(token for token in claim.chunks.get(source, ()) if token != noun)
        if not values:
            continue
        rest = {each: tokens for each, tokens in claim.chunks.items() if each != source}
        attribute = f"{noun} time" if timed else lexicon.NOUNS.get(stem(noun), stem(noun))
        return claim._replace(
            subject=claim.subject | {attribute}, verb="is", chunks={**rest, TIME if timed else OBJECT: values}
        )
    return claim


def _of_another(claim: Claim) -> Claim | None:
    """Who is the head of something says who its head is."""
    whose, what = claim.chunks.get("of", ()), claim.chunks.get(OBJECT)
    if claim.verb != "is" or not what or not any(token.startswith(ENTITY) for token in whose):
        return None
    return claim._replace(subject=frozenset({*whose, *what}), chunks={OBJECT: tuple(sorted(claim.subject))})


def _stated(claim: Claim) -> Claim | None:
    """What is due in June has a deadline; what is at example.org has an address."""
    if claim.verb != "is":
        return None
    if claim.chunks.get(OBJECT, ())[:1] == ("due",) or "deadlin" in claim.subject:
        chunks = {key: tokens for key, tokens in claim.chunks.items() if tokens != ("due",)}
        return claim._replace(subject=claim.subject - {"deadlin"} | {"deadline time"}, chunks=chunks)
    where = claim.chunks.get(PLACE, ())
    if OBJECT not in claim.chunks and any("." in token or "@" in token for token in where):
        return claim._replace(subject=claim.subject | {"address"})
    return None


def _turned(claim: Claim) -> Claim | None:
    """ "Jenkins deploys Kite", and "deployments of Kite are done by Jenkins", as what they say of Kite."""
    noun = lexicon.ATTRIBUTES.get((claim.verb, "by"))
    done = claim.chunks.get(OBJECT, ())
    if noun is not None and "by" not in claim.chunks and done and all(token.startswith(ENTITY) for token in done):
        rest = {key: tokens for key, tokens in claim.chunks.items() if key != OBJECT}
        return claim._replace(
            subject=frozenset({*done, stem(noun)}), verb="is", chunks={**rest, OBJECT: tuple(sorted(claim.subject))}
        )
    for token in claim.subject if claim.verb in lexicon.DOING and "by" in claim.chunks else ():
        noun = lexicon.ATTRIBUTES.get((token, "by"))
        if noun is not None:
            rest = {key: tokens for key, tokens in claim.chunks.items() if key != "by"}
            return claim._replace(
                subject=claim.subject - {token} | {stem(noun)}, verb="is", chunks={**rest, OBJECT: claim.chunks["by"]}
            )
    if claim.verb == "store" and done == ("data",) and PLACE in claim.chunks:
        return claim._replace(subject=claim.subject | {"databas"}, verb="is", chunks={OBJECT: claim.chunks[PLACE]})
    return None
