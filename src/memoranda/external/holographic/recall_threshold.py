"""How well a fact must match a prompt to be recalled, by what kind of prompt it is.

Facts are mostly about the user, the people around them and what they work on. A question about these needs little to
be answered, so a related word is enough; a question for advice ("how do I …?") or about something else needs more. A
prompt that asks nothing, or asks the assistant to do something, needs most of its words, and at least two. These raise
a match: two words instead of one, what the question word expects (a time, a number, a name, a place), and, in a
question about the user, a fact about the user. Likeness in meaning, if there is an encoder, is added to the words.
"""

import math
import re
from typing import NamedTuple

from memoranda.external.holographic.fact_store import Fact
from memoranda.external.holographic.word_index import WordMatch

_QUESTION = re.compile(r"[?？]|吗|呢\s*$|か[。\s]*$")
# The last clause is what is asked: "I keep getting an error, what does it mean?"
_CLAUSE_END = re.compile(r"[,;:.!]\s+(?=.*[?？])", re.DOTALL)
# A clause without one of these belongs to the one before: "What is my job, for the form?"
_QUESTION_WORD = re.compile(
    r"\b(?:wh(?:at|ich|om?|ose|en|ere|y)|how|is|are|was|were|do|does|did|can|could|should|shall|will|would|may|must"
    r"|have|has|am)\b|[’']s\b|[^\x00-\u02ff]",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"\b(?:can|could|would|will|are) you\b", re.IGNORECASE)
_EXPLANATION = re.compile(r"\bwhy\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"(?:\b(?:how|what|where) (?:do|can|should|would|could)|^\W*(?:should|can|could|do)) (?:I|we)\b"
    r"(?! (?:like|prefer|want|have)\b)",
    re.IGNORECASE,
)
_USER = re.compile(r"\b(?:I|my|me|mine|user)\b|[我私僕俺]", re.IGNORECASE)
_ACQUAINTANCE = re.compile(r"\b(?:s?he|him|his|hers?|they|them|their|mum|mom|dad|grandma|grandpa)\b", re.IGNORECASE)
_FIRST_PERSON = re.compile(r"\b(?:I|my|me|mine|we|our|ours|us|(?:the )?user(?:'s)?)\b|[我私僕俺]", re.IGNORECASE)

_DATE = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|easter|christmas)\b"
)
_TIME = re.compile(
    rf"\b{_DATE}|\d:\d\d|\b(?:(?:19|20)\d\d|\d+ ?[ap]m|every|until|(?:dai|night|week|month|year)ly"
    r"|(?:second|minute|hour|day|week|month|year|night|morning|noon|evening|weekend|spring|summer|autumn|winter|fall)s?"
    r")\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|ninety|half|once|twice)\b",
    re.IGNORECASE,
)
_NAME = re.compile(rf"(?<!^)\b(?!(?i:{_DATE}))[A-Z]\w|\b(?:team|department)\b")
_PLACE = re.compile(r"\b(?:in|at|on|to|into|behind|near|under|from|with)\b")
_EXPECTED = [
    (re.compile(rf"\b(?:{question})\b", re.IGNORECASE), fact)
    for question, fact in (
        (r"when|how (?:long|often)|(?:what|which) (?:time|day|date|year|month|evening)", _TIME),
        (r"how (?:many|much|old|far|big)|(?:what|which) (?:size|port|number|code)", _NUMBER),
        (r"who|whom|whose", _NAME),
        (r"where|(?:what|which) (?:city|region|address|place)", _PLACE),
    )
]
_WITH_EXPECTED = 1.2
_WITHOUT_EXPECTED = 0.8
_WITH_TWO_WORDS = 1.25
_WITH_THE_USER = 1.5


class Limits(NamedTuple):
    """The smallest weighted share of the prompt's words, and the smallest sum of that share and of likeness.

    A fact with tags needs a larger share, because its tags are words that questions may have.
    """

    words: float
    words_if_tagged: float
    words_and_likeness: float


_ABOUT_THE_USER = Limits(0.25, 0.4, 0.9)
_ABOUT_OTHERS = Limits(0.2, 0.32, 0.8)
_ADVICE_SOUGHT = Limits(0.38, 0.5, 1.2)
_OTHER_QUESTION = Limits(0.38, 0.5, 1.3)
_NO_QUESTION = Limits(0.9, 0.9, math.inf)
# How much likeness counts: an answer has about 0.3 more than any other text, and often shares no word.
_LIKENESS_WEIGHT = 3.0


class RecallDemand(NamedTuple):
    """What a fact must have to be recalled: a weighted share of the prompt's words, a number of them, and a pattern."""

    limits: Limits
    min_words: int = 1
    expected: re.Pattern[str] | None = None
    about_user: bool = False

    @property
    def is_question(self) -> bool:
        """Whether the prompt asks something that a fact may answer."""
        return self.limits.words_and_likeness < math.inf

    def score(self, fact: Fact, match: WordMatch, likeness: float | None) -> float:
        """How well a fact meets the demand; 0 if it does not."""
        if likeness is None:
            score = match.coverage if match.words >= self.min_words else 0.0
            limit = self.limits.words_if_tagged if fact.tags else self.limits.words
        else:
            score, limit = match.coverage + _LIKENESS_WEIGHT * likeness, self.limits.words_and_likeness
        score *= self.weigh(fact.content, match.words)
        return score if score >= limit else 0.0

    def weigh(self, content: str, words: int) -> float:
        """How much the coverage of a fact counts that has this number of the prompt's words."""
        factor = _WITH_TWO_WORDS if words > 1 else 1.0
        if self.about_user and _USER.search(content):
            factor *= _WITH_THE_USER
        if self.expected is not None:
            factor *= _WITH_EXPECTED if self.expected.search(content) else _WITHOUT_EXPECTED
        return factor


def read_demand(prompt: str) -> RecallDemand:
    """What a prompt demands of a fact."""
    if not _QUESTION.search(prompt) or _REQUEST.search(prompt):
        return RecallDemand(_NO_QUESTION, 2)
    question = _last_question(prompt)
    expected = next((fact for pattern, fact in _EXPECTED if pattern.search(question)), None)
    about_user = bool(_USER.search(question))
    if _FIRST_PERSON.search(question):
        about = _ABOUT_THE_USER if about_user else _ABOUT_OTHERS
        return RecallDemand(_ADVICE_SOUGHT if _ADVICE.search(question) else about, 1, expected, about_user)
    if _EXPLANATION.search(question):
        return RecallDemand(_NO_QUESTION, 1, expected)
    return RecallDemand(_ABOUT_OTHERS if _ACQUAINTANCE.search(question) else _OTHER_QUESTION, 1, expected)


def _last_question(prompt: str) -> str:
    *clauses, question = _CLAUSE_END.split(prompt)
    while clauses and not _QUESTION_WORD.search(question):
        question = f"{clauses.pop()}, {question}"
    return question
