"""Widens a query that found nothing to longer words: "Datenbank" to "Datenbankserver", a city to its other cases.

Languages that join words or change their endings have many words that contain the one that was typed, and so have names
in code. These are not exactly what was typed, so they are searched only if nothing else is found.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from memoranda.search.index.postings import Or, Word
from memoranda.search.index.tokenizer import is_unspaced
from memoranda.search.query import Part, Query, Term

# Shorter words are in too many others. Other scripts have more letters, and write fewer of them.
_MIN_LETTERS, _MIN_OTHERS = 4, 3


def widen(query: Query, find_longer: Callable[[Collection[str]], Mapping[str, Sequence[str]]]) -> Query | None:
    """The query with the longer words of each of its words; None if there are none, or if it is meant literally.

    `find_longer` returns the words of the index that contain some texts.
    """
    inside = [] if query.exact else [part for part in query.parts if _may_be_inside(part)]
    longer = find_longer({part.tokens[0] for part in inside}) if inside else {}
    parts: list[Part] = []
    leaves: list[Part] = []
    terms: list[Term] = []
    for part in inside:
        if words := longer[part.tokens[0]]:
            parts.append(replace(part, pattern=Or(tuple(map(Word, words))), tokens=tuple(words), grouped=True))
            leaves += [Part(word, Word(word), (word,)) for word in words]
            # With the token as typed, which no text has: so a hit never counts as sure.
            terms.append(Term(part.text, parts[-1].pattern, part.tokens[0]))
    if not parts:
        return None
    return replace(query, parts=tuple(parts), leaves=tuple(leaves), terms=tuple(terms), pairs=())


def _may_be_inside(part: Part) -> bool:
    """Whether a part is a word that others may contain."""
    word = part.tokens[0]
    is_long = len(word) >= (_MIN_LETTERS if word.isascii() else _MIN_OTHERS)
    return len(part.tokens) == 1 and is_long and word.isalpha() and not is_unspaced(word)
