"""Folds a text to the plain letters that a reader would see, so that disguised words match like plain ones.

Every step here works on one code point at a time through `str.translate`, which keeps it linear on any input
(`unicodedata.normalize` over a whole text is quadratic on long runs of combining marks). A step can be reversed:
`fold_origin` and `blanked_origin` map an offset back to the source, and are only used when something was found.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

STOP = "\x02"
"""The word that marks the end of a sentence; phrases do not reach across it."""

_LOOKALIKES = {
    "a": "аɑαᴀ⍺ꭺАΑᎪ",
    "b": "ƅʙвВΒᏴᖯЬь",
    "c": "сϲᴄⅽСϹᏟ",
    "d": "ԁᴅⅾᎠᏧժ",
    "e": "еєҽᴇЕΕᎬ℮ҿ",
    "f": "ғꜰϝƒ",
    "g": "ɡցɢᶃԌᏀ",
    "h": "һհʜНнΗᎻᏂ",
    "i": "іıɪιΙІᎥӀɩǀ",
    "j": "јʝᴊЈᎫյ",
    "k": "кκᴋКΚᏦ",
    "l": "ʟⅼᏞլ",
    "m": "мᴍМΜᎷⅿ",
    "n": "ոռɴΝηпп",
    "o": "оοᴏОΟօՕσ๐००০໐",
    "p": "рρᴘРΡᏢ",
    "q": "ԛզ",
    "r": "ʀᴦгᎡᏒ",
    "s": "ѕꜱЅՏᏚ",
    "t": "тτᴛТΤᎢ",
    "u": "υսᴜцՍ",
    "v": "νѵᴠⅴᏙ",
    "w": "ԝѡωᴡᏔա",
    "x": "хχⅹХΧ",
    "y": "уүγʏУΥҮᎩ",
    "z": "ᴢΖᏃ",
}
_FIXED = {ord(odd): plain for plain, odds in _LOOKALIKES.items() for odd in odds} | {
    ord("ß"): "ss",
    ord("æ"): "ae",
    ord("œ"): "oe",
    ord("ø"): "o",
    ord("đ"): "d",
    ord("ł"): "l",
    ord("þ"): "th",
    ord("’"): "'",
    ord("‘"): "'",
    ord("ʼ"): "'",
    ord("“"): '"',
    ord("”"): '"',
    ord("–"): "-",
    ord("—"): "-",
    ord("‐"): "-",
    ord("‑"): "-",
    ord("−"): "-",
    ord("⁄"): "/",
    ord("∕"): "/",
    ord("․"): ".",
    ord("｡"): "。",
    ord("，"): "。",
}
_ENCLOSED = ((0x1F130, 0x1F149, "a"), (0x1F150, 0x1F169, "a"), (0x1F170, 0x1F189, "a"), (0x1F1E6, 0x1F1FF, "a"))
_DROPPED = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFFA0, 0x2800})
END_SIGNS = (".", "!", "?", ";")
"""What ends a sentence before a blank."""
_SENTENCE_ENDS = tuple(f"{sign}{blank}" for sign in END_SIGNS for blank in " \n")
_SENTENCE_MARKS = "。！？；।"
INSIDE_WORDS = "'*`~"


def is_ignorable(code: int) -> bool:
    """Whether a code point shows nothing of its own: format characters, combining marks, fillers."""
    if code in _DROPPED or 0xFE00 <= code <= 0xFE0F or 0xE0000 <= code <= 0xE0FFF:
        return True
    return unicodedata.category(chr(code)) in ("Mn", "Me", "Cf")


def _fold_code_point(code: int) -> str:
    if code < 128:
        return chr(code).lower()
    if code in _FIXED:
        return _FIXED[code]
    if 0xE0020 <= code <= 0xE007E:  # tag characters spell ASCII invisibly; what they spell is what a model reads
        return chr(code - 0xE0000).lower()
    if is_ignorable(code):
        return ""
    for first, last, base in _ENCLOSED:
        if first <= code <= last:
            return chr(ord(base) + code - first)
    if 0xAC00 <= code <= 0xD7A3 or 0xD800 <= code <= 0xDFFF:
        return chr(code)
    if chr(code).isspace():
        return " "
    parts = unicodedata.normalize("NFKD", chr(code).casefold())
    return "".join(_FIXED.get(ord(part), part) for part in parts.casefold() if not is_ignorable(ord(part)))


def _word_code_point(code: int) -> str:
    char = chr(code)
    if char == STOP or char in _SENTENCE_MARKS:
        return STOP
    if char in INSIDE_WORDS:
        return ""
    if char == "\n":  # still a blank, by which lines can be told apart
        return char
    # Signs that shape a syllable (Indic, Thai) are not alphanumeric but belong to their word.
    return char if char.isalnum() or (code > 128 and unicodedata.category(char) == "Mc") else " "


class _LazyTable(dict[int, str]):
    """A translation table that computes the value of a code point when it is first needed."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[int], str]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, code: int) -> str:
        folded = self[code] = self._compute(code)
        return folded


class _OffsetMap:
    """Maps an offset in a translated text back to the character of the source that it was translated from.

    Lengths are measured block by block, at the speed of `str.translate` and no further than needed, and single
    characters only inside the block that contains the offset.
    """

    __slots__ = ("_ends", "_source", "_table")
    _BLOCK = 256

    def __init__(self, source: str, table: _LazyTable) -> None:
        self._source, self._table, self._ends = source, table, [0]

    def origin(self, offset: int) -> int:
        while self._ends[-1] <= offset and len(self._ends) * self._BLOCK < len(self._source) + self._BLOCK:
            at = (len(self._ends) - 1) * self._BLOCK
            self._ends.append(self._ends[-1] + len(self._source[at : at + self._BLOCK].translate(self._table)))
        block = bisect_right(self._ends, offset) - 1
        done = self._ends[block]
        for index in range(block * self._BLOCK, min((block + 1) * self._BLOCK, len(self._source))):
            done += len(self._table[ord(self._source[index])])
            if done > offset:
                return index
        return len(self._source)


class WordOffsets:
    """The offsets of the words of a text: the same number of non-blank characters precedes a word in text and list."""

    __slots__ = ("_ends", "_spaced", "_words")
    _BLOCK = 256

    def __init__(self, spaced: str, words: list[str]) -> None:
        self._spaced, self._words, self._ends = spaced, words, [0]

    def begin(self, word: int) -> int:
        signs = len("".join(self._words[:word]))
        while self._ends[-1] <= signs and (len(self._ends) - 1) * self._BLOCK < len(self._spaced):
            at = (len(self._ends) - 1) * self._BLOCK
            self._ends.append(self._ends[-1] + len("".join(self._spaced[at : at + self._BLOCK].split())))
        block = bisect_right(self._ends, signs) - 1
        remaining = signs - self._ends[block]
        for index in range(block * self._BLOCK, len(self._spaced)):
            if not self._spaced[index].isspace():
                if remaining == 0:
                    return index
                remaining -= 1
        return len(self._spaced)

    def end(self, word: int) -> int:
        return self.begin(word) + len(self._words[word])


_PLAIN = _LazyTable(_fold_code_point)
_WORDS = _LazyTable(_word_code_point)
# None deletes a character like "", but only with None does `str.translate` take its fast way through ASCII.
_ASCII_WORDS = {code: _word_code_point(code) or None for code in range(128)}


def fold(text: str) -> str:
    """Lower-case `text`, map look-alike letters to Latin, drop marks and invisible characters, keep punctuation."""
    if text.isascii():
        return text.lower()
    # Most lines of a long text are ASCII, which is folded much faster.
    return "\n".join([line.lower() if line.isascii() else line.translate(_PLAIN) for line in text.split("\n")])


def blank_punctuation(plain: str) -> str:
    """Replace everything in a folded text except words and sentence ends with blanks."""
    marked = _mark_sentences(plain)
    if marked.isascii():
        return marked.translate(_ASCII_WORDS)
    return "\n".join([line.translate(_ASCII_WORDS if line.isascii() else _WORDS) for line in marked.split("\n")])


def split_sentences(plain: str) -> list[str]:
    """The sentences of a folded text, in the order in which their ends are among its words."""
    return re.split(f"[{STOP}{_SENTENCE_MARKS}]", _mark_sentences(plain))


def split_words(spaced: str) -> list[str]:
    """The words of a text without punctuation; a sentence end is a word of its own."""
    return spaced.replace(STOP, f" {STOP} ").split()


def fold_origin(text: str) -> Callable[[int], int]:
    """A function from an offset in `fold(text)` to the offset in `text`."""
    return int if text.isascii() else _OffsetMap(text, _PLAIN).origin


def blanked_origin(plain: str) -> Callable[[int], int]:
    """A function from an offset in `blank_punctuation(plain)` to the offset in `plain`."""
    return _OffsetMap(_mark_sentences(plain), _WORDS).origin


def _mark_sentences(plain: str) -> str:
    # One character replaces one character, so that offsets stay valid.
    for end in _SENTENCE_ENDS:
        if end in plain:
            plain = plain.replace(end, STOP + end[1])
    return plain.replace("\n\n", STOP + "\n")
