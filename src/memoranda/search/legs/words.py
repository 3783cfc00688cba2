"""The word leg: finds sessions by the words of the query, first strictly, then with fewer and fewer of them.

Keywords must occur together in one message; failing that, in neighbouring messages; failing that, any of them is
enough. For a question, sessions are ranked by how much of it they contain. Quoted, starred, grouped and excluded parts
are meant literally and are relaxed only if they find nothing; what is excluded stays excluded.

A fact that changed is stated again, mostly with the same words of the question and another value. So a later statement
of the user comes before an older one if it has what the question names and the older one says. If it lacks some of
that, it may still be about the same in other words ("deploys go out from main", asked for the branch), unless it has
another word in the place of what it lacks: "the spare key of the bakery" does not replace that of the archive, and "my
landlord" not "my sister's landlord". What the assistant answered to the same question is replaced if the later
statement says that something changed, or gives another number.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from memoranda.search import guidance, ranking
from memoranda.search.dates import may_name_date, time_ranges
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import ASSISTANT, TITLE, USER, And, Filters, Pattern, Posting, Word
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import is_unspaced, tokenize
from memoranda.search.legs.leg import Candidate, Candidates, SearchContext
from memoranda.search.legs.term_fetcher import MAX_BY_TIME, AddedTerms, TermFetcher
from memoranda.search.query import (
    EVERYDAY,
    Part,
    Query,
    Term,
    content_words,
    find_perspective,
    find_places,
    may_name,
    names_the_past,
    words_in_place,
)
from memoranda.search.ranking import (
    NEWER_STATEMENT,
    OLDER_STATEMENT,
    MatchedTerm,
    Matches,
    RankingContext,
    SessionScore,
)
from memoranda.search.repeated_questions import ASKED_BEFORE, TURN, RepeatedQuestions, is_asking, reply_in
from memoranda.search.speakers import SPEAKER, prefer_named_speakers
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

_session_of = itemgetter(1)
Scores = Sequence[SessionScore]

# If very many messages have everything, only the newest are read.
_MAX_STRICT = 800
# How many sessions are chosen by single terms, if that is not for a list of sessions by relevance.
_FOR_TIME, _FOR_MESSAGES = 24, 12
_MAX_TIMES = 4
_MAX_FACTOR = 200
# For the first pages of a list by relevance, half as many are chosen as for the next.
_FEW = 21
# If more than this share of the chosen sessions only repeats others, more are chosen.
_MAX_REPEATED = 0.3
_MORE_FOR_REPEATED = 16
# Several sessions may belong to one conversation, so more of them are kept than requested.
_SPARE = 20
# If this many sessions have everything in one message, weaker ones are not needed.
_ENOUGH = 3
# If less than this share of a question's weight occurs in a session, the session does not answer it.
_MIN_SHARE = 0.06
# Sessions of scheduled jobs, and the factor on their scores.
BACKGROUND_SOURCES = frozenset({"cron"})
BACKGROUND = 0.6
SCHEDULED = "scheduled"
_ROLES = ("user", "assistant", "tool", "session_title")
_STANDING = "standing"
# Of the first few hits an older one is replaced, if it matches well; so many messages are compared with it.
_MAX_OLDER, _MIN_SHARE_OF_BEST, _MAX_COMPARED = 5, 0.4, 12
# What more statements say, and match nearly as well, is the subject of a long conversation: of all that the question
# names, or of some of it. One that says that something changed, and matches as well, counts nevertheless.
_MAX_SAYING, _MAX_SAYING_SOME, _NEARLY = 3, 2, 0.7
_MAX_TOKENS, _MAX_CHARACTERS = 80, 240
# The least share of the older one's score if both have what the question names: as several words, or with others; as a
# single word, or in a script without spaces, where pairs of characters are shared by chance.
_MIN_MATCH, _MIN_BY_CHANCE = 0.25, 0.77
# Otherwise, the least share of its weight. What is named has at least this share of the weight of the question.
_MIN_COMMON, _MIN_NAMED = 0.4, 0.25
# What says that something changed.
_SAYS_CHANGED = compile_later(
    r"\b(?:now|nowadays|no longer|any ?more|since|instead|(?:have|got) a new"
    r"|(?:have|has|we|i|was|were|is|are|been) (?:\w+ )?(?:moved|switched|migrated|changed|replaced|renamed|swapped"
    r"|upgraded|pushed|postponed)|(?:moved|switched|migrated|changed|upgraded) to"
    r"|jetzt|nun|inzwischen|mittlerweile|ab sofort|nicht mehr|seit|statt|umgezogen"
    r"|gewechselt|umgestellt|maintenant|désormais|depuis|ne \S+ plus|n['’]\S+ plus|au lieu|changé|déménagé|remplacé"
    r"|ahora|ya no|desde|en (?:lugar|vez) de|cambiad[oa]|cambi[óée]|cambiamos|mudamos|agora|já não|adesso"
    r"|non \S+ più)\b|现在|改用|换成|搬到|不再|今は|変え|変わ|変更|移行|切り替え",
    re.IGNORECASE,
)
_MY = r"\b(?:my|our|mein\w{0,2}|unser\w{0,2}|mon|ma|mes|notre|nos|mis?|nuestr[oa]s?|meus?|minhas?)"
_MINE = compile_later(_MY + r"((?:\s+\w+){1,3})", re.IGNORECASE)
# "My sister Mira's landlord", "the landlord of my sister".
_ANOTHERS = compile_later(r"((?:\w+\s+)?\w+)(?:['’]s|(?<=s)['’])\s+(\w+)")
_OF_ANOTHER = compile_later(r"(\w+)\s+(?:(?:of|von|de|di)\s+)?" + _MY + r"((?:\s+\w+){1,2})", re.IGNORECASE)
_NUMBERS = compile_later(r"\d+")
# Endings and small words of Japanese.
_HIRAGANA = compile_later(r"[\u3040-\u309f]+")
_CLAUSES = compile_later(r"(?<=[.!?,;:])\s+|(?<=[。！？，、])|\n")


class WordLeg:
    """Finds sessions, and for `search_messages` single messages, by the words of a query."""

    def __init__(self, context: SearchContext) -> None:
        self._context = context

    def candidates(self, query: Query, filters: Filters, limit: int) -> Candidates:
        """The sessions of the strictest stage that finds any; ordered by time, at least the first `limit` are right."""
        return _WordSearch(self._context, query, filters).candidates(limit)

    def messages(self, query: Query, filters: Filters, limit: int, *, relax: bool) -> list[int]:
        """The ids of the messages that contain all of the query, or with `relax` most of it.

        A larger limit returns the same first messages, so that a caller can read page by page.
        """
        rows = _WordSearch(self._context, query, filters).messages(limit, relax)
        return [row.message for row in rows if row.role != TITLE]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Sessions ranked by single terms. Terms are bits, in the order of `texts`."""

    scores: list[SessionScore]
    texts: tuple[str, ...]
    """The terms that occur."""
    missing: tuple[Term, ...]
    sessions: int
    share: float
    """How much of the query's weight occurs anywhere."""
    complete: bool
    rows: Sequence[ranking.Row]
    """The messages with any of the terms."""

    @property
    def full(self) -> int:
        return (1 << len(self.texts)) - 1


class _WordSearch:
    """One query under one set of filters, in stages; a stage runs only if the one before found nothing."""

    def __init__(self, context: SearchContext, query: Query, filters: Filters) -> None:
        self._query = query
        self._sort = context.sort
        self._explain = context.explain
        self._reader = context.reader
        self._how_strict = guidance.AS_TYPED if query.exact else guidance.ALL_WORDS
        self._size = context.reader.size()
        background = BACKGROUND_SOURCES if context.sort is None else frozenset[str]()
        sources = filters.values_of("source")
        if sources is not None and sources <= background:
            background = frozenset()
        self._background = background
        self._fetcher = TermFetcher(context.reader, self._size, query, filters, query.excluded, background)
        ranges = time_ranges(query.text, context.now) if may_name_date.search(query.text) else ()
        self._ranking = RankingContext(find_perspective(query.text), ranges)
        self._asked: Counter[str] = Counter()
        self._factor = 1
        self._questions = RepeatedQuestions(query, context.reader, context.sort is None and not query.exact)

    def candidates(self, limit: int) -> Candidates:
        self._factor = 1 if limit <= _FEW else 2
        found = None
        if self._query.alternatives and self._sort is None:
            found = self._any_word()
        elif not self._query.question or self._query.exact:
            found = self._strict(limit)
            few = len(found.found) < _ENOUGH if found else False
            if found and all(candidate.asked or (few and candidate.repeated) for candidate in found.found):
                found = None  # What repeated questions and answers repeat may contain less.
        return found or self._relax(limit)

    def messages(self, limit: int, relax: bool) -> list[Posting]:
        if not relax:
            return self._all_messages(limit)
        fetched = self._fetcher.terms(self._query.terms, min(_MAX_FACTOR, _FOR_MESSAGES + limit // 25))
        adjacent = self._fetcher.adjacent(fetched)
        scored = ranking.score_messages(fetched.matches, adjacent, self._size, self._ranking)
        rows = prefer_named_speakers(self._reader, self._query, scored)
        return rows if self._sort is None else ranking.sort_by_time(rows, self._sort)

    def _all_messages(self, limit: int) -> list[Posting]:
        """The messages that contain everything; by relevance, each window of the newest is ranked by itself."""
        everything = self._whole_pattern()
        windows = max(1, -(-limit // _MAX_STRICT))
        rows = self._fetcher.postings(everything, MAX_BY_TIME if self._sort == "oldest" else windows * _MAX_STRICT)
        if self._sort is None:
            some = (rows[start : start + _MAX_STRICT] for start in range(0, len(rows), _MAX_STRICT))
            matches = map(_as_one_term, some)
            return [row for match in matches for row in ranking.rank_messages(match, (), self._size, self._ranking)]
        if self._sort == "newest" and len(rows) >= windows * _MAX_STRICT:
            rows = self._fetcher.with_later(rows, everything, ranking.sort_by_time(rows, self._sort)[:limit][-1:])
        return ranking.sort_by_time(rows, self._sort)

    def _strict(self, limit: int) -> Candidates | None:
        """The sessions with everything in one message; if those are few, also with everything in a few messages."""
        max_rows = MAX_BY_TIME if self._sort == "oldest" else _MAX_STRICT
        rows = self._fetcher.widely(self._whole_pattern(), max_rows)
        single = len(self._query.parts) == 1
        if rows and (single or _count_sessions(rows) >= _ENOUGH):
            return self._in_one_message(rows, limit)
        if single:
            return None
        ranked = self._rank_parts(self._query.parts)
        return self._with_exact_parts(ranked) if self._query.question else self._nearby(ranked, rows)

    def _in_one_message(self, rows: list[Posting], limit: int) -> Candidates:
        truncated = self._fetcher.truncated
        if self._sort == "newest" and truncated:
            first = [score.best for score in ranking.sessions_by_time(rows, self._sort)[: limit + _SPARE]]
            rows = self._fetcher.with_later(rows, self._whole_pattern(), first[-1:] if len(first) >= limit else ())
        if self._sort is None:
            scores = self._rank_rows(rows)
        else:
            # Results ordered by time need a score only for an explanation.
            scored = self._rank_rows(rows, every=True) if self._explain else []
            scores = ranking.sessions_by_time(rows, self._sort, scored)
        found = self._candidates(scores, self._how_strict, (), _count_sessions(rows))
        return replace(found, truncated=truncated)

    def _nearby(self, ranked: _Ranked, rows: list[Posting]) -> Candidates | None:
        """The sessions with everything in neighbouring messages, then the few with everything in one message."""
        scores = [score for score in ranked.scores if ranked.complete and score.near == ranked.full]
        seen = {score.session for score in scores}
        if rows:
            scores += [score for score in self._rank_rows(rows) if score.session not in seen]
        how = self._how_strict if rows else guidance.NEARBY
        kept = ranking.keep_well_matching(self._with_quoted(ranked, scores), self._sort) if scores else []
        looser = ranked.scores[:_MAX_COMPARED] if len(kept) < _ENOUGH else ()
        return self._candidates(kept, how, (), len(scores), looser) if kept else None

    def _with_exact_parts(self, ranked: _Ranked) -> Candidates | None:
        """For a sentence: the sessions that have at least its quoted, starred and grouped parts."""
        exact = {part.text for part in self._query.parts if part.exact}
        needed = sum(1 << bit for bit, text in enumerate(ranked.texts) if text in exact)
        if needed.bit_count() < len(exact):
            return None
        kept = [score for score in ranked.scores if score.near & needed == needed]
        best = ranking.keep_well_matching(self._with_quoted(ranked, kept), self._sort) if kept else []
        return self._candidates(best, self._describe(ranked, kept), ranked.missing, len(kept)) if best else None

    def _with_quoted(self, ranked: _Ranked, scores: list[SessionScore]) -> list[SessionScore]:
        """The scores, each with its best message that has what is quoted, where the best one lacks it."""
        quoted = {part.text for part in self._query.parts if part.exact and not part.grouped}
        needed = sum(1 << bit for bit, text in enumerate(ranked.texts) if text in quoted)
        lacking = {score.session for score in scores if ~score.own & needed}
        worth = {message: worth for score in scores for message, worth in score.messages}
        best: dict[int, ranking.Row] = {}
        for row in ranked.rows if lacking else ():
            if row[0].session in lacking and row[1] & needed == needed and row[0].role != TITLE:
                known = best.setdefault(row[0].session, row)
                best[row[0].session] = max(known, row, key=lambda each: (worth.get(each[0].message, 0.0), each[0].time))
        return [
            score._replace(best=found[0], own=found[1] & ranked.full) if (found := best.get(score.session)) else score
            for score in scores
        ]

    def _any_word(self) -> Candidates | None:
        ranked = self._rank_parts(self._query.leaves)
        found = self._candidates(ranked.scores, guidance.ANY_WORD, ranked.missing, ranked.sessions)
        return found if ranked.scores else None

    def _relax(self, limit: int) -> Candidates:
        """Searches by single terms: the more of their weight a session contains, the better."""
        # Groups are ignored here, so what a group excludes is excluded everywhere.
        self._fetcher = replace(self._fetcher, excluded=self._query.unwanted)
        ranked = self._rank(self._query.terms)
        found = ranked.scores
        if not found or ranked.share * max(score.signals["coverage"] for score in found) < _MIN_SHARE:
            return Candidates((), guidance.NOT_FOUND, ranked.missing)
        how = (guidance.NOT_EXACT if self._query.exact else "") + self._describe(ranked, found)
        kept = ranking.keep_well_matching(found, self._sort)
        if self._sort is not None:
            kept = self._with_earlier_or_later(kept, limit)
        return self._candidates(kept, how, ranked.missing, ranked.sessions)

    def _with_earlier_or_later(self, kept: list[SessionScore], limit: int) -> list[SessionScore]:
        """Adds sessions that come before the last of those wanted, but were not among the chosen ones."""
        best = {score.session: score for score in kept}
        for _ in range(_MAX_TIMES):
            if self._fetcher.complete:
                break
            last = kept[:limit][-1].best.time
            filters = self._fetcher.filters
            filters = replace(filters, since=last) if self._sort == "newest" else replace(filters, until=last)
            self._fetcher = replace(self._fetcher, filters=filters)
            for score in self._rank(self._query.terms).scores:
                if score.session not in best or score.score > best[score.session].score:
                    best[score.session] = score
            kept = ranking.keep_well_matching(list(best.values()), self._sort)
        return kept

    def _candidates(
        self, scores: Scores, how: str, missing: tuple[Term, ...], total: int, looser: Scores = ()
    ) -> Candidates:
        sessions = self._reader.sessions([score.session for score in (*scores, *looser)])
        jobs = {number for number, session in sessions.items() if session.source in self._background}
        if not jobs.isdisjoint(score.session for score in scores):
            scores = _lower_background(scores, jobs)
        # A name in pieces ("heron.port_of") asks for no fact; a text without spaces is in pieces, too.
        words = (len(part.tokens) == 1 or any(map(is_unspaced, part.tokens)) for part in self._query.parts)
        may_ask = self._query.question or any(words)
        if self._sort is None and may_ask and not self._query.exact and not names_the_past(self._query.text):
            matched = len(scores)
            scores = _put_newer_statements_first(self._reader, self._query.text, scores, looser, jobs)
            total += len(scores) - matched
        found = [
            Candidate(
                session_id=session.id,
                conversation_id=session.conversation_id,
                source=session.source,
                message_id=None if score.best.role == TITLE else score.best.message,
                role=_ROLES[score.best.role],
                time=score.best.time,
                score=score.score,
                signals=score.signals,
                matches=score.matches,
                asked=score.asked,
                repeated=score.repeated,
                messages=score.messages,
            )
            for score in scores
            if (session := sessions.get(score.session)) is not None
        ]
        return Candidates(found, how, missing, total, asked=self._asked, more=not self._fetcher.complete)

    def _describe(self, ranked: _Ranked, kept: Scores) -> str:
        best = max(kept, key=lambda score: score.score)
        if best.whole != ranked.full or not ranked.complete:
            texts = (text for bit, text in enumerate(ranked.texts) if best.whole >> bit & 1)
            return guidance.SOME_WORDS + ", ".join(texts)
        if any(part.small for part in self._query.leaves):
            return guidance.WITHOUT_SMALL
        if best.own == ranked.full:
            return guidance.ALL_WORDS
        return guidance.NEARBY if best.near == ranked.full else guidance.SPREAD

    def _whole_pattern(self) -> Pattern:
        patterns = tuple(part.pattern for part in self._query.parts)
        return patterns[0] if len(patterns) == 1 else And(patterns)

    def _rank_rows(self, rows: list[Posting], *, every: bool = False) -> list[SessionScore]:
        ranked = self._questions.rank(_as_one_term(rows), (), self._size, self._ranking, every=every)
        self._asked |= Counter({term.text: count for term in self._query.terms for count in ranked.asked})
        return ranked.scores

    def _rank_parts(self, parts: Sequence[Part]) -> _Ranked:
        """Ranks sessions by whole parts."""
        return self._rank([Term(part.text, part.pattern) for part in parts])

    def _rank(self, terms: Sequence[Term]) -> _Ranked:
        """Ranks the sessions that were chosen by single terms."""
        ranked = self._rank_chosen(terms, self._factor if self._sort is None else _FOR_TIME)
        repeated = sum(score.asked + score.repeated for score in ranked.scores)
        if repeated > _MAX_REPEATED * ranked.sessions and not self._fetcher.complete and self._sort is None:
            return self._rank_chosen(terms, _MORE_FOR_REPEATED)
        return ranked

    def _rank_chosen(self, terms: Sequence[Term], factor: int) -> _Ranked:
        added = None
        if self._query.question and terms is self._query.terms:
            sentence = any(part.small for part in self._query.leaves)
            added = AddedTerms(self._query.text, self._fetcher.filters, self._reader, sentence)
        fetched = self._fetcher.terms(terms, factor, added)
        matches, typed = fetched.matches, fetched.matches.typed
        # The fetcher has already chosen the sessions.
        ranked = self._questions.rank(
            matches, self._fetcher.adjacent(fetched), self._size, self._ranking, fetched.every, every=True
        )
        sessions = len({row[1] for row, mask in matches.rows if mask & typed})
        texts = tuple(term.text for term in fetched.typed)
        share = ranking.occurring_share(matches, fetched.absent, self._size)
        self._asked |= Counter(dict(zip(texts, ranked.asked, strict=False)))
        complete = len(texts) == len(terms)
        return _Ranked(ranked.scores, texts, tuple(fetched.absent), sessions, share, complete, matches.rows)


def _as_one_term(rows: Sequence[Posting]) -> Matches:
    """Messages that have everything: the query as one term."""
    return Matches([MatchedTerm(len(rows))], [(row, 1) for row in rows])


def _lower_background(scores: Scores, jobs: Collection[int]) -> list[SessionScore]:
    """Lowers the scores of scheduled jobs: they say the same again and again, and people look for what people said.

    A job comes after every conversation that has all of its words, and before those that match much worse.
    """
    people = [score for score in scores if score.session not in jobs]
    lowered = list(people)
    for score in scores:
        if score.session in jobs:
            as_good = (other.score for other in people if other.near & score.near == score.near)
            lower = min((score.score * BACKGROUND, *as_good))
            lowered.append(score._replace(score=lower, signals={**score.signals, SCHEDULED: BACKGROUND}))
    return sorted(lowered, key=lambda score: (-score.score, score.session in jobs))


def _count_sessions(rows: Sequence[Posting]) -> int:
    return len(set(map(_session_of, rows)))


class _Statement(NamedTuple):
    """What a message of the user states."""

    hit: SessionScore
    words: frozenset[str]
    text: str
    answer: str | None = None
    """If the message asks the same as the query, what the assistant replied; it replaces nothing."""


def _put_newer_statements_first(
    reader: IndexReader, query: str, scores: Scores, looser: Scores, skipped: Collection[int]
) -> list[SessionScore]:
    """The scores with each newer statement before the older one that it replaces; those in `skipped` stay in place.

    A newer one that only the `looser` matches have comes right after the older one.
    """
    every = {score.session: score for score in (*looser, *scores)}
    some = [score for score in every.values() if score.session not in skipped and _may_state(score)]
    some = sorted(some, key=lambda score: -score.score)[:_MAX_COMPARED]
    stated = _read_statements(reader, some) if len(some) > 1 else []
    if len(stated) < 2:
        return list(scores)
    asked = content_words(query)
    asked = asked - EVERYDAY or asked
    reader.prepare(map(Word, asked))
    size = reader.size().messages
    weights = {word: ranking.term_weight(reader.frequency(Word(word)), size, framing=False) for word in asked}
    best = max(one.hit.score for one in stated)
    matching = [one for one in stated if one.hit.score >= _MIN_SHARE_OF_BEST * best]
    ordered = list(scores)
    for newer in sorted((one for one in stated if one.answer is None), key=lambda one: one.hit.best.time):
        replaced = {older.hit.session for older in matching if _replaces(newer, older, weights, stated)}
        places = [place for place, score in enumerate(ordered[:_MAX_OLDER]) if score.session in replaced]
        for place in places:
            ordered[place] = _mark(ordered[place], OLDER_STATEMENT)
        if places:
            listed = [place for place, score in enumerate(ordered) if score.session == newer.hit.session]
            score = ordered.pop(listed[0]) if listed else newer.hit
            ordered.insert(min(*listed, *places) if listed else places[0] + 1, _mark(score, NEWER_STATEMENT))
    ranked = sorted((score.score for score in ordered), reverse=True)
    return [score._replace(score=value) for score, value in zip(ordered, ranked, strict=True)]


def _mark(score: SessionScore, signal: str) -> SessionScore:
    return score._replace(signals={**score.signals, signal: 1.0})


def _read_statements(reader: IndexReader, scores: Scores) -> list[_Statement]:
    """The statements of the user at the best messages of sessions: such a message, or what a reply answers."""
    asked = {score.best.message: score.best.message - (score.best.role == ASSISTANT) for score in scores}
    messages = reader.messages({*asked, *asked.values()})
    stated = []
    for score in scores:
        message, best = messages.get(asked[score.best.message]), messages.get(score.best.message)
        if message is None or best is None or message.role != "user" or message.session_id != best.session_id:
            continue
        text = searchable_text(message).text
        if ASKED_BEFORE in score.signals:
            reply = reply_in(reader.messages_from(message.session_id, message.id + 1, TURN))
            answer = "" if reply is None else searchable_text(reply).text
            stated.append(_Statement(score, content_words(text), text, answer))
        elif _states(text):
            stated.append(_Statement(score, content_words(text), text))
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
    is_later = newer.hit.best.time > older.hit.best.time
    if not common or not is_later or newer.words <= older.words.union(weights):
        return False
    if _have_other_owners(newer, older, common):
        return False
    weight = sum(map(weights.__getitem__, named))
    share = newer.hit.score / (older.hit.score or 1.0)
    changed = bool(_SAYS_CHANGED.search(newer.text)) and not _SAYS_CHANGED.search(older.text)
    if older.answer is not None and not (changed or _gives_another_number(newer.text, older.answer)):
        return False
    as_good = _NEARLY * min(newer.hit.score, older.hit.score)
    saying = sum(one.answer is None and common <= one.words and one.hit.score >= as_good for one in stated)
    is_of_many = saying > (_MAX_SAYING if common == named else _MAX_SAYING_SOME)
    if weight < _MIN_NAMED * sum(weights.values()) or (is_of_many and not (changed and share >= _MIN_BY_CHANCE)):
        return False
    by_chance = not changed and any(map(is_unspaced, common))
    alike = changed or len(common) > 1 or bool((older.words & newer.words).difference(weights, EVERYDAY))
    if common == named:
        return share >= (_MIN_MATCH if alike and not by_chance else _MIN_BY_CHANCE)
    enough = sum(map(weights.__getitem__, common)) >= _MIN_COMMON * weight
    return enough and alike and not by_chance and share >= _MIN_MATCH and not _is_of_another(newer, older, named)


def _is_of_another(newer: _Statement, older: _Statement, named: Set[str]) -> bool:
    """Whether the newer statement has another word in the place of one that the question names."""
    places, said = find_places(older.text), find_places(newer.text)
    absent = filter(may_name, named - newer.words)
    return any(words_in_place(word, places, said).difference(older.words, EVERYDAY) for word in absent)


def _have_other_owners(newer: _Statement, older: _Statement, common: Set[str]) -> bool:
    """Whether something that both speak of is the user's own in one of them and another's in the other, say."""
    known, said = _owners(older.text), _owners(newer.text)
    return any(known[word].isdisjoint(said[word]) for word in common & known.keys() & said.keys())


def _owners(text: str) -> dict[str, set[str]]:
    """Whose something is, for each word that follows an owner or precedes one: the words of the owner, or "my"."""
    owned = [("my", mine[1]) for mine in _MINE.finditer(text)]
    owned += [(another[1], another[2]) for another in _ANOTHERS.finditer(text)]
    owned += [(another[2], another[1]) for another in _OF_ANOTHER.finditer(text)]
    found: dict[str, set[str]] = {}
    for owner, things in owned:
        # "It's" owns nothing.
        words = {"my"} if owner == "my" else content_words(owner)
        for thing in tokenize(things) if words else ():
            found.setdefault(thing, set()).update(words)
    return found


def _gives_another_number(newer: str, older: str) -> bool:
    numbers = set(_NUMBERS.findall(older))
    return bool(numbers) and not numbers.issuperset(_NUMBERS.findall(newer))
