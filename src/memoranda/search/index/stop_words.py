"""Stop words: common English words that say little about a text, as tokens."""

from memoranda.search.index.tokenizer import tokenize

_SMALL = """
a an the and or but if then else of at by for with about against between into through during before after above below
to from up down in out on off over under again further once here there when where why how all any both each few more
most other some such no nor not only own same so than too very can will just don't should now i me my myself we our
ours ourselves you your yours yourself he him his himself she her hers herself it its itself they them their theirs
themselves what which who whom whose this that these those am is are was were be been being have has had having do
does did doing would could ought might must shall may as because while until also many much mention tell told
i'm i've i'd you've you'd don't didn't doesn't isn't wasn't weren't can't won't couldn't wouldn't
"""


def tokens_of(words: str) -> frozenset[str]:
    """The tokens of words that are separated by spaces."""
    return frozenset(token for word in words.split() for token in tokenize(word))


STOP_WORDS = tokens_of(_SMALL)
