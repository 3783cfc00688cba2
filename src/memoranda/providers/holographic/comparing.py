"""Whether two claims can both be right: the same attribute of the same thing, with values of which there is only one.

Meant to be right rather than complete. It gives nothing when an attribute may have many values (likes, visited, uses),
when one claim only says more than the other, when they differ in more than one place (another time, another part of the
thing), or when one of them speaks of the past.
"""

from typing import NamedTuple

from memoranda.providers.holographic import lexicon
from memoranda.providers.holographic.claims import ENTITY, OBJECT, PLACE, TIME, Claim, is_number, is_time

_LONGEST_VALUE = 5
_Tokens = tuple[str, ...]


class Difference(NamedTuple):
    """What two facts say of one attribute."""

    frames: tuple[_Tokens, _Tokens]
    values: tuple[_Tokens, _Tokens]
    negated: bool = False


def keys(claim: Claim) -> set[str]:
    """What a claim may be compared by: two that can contradict each other share one."""
    words = {*claim.subject, claim.verb, *(token for tokens in claim.chunks.values() for token in tokens)}
    return {word for word in words if word and not is_number(word) and not word.startswith(ENTITY)}


def compare(a: Claim, b: Claim) -> Difference | None:
    """Where two claims differ, if what they differ in can only be one of the two."""
    if not a.verb or not b.verb or a.past != b.past:
        return None
    if a.negated or b.negated:
        return None if a.negated and b.negated else _denied(a, b)
    if _inverted(a, b):
        frame = tuple(sorted({*a.subject, *b.subject, *a.chunks[OBJECT]}))
        return Difference((frame, frame), ((), ()), negated=True)
    a, b = _lifted(a, b), _lifted(b, a)
    if not _same_thing(a, b) or not _same_verb(a, b):
        return None
    different = [part for part in _parts(a, b) if part[1] and part[2]]
    if len(different) != 1:
        return None
    key, mine, theirs = different[0]
    # With other words for a wish only what is the opposite counts.
    alike = a.verb == b.verb or bool(_nouns(a))
    if _opposed(mine, theirs) or (alike and _one_value(a, b, key, mine, theirs)):
        return _difference(a, mine, theirs)
    return None


def _difference(claim: Claim, mine: _Tokens, theirs: _Tokens) -> Difference:
    frame = tuple(sorted({*claim.subject, claim.verb}))
    return Difference((frame, frame), (mine, theirs))


def _inverted(a: Claim, b: Claim) -> bool:
    """ "Bruno is taller than Clara" and the other way round."""
    return (
        a.verb == b.verb == "is"
        and bool(a.chunks.get("than"))
        and a.chunks.get(OBJECT) == b.chunks.get(OBJECT)
        and OBJECT in a.chunks
        and set(a.chunks["than"]) == b.subject
        and set(b.chunks.get("than", ())) == a.subject
    )


def _denied(a: Claim, b: Claim) -> Difference | None:
    """One says what the other denies; the one that denies may say less."""
    denied, said = (a, b) if a.negated else (b, a)
    if denied.verb != said.verb and not {denied.verb, said.verb} <= lexicon.TASTE:
        return None
    if denied.verb == "is" and not denied.chunks:
        return None
    if TIME in denied.chunks and TIME not in said.chunks:
        return None
    less, more = _everything(denied), _everything(said)
    if not less <= more and not denied.words <= said.words:
        return None
    frame = tuple(sorted(less | {denied.verb}))
    return Difference((frame, frame), ((), ()), negated=True)


def _everything(claim: Claim) -> set[str]:
    return {*claim.subject, *(token for tokens in claim.chunks.values() for token in tokens)}


def _lifted(claim: Claim, other: Claim) -> Claim:
    """A claim whose attribute is named behind its verb, as the other names it: in front."""
    wanted = {token for token in other.subject - claim.subject if not token.startswith(ENTITY)} - lexicon.KINDS
    behind = {lexicon.NOUNS.get(token, token) for tokens in claim.chunks.values() for token in tokens}
    if not wanted:
        there = {lexicon.NOUNS.get(token, token) for tokens in other.chunks.values() for token in tokens}
        wanted = behind & there & lexicon.TELLING
    if not wanted or not wanted <= behind or not (claim.verb in lexicon.LIGHT or wanted & lexicon.TELLING):
        return claim
    chunks = {
        key: tuple(token for token in tokens if lexicon.NOUNS.get(token, token) not in wanted)
        for key, tokens in claim.chunks.items()
    }
    kept = {key: tokens for key, tokens in chunks.items() if tokens}
    return claim._replace(subject=claim.subject | wanted, verb="is", chunks=kept)


def _same_thing(a: Claim, b: Claim) -> bool:
    apart = a.subject ^ b.subject
    together = a.subject & b.subject
    return (
        bool(together - lexicon.KINDS)
        and apart <= lexicon.KINDS
        and not (a.subject - b.subject and b.subject - a.subject)
    )


def _same_verb(a: Claim, b: Claim) -> bool:
    if a.verb == b.verb or {a.verb, b.verb} <= lexicon.TASTE:
        return True
    return bool(_nouns(a)) and a.verb in lexicon.LIGHT and b.verb in lexicon.LIGHT


def _nouns(claim: Claim) -> set[str]:
    return {token for token in claim.subject if not token.startswith(ENTITY)} - lexicon.KINDS


def _parts(a: Claim, b: Claim) -> list[tuple[str, _Tokens, _Tokens]]:
    """What each says that the other does not, by what introduces it; what is said of an attribute is its value."""
    first, second = _values(a), _values(b)
    found = []
    for key in {**first, **second}:
        mine, theirs = first.get(key, ()), second.get(key, ())
        found.append((
            key,
            tuple(token for token in mine if token not in theirs),
            tuple(token for token in theirs if token not in mine),
        ))  # fmt: skip
    return found


def _values(claim: Claim) -> dict[str, _Tokens]:
    chunks = dict(claim.chunks)
    if claim.verb == "is" and _nouns(claim) and OBJECT not in chunks:
        for key in (PLACE, "of", "with", "as"):
            if key in chunks:
                chunks[OBJECT] = chunks.pop(key)
                break
    return chunks


def _opposed(mine: _Tokens, theirs: _Tokens) -> bool:
    """Whether they are two words of which only one can be said of a thing."""
    if len(mine) > 2 or len(theirs) > 2:
        return False
    return any(set(mine) & group and set(theirs) & group for group in lexicon.EXCLUSIVE)


def _one_value(a: Claim, b: Claim, key: str, mine: _Tokens, theirs: _Tokens) -> bool:
    if max(len(mine), len(theirs)) > _LONGEST_VALUE:
        return False
    if _nouns(a) & lexicon.MANY or a.verb in lexicon.AGAIN:
        return False
    if key == TIME or (a.verb != "is" and all(map(is_time, mine + theirs)) and _grains(mine) != {"number"}):
        return _one_time(a, mine, theirs)
    numbers = [any(map(is_number, side)) for side in (mine, theirs)]
    if any(numbers):
        return all(numbers) and _one_amount(a, mine, theirs) and not _numbered(a, key, mine[0])
    if a.verb == "is":
        return bool(_nouns(a)) and (bool(_nouns(a) & lexicon.PROPERTIES) or _are_names(a, b, mine, theirs))
    if a.past:
        return False
    if key == PLACE:
        return a.verb in lexicon.SETTLED
    return key == OBJECT and a.verb in lexicon.CHOSEN


def _one_time(claim: Claim, mine: _Tokens, theirs: _Tokens) -> bool:
    """Whether something that is done, or is so, at one time cannot be at the other as well."""
    if claim.past and claim.verb not in lexicon.ONCE:
        return False
    if _often(mine) and _often(theirs):
        return False
    return bool(_grains(mine) & _grains(theirs))


def _often(tokens: _Tokens) -> bool:
    """A clock with the days on which it counts."""
    return len(tokens) > 1 and any(token.endswith("s") for token in tokens)


def _grains(tokens: _Tokens) -> set[str]:
    """In what a time is said: clock, day, month, year, part of the day or the year."""
    found = set()
    for token in tokens:
        if ":" in token:
            found.add("clock")
        elif token.removesuffix("s") in lexicon.DAYS:
            found.add("day")
        elif token in lexicon.MONTHS:
            found.add("month")
        elif is_number(token):
            found.add("number")
        else:
            found.add("part")
    return found


def _one_amount(claim: Claim, mine: _Tokens, theirs: _Tokens) -> bool:
    """Whether they are two amounts of the same, rather than two things with numbers."""
    if claim.past and claim.verb not in lexicon.ONCE:
        return False
    words = [{token for token in side if not is_number(token)} for side in (mine, theirs)]
    return all(side <= lexicon.UNITS for side in words)


def _numbered(claim: Claim, key: str, number: str) -> bool:
    """Whether a number only tells one thing from another of its kind: "report 12"."""
    tokens = _values(claim).get(key, ())
    place = tokens.index(number) if number in tokens else 0
    before = tokens[place - 1] if place else ""
    named = before.startswith(ENTITY) or before in claim.names or before in lexicon.PROPERTIES
    return bool(before) and not named and not is_number(before) and not tokens[place + 1 :]


def _are_names(a: Claim, b: Claim, mine: _Tokens, theirs: _Tokens) -> bool:
    """Whether both values are names or addresses: who has one of a kind has not the other."""
    return all(
        any(token.startswith(ENTITY) or token in claim.names for token in side)
        for claim, side in ((a, mine), (b, theirs))
    )
