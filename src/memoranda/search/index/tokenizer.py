"""Splits text into the tokens that are indexed and searched.

Words are folded (case, diacritics, full-width forms) and lightly stemmed. Names joined by punctuation (snake_case,
paths, URLs, versions) are split into their parts, one after the other: a part is a word, the whole a phrase. A
camelCase word is one token; its parts are indexed after the text (`parts`), where each can be found. Scripts that are
written without spaces become overlapping pairs of characters, and the last character of a run is a token by itself, so
that every character begins some token and can be found by prefix. An emoji is a token.

Tokens consist of a-z, 0-9 and characters beyond ASCII, nothing else. `VERSION` changes when any rule does: an index
of another version is rebuilt. `STOP_WORDS` are the tokens of common English words that say little about a text.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache, lru_cache
from itertools import chain, filterfalse
from operator import add
from typing import NamedTuple

from memoranda.search.index.stemmer import roots, stem

VERSION = 1
LONGEST_TOKEN = 48
_MAX_CACHED = 1 << 15
_MAX_CACHED_LENGTH = 24

# Han, kana, bopomofo, Hangul, Thai, Lao, Tibetan, Myanmar, Khmer.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0f40-\u0fbc\u1000-\u103f\u1050-\u109f\u1100-\u11ff\u1780-\u17d3"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc\U00020000-\U0003ffff"
)
_FIRST_UNSPACED = "\u0e00"
_SYMBOLS = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
# Marks that belong to the letter before them but are not letters for `re`, and invisible joiners.
_DROPPED = (
    "\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u1dc0-\u1dff\u200c\u200d\u2060\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)

_LETTER = rf"[^\W_{_UNSPACED}]"
_SUFFIX = r"\+\+|#(?![A-Za-z0-9])"
_ASCII_WORDS = re.compile(rf"[A-Za-z0-9]+(?:'[A-Za-z]+|{_SUFFIX})*")
# A faster split into the same words, which leaves some punctuation on them.
_ASCII_BREAKS = bytes(code if chr(code).isalnum() or chr(code) in "'+#" else ord(" ") for code in range(256))
_TYPOGRAPHY = (("’", "'"), *((mark, " ") for mark in "‘“”–—…•\u00a0"))
_LOOSE = re.compile("['+#]")
_BLANK = re.compile("[ \n]")
_MARKS = re.compile(rf"[{_DROPPED}]+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACRONYMS = re.compile(r"([A-Z]{2,})s")
_NUMBERED = re.compile(r"([a-z]{2,}|v)([0-9]{1,4})")
# Follows the tokens of a camelCase word; it is white space, so it is not a token.
_HUMPED = "\n"
# What separates typed words, besides white space.
_BREAK = re.compile(r"[\s\u2000-\u200b\u2028-\u202f\u3000-\u3004\u3008-\u3020\u30fb\uff01-\uff0f\uff1a-\uff1f]+")

NAMES = {"c++": "cpp", "g++": "gpp", "c#": "csharp", "f#": "fsharp"}
_ENDINGS = frozenset({"s", "ll", "re", "ve", "m", "d"})
_LATIN = {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "ð": "d", "þ": "th", "ħ": "h", "ŋ": "n"}
_LETTERS = str.maketrans(_LATIN | {"ى": "ي", "ة": "ه", "ی": "ي", "ک": "ك"})
# A separate Cyrillic letter, which Unicode would decompose.
_SHORT_I, _PLACEHOLDER = "й", "\ue000"


class _Wide(NamedTuple):
    """The patterns for text beyond ASCII: they are large, so they are compiled when first needed."""

    words: re.Pattern[str]
    folded_words: re.Pattern[str]
    unspaced: re.Pattern[str]


@cache
def _wide() -> _Wide:
    unspaced = re.compile(rf"[{_UNSPACED}]+")
    # Vowel signs of Indic and neighbouring scripts: without them a word would be another word.
    marks = (chr(code) for code in range(0x0700, 0x1D00) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    signs = "".join(mark for mark in marks if not unspaced.match(mark))
    return _Wide(
        re.compile(rf"{_LETTER}+(?:[{_DROPPED}{signs}'’]+{_LETTER}*|{_SUFFIX})*|[{_UNSPACED}]+|[{_SYMBOLS}]"),
        re.compile(rf"(?:{_LETTER}|[{signs}])+"),
        unspaced,
    )


class TokenSpan(NamedTuple):
    """A part of a text and all its tokens, including camelCase parts."""

    start: int
    end: int
    tokens: tuple[str, ...]


class IndexTokens(NamedTuple):
    """The tokens of a text by the table they are indexed in, separated by spaces."""

    words: str
    pairs: str
    """Of unspaced scripts."""
    parts: str
    """Of camelCase words."""


def tokenize(text: str) -> list[str]:
    """The tokens of a text in order of position.

    >>> tokenize("We've migrated src/user_profile.py")
    ['we', 'migrat', 'src', 'user', 'profil', 'py']
    """
    return " ".join(map(_main.__getitem__, _words(plain_text(text)))).split()


def index_tokens(text: str) -> IndexTokens:
    """All tokens of a text as they are indexed, in one pass."""
    text = plain_text(text)
    words = _words(text)
    runs: list[str] = []
    if not text.isascii():
        runs = [word for word in words if word > _FIRST_UNSPACED and is_unspaced(word)]
        words = [word for word in words if not (word > _FIRST_UNSPACED and is_unspaced(word))]
    tokens = " ".join(filter(None, map(_main.__getitem__, words)))
    parts = ""
    if _HUMPED in tokens:
        tokens = tokens.replace(f" {_HUMPED}", "")
        parts = " ".join(filter(None, map(_parts.__getitem__, dict.fromkeys(filterfalse(str.islower, words)))))
    return IndexTokens(tokens, " ".join(chain.from_iterable(map(_pairs, runs))), parts)


def query_words(text: str) -> list[tuple[str, ...]]:
    """The tokens to search for each typed word: one is a word, several are a phrase.

    The single last character of an unspaced run is omitted, because the text may continue after it. A run of just one
    character stays, and the index treats it as a prefix.
    """
    found = []
    for word in _BREAK.split(text):
        tokens = tokenize(word)
        if len(tokens) > 1 and is_single_character(tokens[-1]) and len(tokens[-2]) == 2 and tokens[-2][1] == tokens[-1]:
            tokens.pop()
        if tokens:
            found.append(tuple(tokens))
    return found


def camel_case_parts(text: str) -> tuple[str, ...]:
    """The tokens of a text with each camelCase word split, as it occurs in longer names and in snake_case.

    >>> camel_case_parts("userProfile")
    ('user', 'profil')
    """
    return tuple(" ".join(_parts[word] or _main[word] for word in _words(plain_text(text))).split())


def token_spans(text: str, among: Set[str] | None = None) -> Iterator[TokenSpan]:
    """Where in the text the tokens are, for marking matches. Spans of pairs overlap.

    With `among`, of ASCII text only the words with any of these tokens.
    """
    text = plain_text(text)
    if text.isascii():
        for part in [(0, len(text))] if among is None else _parts_with(text, among):
            for match in _ASCII_WORDS.finditer(text, *part):
                tokens = _tokens_of(match[0])
                if among is None or not among.isdisjoint(tokens):
                    yield TokenSpan(*match.span(), tokens)
        return
    for match in _wide().words.finditer(text):
        word, (start, end) = match.group(), match.span()
        tokens = _tokens_of(word) if word.isascii() else _with_parts(word)
        if len(tokens) == len(word) > 1 and is_unspaced(word):
            for offset, token in enumerate(tokens):
                yield TokenSpan(start + offset, start + offset + len(token), (token,))
        else:
            yield TokenSpan(start, end, tokens)


def _with_parts(word: str) -> tuple[str, ...]:
    return (*_main[word].split(), *_parts[word].split())


_cached_tokens = lru_cache(maxsize=10_000)(_with_parts)


def _tokens_of(word: str) -> tuple[str, ...]:
    """The tokens of an ASCII word."""
    return _cached_tokens(word) if len(word) <= _MAX_CACHED_LENGTH else _with_parts(word)


def is_unspaced(token: str) -> bool:
    """Whether a token belongs to a script without spaces: a pair of characters, or the last one of a run."""
    return token > _FIRST_UNSPACED and _wide().unspaced.match(token) is not None


def is_single_character(token: str) -> bool:
    """Whether a token is one character of an unspaced script."""
    return len(token) == 1 and is_unspaced(token)


def spellings(token: str) -> set[str]:
    """Beginnings of the words that become an ASCII token, in lower case; every such word has one of them.

    "_" stands for any one character.
    """
    found = set(roots(token)) if token.isalpha() else {token}
    found.update(name for name, name_token in NAMES.items() if name_token == token)
    if token.endswith("nt") and len(token) < LONGEST_TOKEN:
        found.add(f"{token[:-1]}_t")
    return found


@lru_cache(maxsize=1_000)
def _certain_pieces(token: str) -> tuple[str, ...]:
    """Pieces of words, in lower case: every word that becomes this ASCII token contains one of them."""
    return tuple({beginning.partition("_")[0] for beginning in spellings(token)})


def may_have_token(lower: str, token: str) -> bool:
    """Whether a text in lower case may have a token: of ASCII text and an ASCII token, this is quickly told."""
    return not (lower.isascii() and token.isascii()) or any(map(lower.__contains__, _certain_pieces(token)))


def _parts_with(text: str, tokens: Iterable[str]) -> list[tuple[int, int]]:
    """Where the parts between blanks are that may have one of the tokens, in order."""
    lower = text.lower()
    found = set[tuple[int, int]]()
    for piece in {piece for token in tokens if token.isascii() for piece in _certain_pieces(token)}:
        begin = 0
        while (at := lower.find(piece, begin)) >= 0:
            begin = max(begin, lower.rfind(" ", begin, at) + 1, lower.rfind("\n", begin, at) + 1)
            blank = _BLANK.search(lower, at)
            end = blank.start() if blank else len(lower)
            found.add((begin, end))
            begin = end + 1
    return sorted(found)


def _words(text: str) -> list[str]:
    """The words of a text with plain punctuation."""
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_BREAKS).decode("ascii").split()
    return _wide().words.findall(text)


def plain_text(text: str) -> str:
    """The text with ASCII punctuation: much English is then pure ASCII, which is split three times as fast."""
    if not text.isascii():
        for typographic, plain in _TYPOGRAPHY:
            text = text.replace(typographic, plain)
    return text


class _TokenCache(dict[str, str]):
    """Caches the tokens of words; it is cleared when it is full, so it stays small."""

    def __init__(self, compute: Callable[[str], Iterable[str]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, word: str) -> str:
        tokens = " ".join(self._compute(word))
        # Runs of unspaced scripts seldom repeat, and would displace the words that do.
        if len(word) <= _MAX_CACHED_LENGTH and (word.isascii() or not is_unspaced(word)):
            if len(self) >= _MAX_CACHED:
                self.clear()
            self[word] = tokens
        return tokens


def _marked_tokens(word: str) -> tuple[str, ...]:
    """The tokens of a word, with a mark after them if it has camelCase parts, so that other texts need no search."""
    tokens = _tokens(word)
    return (*tokens, _HUMPED) if _humps(word) else tokens


def _tokens(word: str) -> tuple[str, ...]:
    if word.isascii():
        if word.isalnum():
            return _alphanumeric_tokens(word)
        return tuple(chain.from_iterable(map(_ascii_tokens, _ASCII_WORDS.findall(word))))
    if is_unspaced(word):
        return _pairs(word)
    return _folded_tokens(word) or (() if word[0].isalnum() else (word[0],))


def _pairs(run: str) -> tuple[str, ...]:
    if not unicodedata.is_normalized("NFKC", run):
        run = "".join(_wide().unspaced.findall(unicodedata.normalize("NFKC", run)))
    return (*map(add, run, run[1:]), *run[-1:])


def _ascii_tokens(word: str) -> tuple[str, ...]:
    lower = word.lower()
    if lower in NAMES:
        return (NAMES[lower],)
    if "'" in (bare := word.rstrip("+#'")):
        return _apostrophe_tokens(bare.lower())
    return _alphanumeric_tokens(bare) if bare else ()


def _alphanumeric_tokens(word: str) -> tuple[str, ...]:
    lower = word.lower()
    if word != lower and (acronyms := _ACRONYMS.fullmatch(word)):
        return (acronyms[1].lower(),)
    if not lower.isalpha() and (numbered := _NUMBERED.fullmatch(lower)):
        return (stem(numbered[1]), numbered[2])
    return (stem(lower[:LONGEST_TOKEN]),)


def _apostrophe_tokens(lower: str) -> tuple[str, ...]:
    """The tokens of a word with an apostrophe: "it's" is "it", "don't" is "dont", "l'homme" is two words."""
    pieces = [piece for piece in re.split("['+#]+", lower) if piece]
    if len(pieces) > 1 and pieces[-1] in _ENDINGS:
        pieces.pop()
    if len(pieces) > 1 and pieces[-1] == "t" and pieces[-2].endswith("n"):
        pieces[-2:] = [pieces[-2] + "t"]
        return tuple(pieces)
    return tuple(chain.from_iterable(map(_ascii_tokens, pieces)))


def _folded_tokens(word: str) -> tuple[str, ...]:
    composed = unicodedata.normalize("NFKC", word.replace("’", "'"))
    if composed.isascii():
        return tuple(chain.from_iterable(map(_ascii_tokens, _ASCII_WORDS.findall(composed))))
    if "'" in composed:
        return tuple(chain.from_iterable(map(_folded_tokens, filter(None, _split_apostrophes(composed)))))
    kept = composed.casefold().translate(_LETTERS).replace(_SHORT_I, _PLACEHOLDER)
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", kept))
    folded = unicodedata.normalize("NFC", bare.replace(_PLACEHOLDER, _SHORT_I)).translate(_LETTERS)
    folded = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in folded)
    tokens: list[str] = []
    for piece in _wide().folded_words.findall(folded):
        if piece.isascii():
            tokens += _ascii_tokens(piece)
        else:
            tokens.append(piece[:LONGEST_TOKEN])
    return tuple(tokens)


def _split_apostrophes(word: str) -> list[str]:
    pieces = word.split("'")
    return pieces[:-1] if len(pieces) > 1 and pieces[-1].lower() in _ENDINGS else pieces


def _humps(word: str) -> tuple[str, ...]:
    """The parts of a camelCase word, unless it looks like random characters."""
    if word.islower() or not word.isascii() or not _HUMP.search(word) or _ACRONYMS.fullmatch(word):
        return ()
    if _LOOSE.search(word):
        return tuple(chain.from_iterable(map(_humps, _LOOSE.split(word))))
    found = _HUMPS.findall(word)
    if len(found) < 2 or len(word) > LONGEST_TOKEN or (len(found) > 3 and 2 * len(word) < 5 * len(found)):
        return ()
    return tuple(_main[part.lower()] for part in found)


_main = _TokenCache(_marked_tokens)
_parts = _TokenCache(_humps)


_SMALL = """
a an the and or but if then else of at by for with about against between into through during before after above below
to from up down in out on off over under again further once here there when where why how all any both each few more
most other some such no nor not only own same so than too very can will just don't should now i me my myself we our
ours ourselves you your yours yourself he him his himself she her hers herself it its itself they them their theirs
themselves what which who whom whose this that these those am is are was were be been being have has had having do
does did doing would could ought might must shall may as because while until also many much mention tell told
i'm i've i'd you've you'd don't didn't doesn't isn't wasn't weren't can't won't couldn't wouldn't
"""


def tokens_of_words(words: str) -> frozenset[str]:
    """The tokens of words that are separated by spaces."""
    return frozenset(token for word in words.split() for token in tokenize(word))


STOP_WORDS = tokens_of_words(_SMALL)
