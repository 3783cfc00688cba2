"""Undoes simple encodings and disguises, so that what they hide is scanned like plain text.

`unescape` undoes escapes in the text itself. Whatever has to be guessed (encoded runs, rot13, reversed words,
spaced-out letters, digits for letters) is collected as pieces, each with its span in the text, and scanned as one
further text. All work is linear, and the total size of the pieces is limited: a text that has more is reported instead
of being scanned in part.

The decoders of other alphabets (base64, base32, hex, binary and decimal codes, Morse code) return "" for what does not
decode to something readable: most long words, hashes and numbers do not. What decodes to a further encoded run counts
as readable, so that the caller can decode it in turn.
"""

import base64
import binascii
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import accumulate
from typing import NamedTuple

from memoranda.safety.substrings import contains_any, lines_with
from memoranda.safety.vocabulary import ORDINARY, word_classes
from memoranda.support.lazy_pattern import compile_once

_TOKEN = r"[A-Za-z0-9+/_-]+={0,6}"
_MIN_TOKEN_CHARS = 16
_WRAPPED_LINE = 56
_HEX = "0123456789abcdefABCDEF"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567="
_ENCODED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-%\\&#;{} \n"
_SAMPLE = 200
_MORSE_CODES = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)
_MORSE = dict(zip(_MORSE_CODES.split(), "abcdefghijklmnopqrstuvwxyz", strict=True))
_MAX_BINARY = 4000
# Groups of digits or signs that spell one letter each, in runs that are long enough to be a phrase.
_SPACED_HEX = r"[0-9A-Fa-f]{2}(?:[ :][0-9A-Fa-f]{2}){11,}"
_BINARY = r"[01]{8}(?:[ ,]?[01]{8}){7,}"
_DECIMAL = r"[0-9]{2,3}(?:[ ,]{1,2}[0-9]{2,3}){11,}"
_MORSE_RUN = r"[.\-·–]{1,5}(?:[ /|]{1,3}[.\-·–]{1,5}){7,}"


def find_encoded_runs(text: str) -> Iterator[tuple[int, int, str]]:
    """The start, end and meaning of every run that decodes to something readable."""
    decode_once = cache(decode_token)  # a repeated token is decoded once
    for start, end in _find_long_tokens(text):
        decoded = decode_once(text[start:end])
        if decoded:
            yield start, end, decoded
    kinds = text.replace("·", ".").replace("–", "-").encode("ascii", "replace").translate(_KINDS)
    for hints, pattern, decode in _RUNS:
        if contains_any(hints, kinds):
            for match in compile_once(pattern).finditer(text):
                decoded = decode(match[0])
                if decoded:
                    yield *match.span(), decoded


def decode_token(token: str) -> str:
    """The text that an unbroken run of letters and digits encodes, or ""."""
    if len(token) % 2 == 0 and not token.strip(_HEX):
        return _readable(bytes.fromhex(token))
    if token.islower() and token.isalpha():  # an ordinary long word: readable text has capitals in base64
        return ""
    return (not token.strip(_BASE32) and _from_base32(token)) or _from_base64(token)


def _find_long_tokens(text: str) -> Iterator[tuple[int, int]]:
    """Unbroken runs long enough to hide a phrase; the lines of a wrapped run count as one."""
    chunks = [chunk for chunk in text.split() if len(chunk) >= _MIN_TOKEN_CHARS]
    tokens_of = {
        chunk: [token for token in compile_once(_TOKEN).findall(chunk) if len(token) >= _MIN_TOKEN_CHARS]
        for chunk in set(chunks)
    }
    end = start = 0
    for chunk in chunks:
        for token in tokens_of[chunk]:
            at = text.index(token, end)
            if end - start >= _WRAPPED_LINE and text[end:at] in ("\n", "\r\n"):
                end = at + len(token)
                continue
            if end:
                yield start, end
            start, end = at, at + len(token)
    if end:
        yield start, end


def _from_base64(token: str) -> str:
    body = token.replace("\n", "").replace("\r", "").rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(body + "=" * (-len(body) % 4)))
    except binascii.Error:  # a length that no base64 text has: an ordinary long word
        return ""


def _from_base32(token: str) -> str:
    body = token.rstrip("=")
    try:
        return _readable(base64.b32decode(body + "=" * (-len(body) % 8)))
    except binascii.Error:  # a length that no base32 text has: an ordinary word in capitals
        return ""


def _from_spaced_hex(run: str) -> str:
    return _readable(bytes.fromhex(run.replace(" ", "").replace(":", "")))


def _from_binary(run: str) -> str:
    bits = run.replace(" ", "").replace(",", "")
    return _readable(int(bits, 2).to_bytes(len(bits) // 8, "big")) if len(bits) <= 8 * _MAX_BINARY else ""


def _from_decimal(run: str) -> str:
    codes = [int(code) for code in compile_once(r"\d+").findall(run)]
    return _readable(bytes(codes)) if max(codes) < 127 else ""


def _from_morse(run: str) -> str:
    words = [
        "".join(_MORSE.get(code, "\0") for code in word.split())
        for word in run.replace("·", ".").replace("–", "-").replace("|", "/").split("/")
    ]
    return "" if any("\0" in word for word in words) else " ".join(words)


# A digit is `1` and a sign of Morse code `.`, so that the hints of a run are found without a regular expression.
_KINDS = bytes(49 if chr(byte) in "0123456789" else 46 if chr(byte) in ".-" else byte for byte in range(256))
# The hints of which such a run has one, the run and its decoder.
_RUNS: tuple[tuple[tuple[bytes, ...], str, Callable[[str], str]], ...] = (
    ((b"1 1", b"1:1"), _SPACED_HEX, _from_spaced_hex),
    ((b"1" * 8,), _BINARY, _from_binary),
    ((b"11 11", b"11,11", b"11, 11", b"11  11"), _DECIMAL, _from_decimal),
    ((b". .",), _MORSE_RUN, _from_morse),
)


def _readable(raw: bytes) -> str:
    """The text of these bytes if it is mostly letters and blanks, or an encoded run itself."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:  # most long words and hashes decode to no text at all
        return ""
    sample = text[:_SAMPLE]
    letters = sum(map(str.isalpha, sample)) + sample.count(" ")
    if letters >= 0.7 * len(sample) or (len(text) >= _MIN_TOKEN_CHARS and not sample.strip(_ENCODED)):
        return text
    return ""


MAX_DISGUISED = 20_000
_MARGIN = 120
_ROUNDS = 3

# The first sign is looked up in a set, so that `re` skips fast to it.
_ESCAPE = (
    r"([%&\\](?:(?<=%)[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*|(?<=&)(?:#[0-9]{1,7};?|#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z]{2,8};)"
    r"|(?<=\\)(?:u\{?[0-9A-Fa-f]{4,6}\}?|x[0-9A-Fa-f]{2})))"
)
# Both begin with a character that is rare between letters, so that `re` skips fast.
_LONE_LETTERS = r"\s\S(?:\s{1,5}\S){5,}(?!\S)"
_LINKED_LETTERS = r"[.\-_·|/+~][^\W_](?:[.\-_·|/+~][^\W_]){2,}(?![^\W_])"
_LINKED = r"(?<![^\W_])[^\W_](?:[.\-_·|/+~][^\W_])+(?![^\W_])"
_MIN_LETTERS = 5
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TURNED = _LETTERS[13:] + _LETTERS[:13]
_ROT13 = str.maketrans(_LETTERS + _LETTERS.upper(), _TURNED + _TURNED.upper())
_LEET_WORD = r"[a-z0-9@$!|]{2,24}"
_LEET_SIGN = r"[0-9@$!|](?:(?=[a-z])|(?<=[a-z].))"
_FROM_SIGN = r"([0-9@$!|]\S*)"
_LEET = (str.maketrans("013457@$!|89", "oieastasilbg"), str.maketrans("013457@$!|89", "oleastasiibg"))


ESCAPES = ("&", "%", "\\")
"""A text without any of these needs no `unescape`."""


class HiddenPiece(NamedTuple):
    """Disguised text from `start` up to `end`; `undo` decodes it."""

    start: int
    end: int
    undo: Callable[[], str]


def unescape(text: str) -> tuple[str, Callable[[int], int] | None]:
    """Undo HTML entities, percent and backslash escapes; also return a function that maps offsets back."""
    steps: list[Callable[[int], int]] = []
    for _ in range(_ROUNDS):
        parts = compile_once(_ESCAPE).split(text)
        if len(parts) == 1:
            break
        plain = list(parts)
        meaning = {escape: _unescape_one(escape) for escape in set(parts[1::2])}
        plain[1::2] = map(meaning.__getitem__, parts[1::2])
        steps.append(_offset_map(parts, plain))
        text = "".join(plain)
    if not steps:
        return text, None

    def origin(offset: int) -> int:
        for step in reversed(steps):
            offset = step(offset)
        return offset

    return text, origin


def _offset_map(before: list[str], after: list[str]) -> Callable[[int], int]:
    ends: list[int] = []
    sources: list[int] = []

    def origin(offset: int) -> int:
        if not ends:
            ends.extend(accumulate(map(len, after)))
            sources.extend(accumulate(map(len, before), initial=0))
        part = bisect_right(ends, offset)
        if part == len(ends):
            return sources[-1]
        inside = offset - (ends[part - 1] if part else 0)
        return sources[part] + (inside if part % 2 == 0 else 0)

    return origin


def _unescape_one(escape: str) -> str:
    import html  # noqa: PLC0415

    if escape[0] == "%":
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "replace")
    if escape[0] == "&":
        plain = html.unescape(escape)
        return plain if plain != "\x00" else " "
    code = int(escape.strip("\\ux{}"), 16)
    return chr(code) if 32 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else " "


def find_encoded(text: str) -> Iterator[HiddenPiece]:
    """Runs in another alphabet (base64, hex, Morse …) that decode to something readable."""
    for start, end, decoded in find_encoded_runs(text):
        yield HiddenPiece(start, end, partial(str, decoded))


def find_disguised(plain: str, words: list[str]) -> Iterator[HiddenPiece]:
    """Parts that read as English only after rot13, reversal or undoing of leet; spans count in `plain`."""
    known = set(words)
    for disguise in (_rot13, _reverse):
        hits = _disguised_words(disguise).intersection(known)
        if len(hits) >= 2:
            pattern = re.compile(r"\b(?:" + "|".join(sorted(hits)) + r")\b")
            for start, end in _merge_spans((match.span() for match in pattern.finditer(plain)), len(plain)):
                yield HiddenPiece(start, end, partial(disguise, plain[start:end]))
    yield from _find_leet(plain)


def _rot13(text: str) -> str:
    return text.translate(_ROT13)


def _reverse(text: str) -> str:
    return text[::-1]


@cache
def _disguised_words(disguise: Callable[[str], str]) -> frozenset[str]:
    ordinary = frozenset(word for word in ORDINARY if len(word) > 2)
    return frozenset(disguise(word) for word in ordinary) - ordinary - {"saw", "ton", "rof", "won", "era"}


def find_spaced_out(plain: str, words: list[str]) -> Iterator[HiddenPiece]:
    """Runs of single letters, separated by blanks or signs, which hide the words they spell; spans count in `plain`."""
    if array("L", [1] * _MIN_LETTERS).tobytes() not in array("L", map(len, words)).tobytes():
        return
    for pattern, join in ((_LONE_LETTERS, _join_lone), (_LINKED_LETTERS, _join_linked)):
        runs = ((match.start() - 1, match.end() - 1) for match in compile_once(pattern).finditer(f" {plain}"))
        for start, end in _merge_spans(runs, len(plain)):
            yield HiddenPiece(start, end, partial(join, f" {plain[start:end]}"))


def _join_lone(region: str) -> str:
    return compile_once(_LONE_LETTERS).sub(lambda match: f" {_join_letters(match[0])} ", region)


def _join_linked(region: str) -> str:
    return compile_once(_LINKED).sub(lambda match: match[0][::2], region)


def _join_letters(run: str) -> str:
    words = compile_once(r"\s{2,}").split(run)
    if len(words) > 1:  # wider gaps separate the words
        return " ".join("".join(word.split()) for word in words)
    return " ".join(compile_once(_word_pattern()).findall("".join(run.split())))


@cache
def _word_pattern() -> str:
    """Known words, longest first, grouped by first letter so that a miss is cheap; else any one letter."""
    groups: dict[str, list[str]] = {}
    for word in sorted(_known_words(), key=lambda word: (-len(word), word)):
        if word.isascii() and word.isalpha():
            groups.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in sorted(groups.items())) + r"|\w"


@cache
def _known_words() -> frozenset[str]:
    return frozenset(ORDINARY).union(*word_classes().values())


def _find_leet(plain: str) -> Iterator[HiddenPiece]:
    if not compile_once(_LEET_SIGN).search(plain):
        return
    # Most words have letters only. Each of the others is what is before its first digit or sign, and the rest.
    pieces = compile_once(_FROM_SIGN).split(plain)
    odd = " ".join([before.rpartition(" ")[2] + rest for before, rest in zip(pieces[::2], pieces[1::2], strict=False)])
    tokens = {token for token in compile_once(_LEET_WORD).findall(odd) if not token.isalpha() and not token.isdigit()}
    hits = {token for token in tokens if _leet_word(token) in _known_words()}
    if hits:
        found = (match for line in lines_with(plain, hits) for match in compile_once(_LEET_WORD).finditer(plain, *line))
        for start, end in _merge_spans((match.span() for match in found if match[0] in hits), len(plain)):
            yield HiddenPiece(start, end, partial(_undo_leet, plain[start:end]))


def _leet_word(token: str) -> str:
    """The word that a token disguises; `1` is read as `l` only if that results in a known word."""
    usual, other = (token.translate(table) for table in _LEET)
    return other if other in _known_words() and usual not in _known_words() else usual


def _undo_leet(region: str) -> str:
    def undo(match: re.Match[str]) -> str:
        word = _leet_word(match[0])
        return word if not match[0].isdigit() or word in _known_words() else match[0]

    return compile_once(_LEET_WORD).sub(undo, region)


def _merge_spans(spans: Iterator[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """Spans widened by a margin and merged where they touch."""
    low, high = None, 0
    for start, end in spans:
        if low is None or start - _MARGIN > high:
            if low is not None:
                yield low, min(length, high)
            low = max(0, start - _MARGIN)
        high = end + _MARGIN
    if low is not None:
        yield low, min(length, high)
