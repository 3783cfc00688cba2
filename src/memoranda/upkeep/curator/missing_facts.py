"""Checks a merged text against the entries it is made of: whatever it lacks is named.

A model that shortens may lose what matters most: who has which value, and when a rule does not hold. So names, numbers
with their units, dates and paths must be in the merged text, beside the words they belong to. A negation, a condition,
an exception and a bound must hold there for the same words. Plain words may be replaced by others, but not left out.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, permutations

from memoranda.upkeep.curator.clauses import Clause, Word, clauses_of, is_among, is_filler

_I = re.IGNORECASE
NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|\w+n['’]t|nicht|nichts|nie|niemals|kein\w{0,2}|ohne|ne"
    r"|n['’](?=\w)|pas|jamais|aucune?|sans|rien|nunca|ning[uú]n\w?|sin|jamás|tampoco)\b|不|没|沒|无|無|勿|别|禁止|未|ない|ません",
    _I,
)
# Another wording of a negation.
_DENIAL = re.compile(
    NEGATION.pattern
    + r"|\b(?:dislik\w+|hat(?:es?|ed)|avoid\w*|lacks?|lacking|refus\w+|forb\w+|prohibit\w*|bann?\w*|disabled?|off"
    r"|exclud\w+|except\w*|unless|only|un\w{4,}|non-?\w+|instead of|rather than|skip\w*|stop\w*|vermeide\w*|verboten"
    r"|außer|nur|évite\w*|interdi\w+|sauf|seulement|evita\w*|prohib\w+|salvo|excepto|solo|sólo)\b|避免|除|只|仅",
    _I,
)
_EXCEPTION = re.compile(
    r"\b(?:except(?:ing|ion)?|excluding|apart from|other than|unless|save for|besides|but not|aside from|außer"
    r"|ausgenommen|ausnahme|abgesehen von|es sei denn|sauf|excepté|hormis|à l['’]exception|à moins|excepto|salvo"
    r"|menos|a menos que|a excepción)\b|除了|除|例外",
    _I,
)
_KEPT_EXCEPTION = re.compile(f"{_EXCEPTION.pattern}|{_DENIAL.pattern}", _I)
_RESTRICTION = re.compile(
    r"(?<!-)\b(?:only|just|solely|exclusively|nothing but|nur|ausschließlich|seulement|uniquement|ne .{1,40} que|sólo"
    r"|solo|solamente|únicamente)\b|只|仅|唯",
    _I,
)
_KEPT_RESTRICTION = re.compile(f"{_RESTRICTION.pattern}|{_DENIAL.pattern}", _I)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|unless|provided|as long as|in case|wenn|falls|sofern|sobald|solange|si|quand|lorsque"
    r"|dès que|pourvu|cuando|siempre que|en caso)\b|如果|若|当|當|只要|一旦|除非",
    _I,
)
_ORDER = re.compile(
    r"\b(?:before|after|until|till|bevor|nachdem|ehe|avant|après|antes|después|hasta)\b|之前|之后|以前|以后|直到", _I
)
_EARLIER = re.compile(
    r"\b(?:before|until|till|by|up to|bevor|ehe|vor|bis|avant|jusqu\w*|antes|hasta)\b|之前|以前|直到", _I
)
_LATER = re.compile(r"\b(?:after|since|from|nachdem|nach|ab|seit|après|depuis|dès|después|desde)\b|之后|以后", _I)
_WEAK_CONDITION = re.compile(
    _CONDITION.pattern
    + r"|\b(?:on|upon|for|during|in|at|with|once|after|where|every time|each time|only|bei|im|nur|nach|lors|en|al|pour"
    r"|para|except|should|otherwise)\b|时|的话|后",
    _I,
)
_WEAK_ORDER = re.compile(
    _ORDER.pattern
    + r"|\b(?:then|once|first|when|prior|following|followed|earlier|later|if|since|vor|nach|erst|dann|bis|sobald|dès"
    r"|puis|luego|cuando|up to|by|through)\b|后|前|先|再",
    _I,
)
_LOWER_BOUND = re.compile(
    r"\b(?:at least|minimum|min\.|more than|longer than|greater than|over|above|exceed\w*|or more|no less than"
    r"|mindestens|mehr als|länger als|au moins|plus d[e']|al menos|más de|como mínimo)\b|[≥>]|至少|超过|以上",
    _I,
)
_UPPER_BOUND = re.compile(
    r"\b(?:at most|maximum|max\.?|less than|fewer than|shorter than|under|below|up to|limit\w*|no more than|or less"
    r"|within|höchstens|maximal|weniger als|bis zu|au plus|moins d[e']|como máximo|menos de|hasta)\b|[≤<]|最多|不超过"
    r"|以下",
    _I,
)
_STRICT_BOUNDS = (
    (re.compile(rf"(?:{_LOWER_BOUND.pattern})\s*\W*\d", _I), _LOWER_BOUND),
    (re.compile(rf"(?:{_UPPER_BOUND.pattern})\s*\W*\d", _I), _UPPER_BOUND),
)
_SCOPE_END = re.compile(r"[,;.:，。；]\s|[，。；]|\b(?:but|and|und|et|aber)\b", _I)
_MAX_SCOPE = 5
_DIRECTION = re.compile(
    r"\b(?P<to>to|over|before|than|into|an|über|vor|à|sobre|a|instead|statt|rather)\b|\b(?P<from>from|after|under|von"
    r"|nach|de|des|desde|by|par|por)\b|给|向|比",
    _I,
)
_CHINESE_VALUE = re.compile(r"(?P<marker>[在由叫是给])(?P<value>[\u4e00-\u9fff]{2,4}?)(?=[，。；、,;的负\s]|$)")
_THE_REST = re.compile(r"\b(?:others?|rest|remaining|sonst|andere\w?|übrig\w*|autres?|demás|otr[oa]s)\b|其[他它余]", _I)
# What stands beside a name or a number that says as much: "host poplar, port 9090" is "poplar:9090".
_KINDS_OF_THINGS = frozenset(re.split(" ", "host port server env var variabl code configur machin servic serveur"))
# In a text of so many words, one more may be left out than is replaced.
_MANY_WORDS = 6


def missing_facts(originals: Sequence[str], merged: str) -> list[str]:
    """What the merged text lacks of its originals, each in a few words; empty when nothing is lost."""
    before = [clause for text in originals for clause in clauses_of(text)]
    after = clauses_of(merged)
    found: list[str] = []
    for check in (
        _missing_words,
        _misplaced,
        _swapped,
        _turned,
        _changed_values,
        _lost_negations,
        _lost_conditions,
        _lost_exceptions,
        _lost_bounds,
    ):
        found += check(before, after)
    return list(dict.fromkeys(found))


def _all_words(clauses: Iterable[Clause]) -> list[Word]:
    return [word for clause in clauses for word in clause.words]


def _text(clauses: Iterable[Clause]) -> str:
    return " ".join(clause.text for clause in clauses)


def _missing_words(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    said, given, merged = _all_words(after), _all_words(before), _text(after)
    lost: list[str] = []
    plain: dict[str, Word] = {}
    for word in given:
        # An article says "one" as well.
        if (word.kind in ("word", "name") and is_filler(word.key)) or (word.key == "1" and not word.unit):
            continue
        if word.kind == "word" and word.key in _KINDS_OF_THINGS:
            continue
        if not is_among(word, said, merged) and not (word.kind == "date" and _is_part_of_date(word, said)):
            if word.kind == "word":
                plain[word.key] = word
            else:
                lost.append(f"{word.kind} {word.text}")
        elif word.unit and not _has_unit(word, after):
            lost.append(f"unit {word.text} {word.unit}")
    # Another wording has a new word for each that it replaces.
    new = {
        word.key
        for word in said
        if word.kind in ("word", "name") and not is_filler(word.key) and not is_among(word, given, _text(before))
    }
    is_dropped = any(_is_dropped(clause, before, plain) for clause in before)
    if len(plain) > len(new) + (len(given) >= _MANY_WORDS and not is_dropped):
        lost += [f"word {word.text}" for word in plain.values()]
    return lost


def _is_dropped(clause: Clause, clauses: Sequence[Clause], lost: dict[str, Word]) -> bool:
    """Whether the merged text has nothing of what only one clause says: "allergic to latex" beside another allergy."""
    others = [word for each in clauses if each is not clause for word in each.words]
    own = [word.key for word in clause.words if not is_filler(word.key) and not is_among(word, others, "")]
    return len(clauses) > 1 and bool(own) and all(key in lost for key in own)


def _is_part_of_date(word: Word, said: Sequence[Word]) -> bool:
    """A date without its year is in one that has it."""
    return word.key.startswith("--") and any(other.key.endswith(word.key[1:]) for other in said if other.kind == "date")


def _has_unit(word: Word, after: Sequence[Clause]) -> bool:
    """Whether the number has its unit, or one beside it in the same sentence has ("14 days, logs for 7")."""
    for clause in after:
        for other in clause.words:
            if other.kind == "number" and other.key == word.key:
                if other.unit == word.unit:
                    return True
                near = [each for each in after if each.sentence == clause.sentence]
                if not other.unit and any(each.unit == word.unit for each in _all_words(near)):
                    return True
    return False


def _said_in(clause: Clause, words: Iterable[Word]) -> bool:
    own = (*clause.words, *clause.lead)
    text = clause.text + "".join(word.text for word in clause.lead)
    return any(is_among(word, own, text) for word in words)


def _misplaced(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    """Values that the merged text gives to another subject."""
    found: list[str] = []
    for own, other in permutations(before, 2):
        for kinds in (("name",), ("name", "word")):
            mine, theirs = _anchors(own, other, kinds), _anchors(other, own, kinds)
            for word in own.words:
                value_of_other = is_among(word, (*other.words, *other.lead), other.text)
                # Pairs of characters overlap.
                mine_beside = [each for each in mine if not _overlap(each, word)]
                if is_filler(word.key) or value_of_other or not mine_beside or not theirs:
                    continue
                if not any(_said_in(clause, mine_beside) for clause in after):
                    # Other words stand for the subject.
                    continue
                places = [clause for clause in after if is_among(word, clause.words, clause.text)]
                if places and all(_belongs_elsewhere(clause, word, mine_beside, theirs) for clause in places):
                    found.append(f"{word.text} belongs to {mine_beside[0].text}")
    return found


def _swapped(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    """Two pairs of words that stand together in two clauses, and crosswise in the merged text."""
    found = []
    for own, other in combinations(before, 2):
        mine, theirs = _only_in(own, other), _only_in(other, own)
        for one, two in permutations(mine, 2):
            for three, four in permutations(theirs, 2):
                if _together(one, four, two, after) and _together(three, two, four, after):
                    found.append(f"{two.text} belongs to {one.text}")
    return found


def _only_in(own: Clause, other: Clause) -> list[Word]:
    return [word for word in own.words if not is_filler(word.key) and not is_among(word, other.words, other.text)]


def _together(one: Word, other: Word, without: Word, after: Sequence[Clause]) -> bool:
    """Whether the merged text has two words in one clause, and in no clause the first with the word it came with."""
    if _overlap(one, without) or _overlap(one, other):
        return False
    places = [clause for clause in after if is_among(one, clause.words, clause.text)]
    return (
        len(places) == 1
        and is_among(other, places[0].words, places[0].text)
        and not is_among(without, places[0].words, places[0].text)
    )


def _turned(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    """Names whose order says who does what to whom ("reports to", "over"), in the other order."""
    found = []
    for clause in before:
        for one, two in pairwise([word for word in clause.words if word.kind == "name"]):
            direction = _direction(clause, one, two)
            joined = re.compile(rf"\b{re.escape(one.text)},? (?:and|und|et|y) {re.escape(two.text)}\b")
            for place in after:
                if direction and joined.search(place.text):
                    found.append(f"{one.text} before {two.text}")
                if direction and _direction(place, two, one) == direction and not _direction(place, one, two):
                    found.append(f"{one.text} before {two.text}")
    return found


def _changed_values(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    """Chinese names have no capital: the value behind "in", "by" or "is" is another one."""
    given, merged = _text(before), _text(after)
    return [
        f"value {match['value']}"
        for match in _CHINESE_VALUE.finditer(given)
        if match["value"] not in merged
        and any(
            other["marker"] == match["marker"] and other["value"] not in given
            for other in _CHINESE_VALUE.finditer(merged)
        )
    ]


def _direction(clause: Clause, one: Word, two: Word) -> str:
    """The kind of the word that leads from one name to another in a clause; empty if they are not in this order."""
    first = clause.text.find(next((each.text for each in clause.words if each.key == one.key), one.text))
    second = clause.text.find(next((each.text for each in clause.words if each.key == two.key), two.text))
    match = _DIRECTION.search(clause.text, first + len(one.text), second) if 0 <= first < second else None
    return (match.lastgroup or match[0]) if match else ""


def _anchors(own: Clause, other: Clause, kinds: Sequence[str]) -> list[Word]:
    """The names and words of a clause, or of its subject, that the other one does not have."""
    theirs = (*other.words, *other.lead)
    text = other.text + "".join(word.text for word in other.lead)
    return [
        word
        for word in (*own.words, *own.lead)
        if word.kind in kinds and not is_filler(word.key) and not is_among(word, theirs, text)
    ]


def _overlap(one: Word, other: Word) -> bool:
    return one.key == other.key or (not one.key.isascii() and bool(set(one.key) & set(other.key)))


def _belongs_elsewhere(clause: Clause, word: Word, mine: Sequence[Word], theirs: Sequence[Word]) -> bool:
    return not _said_in(clause, mine) and _said_in(clause, [each for each in theirs if not _overlap(each, word)])


def _scopes(pattern: re.Pattern[str], clauses: Sequence[Clause], *, both_sides: bool) -> list[tuple[str, list[Word]]]:
    """For each marker in the clauses, the words that it concerns: those behind it, else those before it."""
    found = []
    for clause in clauses:
        for match in pattern.finditer(clause.text):
            rest = clause.text[match.end() :]
            end = _SCOPE_END.search(rest)
            behind = _words_in(clause, match.end(), match.end() + (end.start() if end else len(rest)))[:_MAX_SCOPE]
            if both_sides and all(is_filler(word.key) for word in behind):
                behind = _words_in(clause, 0, match.start())
            found.append((match[0], behind))
    return found


def _words_in(clause: Clause, start: int, end: int) -> list[Word]:
    """The words of a part of a clause, read again, because a clause that was joined has its positions moved."""
    part = clause.text[start:end]
    return [word for word in clause.words if word.text in part]


def _any_shared(words: Sequence[Word], others: Sequence[Word]) -> bool:
    return any(is_among(word, others, "".join(other.text for other in others)) for word in words)


def _lost_negations(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    denied = _scopes(_DENIAL, after, both_sides=True)
    wide = [(marker, [*words, *_around(marker, after)]) for marker, words in denied]
    found = []
    negated = _scopes(NEGATION, before, both_sides=True)
    for marker, words in negated:
        if words and not any(_any_shared(words, scope) for _, scope in denied):
            short = [scope for mark, scope in wide if not NEGATION.fullmatch(mark)]
            if not any(_any_shared(words, scope) for scope in short):
                found.append(f"negation {marker} {words[0].text}")
    stated = _all_words(before)
    loose = _scopes(_DENIAL, before, both_sides=True) + _scopes(_EXCEPTION, before, both_sides=True)
    for marker, words in _scopes(NEGATION, after, both_sides=True):
        known = [word for word in words if _any_shared([word], stated)]
        if known and not any(_any_shared(known, scope) for _, scope in loose) and not loose:
            found.append(f"statement without {marker} {known[0].text}")
    return found


def _around(marker: str, after: Sequence[Clause]) -> list[Word]:
    """All words of the clauses with a marker such as "dislikes", which denies what stands on either side."""
    return [word for clause in after if marker in clause.text for word in clause.words]


def _sentences(after: Sequence[Clause]) -> list[tuple[str, list[Word]]]:
    numbers = sorted({clause.sentence for clause in after})
    groups = [[clause for clause in after if clause.sentence == number] for number in numbers]
    return [(" ".join(clause.text for clause in group), _all_words(group)) for group in groups]


def _lost_conditions(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    found = []
    for strict, weak in ((_CONDITION, _WEAK_CONDITION), (_ORDER, _WEAK_ORDER)):
        for clause in before:
            for marker, words in _scopes(strict, [clause], both_sides=False):
                rest = [word for each in before if each.sentence == clause.sentence for word in each.words]
                if strict is _ORDER and _is_reversed(marker, words, after):
                    found.append(f"condition {marker} {words[0].text}")
                    continue
                if strict is _ORDER and _has_order(words, [word for word in rest if word not in words], after):
                    continue
                if words and not _holds(words, after, weak) and not _is_embedded(words, rest, after):
                    found.append(f"condition {marker} {words[0].text}")
    said_after = _sentences(after)
    for marker, words in _scopes(_RESTRICTION, before, both_sides=False):
        if words and not any(_KEPT_RESTRICTION.search(text) and _any_shared(words, said) for text, said in said_after):
            found.append(f"restriction {marker} {words[0].text}")
    return found


def _holds(words: Sequence[Word], after: Sequence[Clause], marker: re.Pattern[str]) -> bool:
    """Whether a sentence has half of the words of a condition, and a marker shortly before one of them."""
    for text, said in _sentences(after):
        kept = [word for word in words if is_among(word, said, text)]
        if 2 * len(kept) < len(words) or not kept:
            continue
        for match in marker.finditer(text):
            behind = text[match.end() : match.end() + 40]
            if any(is_among(word, [each for each in said if each.text in behind], behind) for word in kept):
                return True
    return False


def _has_order(words: Sequence[Word], rest: Sequence[Word], after: Sequence[Clause]) -> bool:
    """Whether a sentence has both sides and says which comes first: "B once A" is "A before B"."""
    return any(
        _WEAK_ORDER.search(text) and _any_shared(words, said) and _any_shared(rest, said)
        for text, said in _sentences(after)
    )


def _is_reversed(marker: str, words: Sequence[Word], after: Sequence[Clause]) -> bool:
    """Whether a time that was a bound from one side is now one from the other: "after 18:00", "before 18:00"."""
    times = [word for word in words[:1] if word.kind in ("number", "date")]
    same, other = (_EARLIER, _LATER) if _EARLIER.search(marker) else (_LATER, _EARLIER)
    texts = [text for text, said in _sentences(after) if times and _any_shared(times, said)]
    return any(other.search(text) for text in texts) and not any(same.search(text) for text in texts)


def _is_embedded(words: Sequence[Word], sentence: Sequence[Word], after: Sequence[Clause]) -> bool:
    """Whether one clause has the whole condition and a word of what depends on it: "rerun flaky tests"."""
    keys = [word.key for word in sentence]
    own = [word for word in words if not is_filler(word.key) and keys.count(word.key) == 1]
    rest = [word for word in sentence if word not in words and not is_filler(word.key)]
    return bool(own) and any(
        all(is_among(word, clause.words, clause.text) for word in own) and _said_in(clause, rest) for clause in after
    )


def _lost_exceptions(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    found = []
    for marker, words in _scopes(_EXCEPTION, before, both_sides=True):
        if _THE_REST.search(_text(after)) and _any_shared(words, _all_words(after)):
            continue
        if not any(_KEPT_EXCEPTION.search(text) and _any_shared(words, said) for text, said in _sentences(after)):
            found.append(f"exception {marker} {words[0].text if words else ''}".strip())
    return found


def _lost_bounds(before: Sequence[Clause], after: Sequence[Clause]) -> list[str]:
    return [
        f"bound {match[0]}"
        for clause in before
        for strict, weak in _STRICT_BOUNDS
        if (match := strict.search(clause.text)) and not weak.search(_text(after))
    ]
