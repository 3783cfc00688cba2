"""Who said a message, where its text names the speaker: "Ana: at six", "[Ana] at six", "<ana> at six".

Conversations of several people are recorded like this, by chat programs and by people who paste them. A question that
names a person mostly asks for what that person said, but what others say to or about that person contains the name
too. So where some messages begin with a name of the query, those that begin with other names count less.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Posting
from memoranda.search.index.reader import IndexReader
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.query import Query
from memoranda.support.lazy_pattern import compile_later

OTHER_SPEAKER = 0.6
"""The weight of what others said, where the query names a speaker."""
_NAME = r"(\w+(?:[ .'’-]\w+){0,2})"
SPEAKER = compile_later(rf"^(?:[*_@]{{0,3}}{_NAME}[*_]{{0,2}}:|[\[<]@?{_NAME}[\]>]:?)(?=\s)", re.MULTILINE)
# A label such as "Note:" is no speaker of a conversation, unless several messages begin with it.
_MIN_MESSAGES = 2
_MAX_READ = 60
_BEGINNING = 2_000


def speaker_weights(texts: Mapping[int, str], names: Iterable[str]) -> dict[int, float]:
    """The weights of messages, by their ids; empty if none of these tokens is the name of a speaker.

    A message that names no speaker keeps its full weight.
    """
    speakers = {number: _speakers_of(text) for number, text in texts.items()}
    counts = Counter(token for tokens in speakers.values() for token in tokens)
    named = {name for name in names if counts[name] >= _MIN_MESSAGES}
    if not named:
        return {}
    return {number: OTHER_SPEAKER for number, tokens in speakers.items() if tokens and named.isdisjoint(tokens)}


def prefer_named_speakers(reader: IndexReader, query: Query, scored: Sequence[tuple[Posting, float]]) -> list[Posting]:
    """The messages of a search, best first, after those at the top were weighted by their speakers."""
    first = scored[:_MAX_READ]
    messages = reader.messages([row.message for row, _ in first]) if first else {}
    texts = {number: searchable_text(message).text for number, message in messages.items()}
    weights = speaker_weights(texts, (term.token for term in query.terms))
    if weights:
        first = sorted(first, key=lambda message: -message[1] * weights.get(message[0].message, 1.0))
    return [row for row, _ in (*first, *scored[_MAX_READ:])]


def _speakers_of(text: str) -> frozenset[str]:
    """The tokens of the names that lines of a text begin with; none unless the text itself begins with one."""
    if SPEAKER.match(text) is None:
        return frozenset()
    names = (plain or bracketed for plain, bracketed in SPEAKER.findall(text[:_BEGINNING]))
    return frozenset(token for name in names for token in tokenize(name))
