"""Puts a newer statement of the user before the older one that it replaces, which follows with its date.

A fact that changed is stated again, mostly with the same words of the question and another value. So a later statement
replaces an older one if it has what the question names and the older one says. If it lacks some of that, it may still
be about the same in other words ("deploys go out from main", asked for the branch), unless it has another word in the
place of what it lacks: "the spare key of the bakery" does not replace that of the archive.
"""

import re
from collections.abc import Collection, Mapping, Sequence, Set
from typing import NamedTuple

from memoranda.search import ranking
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, USER, Word
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import is_unspaced
from memoranda.search.query import EVERYDAY, content_words, find_places, may_name, words_in_place
from memoranda.search.ranking import SessionScore
from memoranda.search.repeated_questions import is_asking
from memoranda.search.speakers import SPEAKER
from memoranda.support.lazy_pattern import compile_later

NEWER_STATEMENT, OLDER_STATEMENT = "newer_statement", "older_statement"
"""Signals of a score: it states what another one stated before, or what another one states later."""
_STANDING = "standing"
# Of the first few hits an older one is replaced, if it matches well; so many messages are compared with it.
_MAX_OLDER, _MIN_SHARE_OF_BEST, _MAX_COMPARED = 5, 0.4, 12
# What more statements say, and match nearly as well, is the subject of a long conversation: of all that the question
# names, or of some of it.
_MAX_SAYING, _MAX_SAYING_SOME, _NEARLY = 3, 2, 0.7
_MAX_TOKENS, _MAX_CHARACTERS = 80, 240
# The least share of the older one's score if both have what the question names: as several words, or with others; as a
# single word, or in a script without spaces, where pairs of characters are shared by chance.
_MIN_SHARE, _MIN_SHARE_BY_CHANCE = 0.25, 0.77
# Otherwise, the least share of its weight. What is named has at least this share of the weight of the question.
_MIN_COMMON, _MIN_NAMED = 0.4, 0.25
# What says that something changed.
_SAYS_CHANGED = compile_later(
    r"\b(?:now|nowadays|no longer|any ?more|since|instead"
    r"|(?:have|has|we|i|was|were|is|are|been) (?:\w+ )?(?:moved|switched|migrated|changed|replaced|renamed|swapped"
    r"|upgraded|pushed|postponed)|jetzt|nun|inzwischen|mittlerweile|ab sofort|nicht mehr|seit|statt|umgezogen"
    r"|gewechselt|umgestellt|maintenant|désormais|depuis|ne \S+ plus|n['’]\S+ plus|au lieu|changé|déménagé|remplacé"
    r"|ahora|ya no|desde|en (?:lugar|vez) de|cambiad[oa]|cambi[óée]|cambiamos|mudamos|agora|já não|adesso"
    r"|non \S+ più)\b|现在|改用|换成|搬到|不再|今は|変え|変わ|変更|移行|切り替え",
    re.IGNORECASE,
)
# Endings and small words of Japanese.
_HIRAGANA = compile_later(r"[\u3040-\u309f]+")
_CLAUSES = compile_later(r"(?<=[.!?,;:])\s+|(?<=[。！？，、])|\n")


class _Statement(NamedTuple):
    """What a message of the user states, and how well its session matches."""

    score: SessionScore
    value: float
    words: frozenset[str]
    text: str


def put_newer_statements_first(
    reader: IndexReader,
    query: str,
    scores: Sequence[SessionScore],
    skipped: Collection[int] = (),
) -> list[SessionScore]:
    """The scores with each newer statement before the older one that it replaces; those in `skipped` stay in place."""
    values = {score.session: score.score for score in scores}
    some = [score for score in scores if score.session not in skipped and _may_state(score)]
    some = sorted(some, key=lambda score: -values[score.session])[:_MAX_COMPARED]
    stated = _read(reader, some, values) if len(some) > 1 else []
    if len(stated) < 2:
        return list(scores)
    asked = content_words(query)
    asked = asked - EVERYDAY or asked
    reader.prepare(map(Word, asked))
    size = reader.size().messages
    weights = {word: ranking.term_weight(reader.frequency(Word(word)), size, framing=False) for word in asked}
    best = max(one.value for one in stated)
    matching = [one for one in stated if one.value >= _MIN_SHARE_OF_BEST * best]
    ordered = list(scores)
    for newer in sorted(stated, key=lambda one: one.score.best.time):
        replaced = {older.score.session for older in matching if _replaces(newer, older, weights, stated)}
        places = [place for place, score in enumerate(ordered[:_MAX_OLDER]) if score.session in replaced]
        for place in places:
            ordered[place] = _mark(ordered[place], OLDER_STATEMENT)
        if places:
            before = next(place for place, score in enumerate(ordered) if score.session == newer.score.session)
            ordered.insert(min(before, *places), _mark(ordered.pop(before), NEWER_STATEMENT))
    ranked = sorted((score.score for score in ordered), reverse=True)
    return [score._replace(score=value) for score, value in zip(ordered, ranked, strict=True)]


def _mark(score: SessionScore, signal: str) -> SessionScore:
    return score._replace(signals={**score.signals, signal: 1.0})


def _read(reader: IndexReader, scores: Sequence[SessionScore], values: Mapping[int, float]) -> list[_Statement]:
    """The statements of the user at the best messages of sessions: such a message, or what a reply answers."""
    asked = {score.best.message: score.best.message - (score.best.role == ASSISTANT) for score in scores}
    messages = reader.messages({*asked, *asked.values()})
    stated = []
    for score in scores:
        message, best = messages.get(asked[score.best.message]), messages.get(score.best.message)
        if message is None or best is None or message.role != "user" or message.session_id != best.session_id:
            continue
        text = searchable_text(message).text
        if _states(text):
            stated.append(_Statement(score, values[score.session], content_words(text), text))
    return stated


def _may_state(score: SessionScore) -> bool:
    row = score.best
    return (
        row.role in (USER, ASSISTANT)
        and row.length <= _MAX_TOKENS
        and not score.asked
        and _STANDING not in score.signals
    )


def _states(text: str) -> bool:
    """Whether a text is a short statement, whatever it asks then, and not by one of several speakers."""
    text = text.strip()
    speaker = SPEAKER.match(text)
    is_said_by_one = speaker is not None and speaker[0].istitle()
    is_short = 0 < len(text) <= _MAX_CHARACTERS
    return is_short and not is_said_by_one and not is_asking(_CLAUSES.split(text, maxsplit=1)[0])


def _replaces(newer: _Statement, older: _Statement, weights: Mapping[str, float], stated: Sequence[_Statement]) -> bool:
    """Whether a statement gives a later value of what an older one says about the question, and few others do."""
    named = {word for word in older.words & weights.keys() if not _HIRAGANA.fullmatch(word)}
    common = named & newer.words
    is_later = newer.score.best.time > older.score.best.time
    if not common or not is_later or newer.words <= older.words.union(weights):
        return False
    weight = sum(map(weights.__getitem__, named))
    as_good = _NEARLY * min(newer.value, older.value)
    saying = sum(common <= one.words and one.value >= as_good for one in stated)
    if weight < _MIN_NAMED * sum(weights.values()) or saying > (_MAX_SAYING if common == named else _MAX_SAYING_SOME):
        return False
    share = newer.value / (older.value or 1.0)
    changed = bool(_SAYS_CHANGED.search(newer.text)) and not _SAYS_CHANGED.search(older.text)
    by_chance = not changed and any(map(is_unspaced, common))
    alike = len(common) > 1 or bool((older.words & newer.words).difference(weights, EVERYDAY))
    if common == named:
        return share >= (_MIN_SHARE if changed or (alike and not by_chance) else _MIN_SHARE_BY_CHANCE)
    enough = sum(map(weights.__getitem__, common)) >= _MIN_COMMON * weight
    return enough and alike and not by_chance and share >= _MIN_SHARE and not _is_of_another(newer, older, named)


def _is_of_another(newer: _Statement, older: _Statement, named: Set[str]) -> bool:
    """Whether the newer statement has another word in the place of one that the question names."""
    places, said = find_places(older.text), find_places(newer.text)
    absent = filter(may_name, named - newer.words)
    return any(words_in_place(word, places, said).difference(older.words, EVERYDAY) for word in absent)
