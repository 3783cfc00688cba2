"""Decodes text written in another alphabet: base64, base32, hex, binary and decimal codes, Morse code.

Each decoder returns "" for what does not decode to something readable: most long words, hashes and numbers do not.
What decodes to a further encoded run counts as readable, so that the caller can decode it in turn.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from functools import cache

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
_MIN_SIGNS = 8
# Groups of digits or signs that spell one letter each, in runs that are long enough to be a phrase.
_SPACED_HEX = r"[0-9A-Fa-f]{2}(?:[ :][0-9A-Fa-f]{2}){11,}"
_BINARY = r"[01]{8}(?:[ ,]?[01]{8}){7,}"
_DECIMAL = r"\d{2,3}(?:[ ,]{1,2}\d{2,3}){11,}"
_MORSE_RUN = r"[.\-·–]{1,5}(?:[ /|]{1,3}[.\-·–]{1,5}){7,}"


def find_encoded_runs(text: str) -> Iterator[tuple[int, int, str]]:
    """The start, end and meaning of every run that decodes to something readable."""
    decode_once = cache(decode_token)  # a repeated token is decoded once
    for start, end in _find_long_tokens(text):
        decoded = decode_once(text[start:end])
        if decoded:
            yield start, end, decoded
    for signs, hint, pattern, decode in _RUNS:
        if sum(map(text.count, signs)) >= _MIN_SIGNS and _compiled(hint).search(text):
            for match in _compiled(pattern).finditer(text):
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
        chunk: [token for token in _compiled(_TOKEN).findall(chunk) if len(token) >= _MIN_TOKEN_CHARS]
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
    codes = [int(code) for code in _compiled(r"\d+").findall(run)]
    return _readable(bytes(codes)) if max(codes) < 127 else ""


def _from_morse(run: str) -> str:
    words = [
        "".join(_MORSE.get(code, "\0") for code in word.split())
        for word in run.replace("·", ".").replace("–", "-").replace("|", "/").split("/")
    ]
    return "" if any("\0" in word for word in words) else " ".join(words)


# The signs that such a run consists of, a short hint of it, the run and its decoder.
_RUNS: tuple[tuple[str, str, str, Callable[[str], str]], ...] = (
    ("0123456789", r"\d[ :]\d", _SPACED_HEX, _from_spaced_hex),
    ("01", r"[01]{8}", _BINARY, _from_binary),
    ("0123456789", r"\d{2}[ ,]{1,2}\d{2}", _DECIMAL, _from_decimal),
    (".-·–", r"[.\-·–] [.\-·–]", _MORSE_RUN, _from_morse),
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


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
