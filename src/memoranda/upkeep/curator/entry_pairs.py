"""Says what one entry is to another: the same, contained in it, or superseded by it; most pairs are merely alike.

The rules prefer missing a pair to touching two entries that both hold.
"""

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Literal

from memoranda.upkeep.curator.claims import (
    CHANGED,
    SAYS_NOW,
    Claim,
    agree,
    are_alike,
    left_over,
    normal_claim,
    read_claim,
    says,
)
from memoranda.upkeep.curator.clauses import MONTH, Word, clauses_of
from memoranda.upkeep.curator.missing_facts import missing_facts
from memoranda.upkeep.curator.superseded import LIMITS, NO_LONGER, WHERE, is_superseded, is_with_version

_I = re.IGNORECASE

Relation = Literal["same", "contained", "contains", "superseded"]

_CONTINUES = re.compile(
    r"[ぁ-ゖ]*\s*[\d.,;:，；。、(和与及]|\s+(?:utc|gmt|cet|and|und|et|y|in|on|at|with|as|for|to|since|called|named|by|which"
    r"|who|until|because|weil|under|through|via|everywhere|specifically|running|signed|namens|auf|bei|im|über|unter"
    r"|nommée?|llamad[oa]|mit|als|seit|chez|avec|con|en|par|como|de|à|au)\b|\s+[a-z]{3,}(?:ed|ing)\s+(?:with|by|in|on"
    r"|at|from|to|as|for|via|and)\b",
    _I,
)
# What limits a statement elsewhere, and behind a whole one only adds to it: "tea, without sugar", "until 30 September".
_ADDED = re.compile(
    r"(?:,|\band)\s+(?:\w+ and )?(?:without|ohne|sans|sin)\b"
    rf"|\b(?:until|bis|jusqu['’]au|hasta)\s+\d{{1,2}}\.?\s+{MONTH}",
    _I,
)
_EXCEPTS = re.compile(
    r"(?<!-)\b(?:if|when|unless|except|but|wenn|außer|si|sauf|cuando|salvo)\b|[,;(]\s*(?:only|nur|seulement|solo"
    r"|sólo)\b|如果|除|只",
    _I,
)
_PERSONS = re.compile(
    r"\b(?:manager|boss|lead|owner|contact|colleague|wife|husband|partner|son|daughter|brother|sister|friend|doctor"
    r"|dentist|teacher|landlord|accountant|mentor|assistant|therapist)\b",
    _I,
)
_ROLE = re.compile(
    r"\b(?:of|by|before|after|over|than|not|to|into|from|on|in|with|for|vor|nach|über|von|avant|après|de|antes"
    r"|después)\s+(?:(?:the|an?|der|dem|den|die|la|le|el)\s+)?$|是|比|给|は|より",
    _I,
)
_SAYS_IS = re.compile(
    r"\b(?:is|are|was|be|by|with|for|in|on|at|using|via|ist|sind|mit|für|est|sont|avec|pour|es|son|con|para)\b|[:=,，、]",
    _I,
)
_BY = re.compile(r"\s+(?:\w+ed\s+)?(?:by|von|par|por)\b", _I)
_BREAK = re.compile(r"(?<=\w)(?=[\s,;:，；。、])")
_JOINS = re.compile(r"\b(?:and|und|et|y)\b|[,和、(]", _I)
_LAST_PREPOSITION = re.compile(rf"{WHERE.pattern}\s+(?:(?:the|der|die|den|le|la|el)\s+)?$", _I)
# Verbs that only join what a statement is about with what it says of it.
_JOINING = frozenset(("use", "place", "run", "write", "call", "require", "live"))
# What a thing of some kind stands behind: "sells [handmade] soap".
_OBJECT = re.compile(r"\w \w{2,}s\s+$")
_OFF = re.compile(r"\boff\b", _I)
_ONE_THING = re.compile(r"\b(?:an?|eine?n?|une?|una)\s+$", _I)


def relation_of(older: str, newer: str) -> Relation | None:
    """What the newer entry is to the older one, or None; "contains" if the newer one says all of the older and more."""
    old, new = read_claim(older), read_claim(newer)
    if not old.keys or not new.keys:
        return None
    if old.subject and new.subject and old.subject != new.subject:
        return None
    if is_superseded(old, new):
        return "superseded"
    if _is_same(normal_claim(older), normal_claim(newer)):
        return "same"
    if _is_contained(old, new) or _begins_with(newer, older):
        return "contains"
    return "contained" if _is_contained(new, old) or _begins_with(older, newer) else None


def _loses(one: str, other: str) -> bool:
    return any(not lost.startswith("word ") for lost in missing_facts([one], other))


def _is_same(old: Claim, new: Claim) -> bool:
    """Whether both have the same words in any order, but for light ones, and no word has another part in it."""
    apart = old.verbs ^ new.verbs
    if not _may_agree(old, new) or CHANGED in apart or (old.verbs and new.verbs and not _join(apart)):
        return False
    if any(bool(mark.search(old.text)) != bool(mark.search(new.text)) for mark in (NO_LONGER, _OFF)):
        return False
    only = left_over(old, new)
    shared = [word for word in old.words if says(new, word)]
    if any(only) or not shared:
        return False
    more = [len(claim.words) > 1 for claim in (old, new)]
    if len(shared) == 1 and (all(more) or (any(more) and old.subject != new.subject)):
        return False
    return not _is_turned(old, new) and not _loses(old.text, new.text) and not _loses(new.text, old.text)


def _may_agree(old: Claim, new: Claim) -> bool:
    return agree(old, new) or _join(old.verbs | new.verbs)


def _join(verbs: frozenset[str]) -> bool:
    return verbs <= _JOINING or are_alike(verbs)


def _is_turned(old: Claim, new: Claim) -> bool:
    """Whether two words have changed their roles: who does what to whom, what belongs to what, what comes first."""
    once = {key for key in old.keys if old.keys.count(key) == new.keys.count(key) == 1}
    places = [(old.words[old.keys.index(key)], new.words[new.keys.index(key)]) for key in once]
    for (one, three), (two, four) in combinations(places, 2):
        before, after = ((_role(old, one), _role(old, two)), (_role(new, three), _role(new, four)))
        if _JOINS.search(old.text[min(one.at, two.at) : max(one.at, two.at)]):
            continue
        ends = [{claim.words[0], claim.words[-1]} for claim in (old, new)]
        may_turn = one.kind == two.kind == "name" or [{one, two}, {three, four}] == ends
        is_crossed = may_turn and not any(before) and (one.at < two.at) != (three.at < four.at)
        if before == after[::-1] and (before != after or (is_crossed and not _SAYS_IS.search(old.text + new.text))):
            return True
    return False


def _role(claim: Claim, word: Word) -> str:
    """What joins a word to the others: "of" also for "Ana's"."""
    if re.match(r"['’]s\b", claim.text[word.at + len(word.text) :]) or re.search(r"['’]s?$", word.text):
        return "of"
    match = _ROLE.search(claim.text[: word.at])
    return match[0].split()[0].lower() if match else ""


def _is_contained(part: Claim, whole: Claim) -> bool:
    """Whether the whole says the part and adds to it, or has it as one of its clauses."""
    count = len(part.keys)
    if count >= len(whole.keys) or not _may_agree(part, whole) or CHANGED in whole.verbs:
        return False
    if count == 1 and part.verbs - whole.verbs:
        # One word of "works with Ola" is in much that says another thing.
        return False
    if set(whole.keys[:count]) == part.values:
        begin = part.text.rstrip(" .!。")
        is_prefix = whole.text.lower().startswith(begin.lower())
        rest = whole.text[len(begin) :] if is_prefix else _text_behind(whole, count)
        if _PERSONS.search(part.text) and part.words[-1].kind == "name":
            # The other name of a person.
            rest = re.sub(r"^ [A-Z][^\W\d_]+", "", rest)
        if whole.keys[:count] != part.keys and _BY.match(rest):
            return False
        return _adds(rest) and not _is_limited(rest) and not _loses(part.text, whole.text)
    if _has_inserted(part, whole):
        return not _loses(part.text, whole.text)
    clauses = [read_claim(clause.text) for clause in clauses_of(whole.text)]
    return len(clauses) > 1 and any(
        clause.values == part.values and agree(part, clause) and not _loses(part.text, clause.text)
        for clause in clauses
    )


def _begins_with(whole: str, part: str) -> bool:
    """Whether an entry begins by saying another one in other words, and adds to it."""
    said, everything = normal_claim(part), normal_claim(whole)
    if len(said.words) >= len(everything.words) or left_over(said, everything)[0]:
        return False
    for end in (match.start() for match in _BREAK.finditer(whole)):
        begin, rest = whole[:end], whole[end:]
        if bool(LIMITS.search(begin)) != bool(LIMITS.search(part)) or _BY.match(rest):
            continue
        if _adds(rest) and not _is_limited(rest) and _is_same(said, normal_claim(begin)):
            return True
    return False


def _is_limited(rest: str) -> bool:
    """Whether what follows a statement takes some of it back; behind a comma, only an exception or a condition does."""
    is_apart = re.match(r"\s*(?:[,;，；(]|and\b|which\b)", rest)
    limits = _EXCEPTS if is_apart or re.match(r"\s+(?:with|using|by|in|on|at|mit|avec|con)\b", rest) else LIMITS
    return bool(limits.search(_ADDED.sub("", rest)))


def _has_inserted(part: Claim, whole: Claim) -> bool:
    """Whether the whole has the words of the part in their order, and between them more of a list, or of a thing."""
    places: list[int] = []
    for key in part.keys:
        start = places[-1] + 1 if places else 0
        if key not in whole.keys[start:]:
            return False
        places.append(whole.keys.index(key, start))
    words = whole.words
    runs = [(one + 1, two) for one, two in pairwise([-1, *places]) if two > one + 1]
    for begin, end in runs:
        before = whole.text[: words[begin].at]
        between = _LAST_PREPOSITION.sub("", whole.text[words[begin].at : words[end].at])
        if begin and end == begin + 1 and words[begin].kind == "number" and is_with_version(words[begin - 1 : end]):
            continue
        if not begin and re.search(r"^[^\W\d_]\w*:\s+$", between):
            continue
        if begin and _PERSONS.fullmatch(words[begin - 1].text) and {word.kind for word in words[begin:end]} == {"name"}:
            continue
        if (
            _OBJECT.search(before)
            and end == begin + 1
            and re.fullmatch(r"[a-z-]+ ", whole.text[words[begin].at : words[end].at])
        ):
            continue
        if _ONE_THING.search(before) and not WHERE.search(between) and not re.search(r"[^\w\s-]", between):
            continue
        lead = whole.text[words[begin - 1].at : words[begin].at] if begin else ""
        if WHERE.search(between) or SAYS_NOW.search(between) or not (_JOINS.search(lead) or _JOINS.search(between)):
            return False
    rest = _text_behind(whole, places[-1] + 1)
    return bool(runs) and not LIMITS.search(rest) and (not re.search(r"\w", rest) or _adds(rest))


def _text_behind(claim: Claim, count: int) -> str:
    last = claim.words[count - 1]
    rest = claim.text[last.at + len(last.text) :]
    return re.sub(r"^\s?[^\W\d_]+", "", rest) if last.unit else rest


def _adds(rest: str) -> bool:
    """Whether a text continues behind a whole phrase: "React Native" is not React and more."""
    return _CONTINUES.match(rest) is not None


def find_pairs(entries: Sequence[str]) -> list[tuple[int, int, Relation]]:
    """The related pairs among entries in the order they were written: the places of the older and the newer one."""
    return [
        (older, newer, relation)
        for newer in range(len(entries))
        for older in range(newer)
        if (relation := relation_of(entries[older], entries[newer])) is not None
    ]
