"""Patterns for prefixes: `migrati*` matches the tokens of all words that begin with it."""

from memoranda.search.index.postings import And, Or, Pattern, Prefix, Word
from memoranda.search.index.stemmer import stem
from memoranda.search.index.tokenizer import query_words, tokenize

_ENDINGS = (
    "s",
    "es",
    "ies",
    "ed",
    "ied",
    "ing",
    "ings",
    "ion",
    "ions",
    "ation",
    "ations",
    "ment",
    "ments",
    "ly",
    "ness",
)


def prefix_pattern(text: str) -> Pattern | None:
    """The pattern for every word with this prefix; None if the text has no tokens.

    A token is a stem, and the stem of "migration" does not begin with "migrati". So the pattern also contains, as
    words, the stems that common endings would produce.
    """
    tokens = [token for word in query_words(text) for token in word]
    if not tokens:
        return None
    open_end = _open_end(text, tokens[-1])
    if len(tokens) == 1:
        return open_end
    return And((*map(Word, tokens[:-1]), open_end))


def _open_end(text: str, last: str) -> Pattern:
    # A letter after the text prevents the stemmer from removing its end.
    typed = tokenize(text.strip() + "x")[-1].removesuffix("x")
    if not (typed.isascii() and typed.isalpha()):
        return Prefix(last)
    stems = {stem(typed + rest) for rest in _possible_endings(typed)}
    others = sorted(token for token in stems if not token.startswith(typed))
    return Or((Prefix(typed), *map(Word, others))) if others else Prefix(typed)


def _possible_endings(typed: str) -> set[str]:
    """What may follow the typed text: nothing, an ending, or the rest of an ending that the text begins."""
    rests = {ending[size:] for ending in _ENDINGS for size in range(len(ending)) if typed.endswith(ending[:size])}
    return rests | {""}
