"""Finds credentials in clear text.

Nearly all texts contain none and every message is searched, so each kind of search begins with a cheap check. Its
expressions are compiled when a text first passes that check.
"""

from memoranda.safety.secrets.found_secret import FoundSecret, drop_overlaps
from memoranda.safety.secrets.issuer_tokens import blank_escapes, find_issuer_tokens
from memoranda.support.lazy_pattern import compile_later

BETWEEN_TEXTS = "\n\n\n\n\0\n"
"""Between texts that are searched together. No credential's format allows it, so none spans two texts, and none hides
in the end of the text before it."""

# The kinds of characters: 'a' for letters, '_' and '-', '0' for digits, a space for white space, 's' for signs that
# passwords have and prose seldom has within a word, '*' for itself, a dot for all others.
_KINDS = b"".join(
    b"0" if char.isdigit() else b"a" if char.isalpha() or char in "_-"
    else b" " if char.isspace() else b"s" if char in "@&%$#+!^~" else b"*" if char == "*" else b"."
    for char in map(chr, range(128))
).ljust(256, b".")  # fmt: skip
# `in` raises and catches an error for every bytes that it looks for, but not for a number; `find` does not.
_DIGIT, _SIGN, _AT = b"0s@"
_OTHER_NAMES = ("key", "token", "secret", "pwd", "_pat")

# A value that may be a secret has a digit beside a letter or a sign, or a sign within a word. Most texts have no such
# word, and most others have one or two, so only the text around these is searched for names. Each expression begins
# with the character that is searched for, which is faster, and ends with the word.
_NUMBER_IN_WORD = compile_later(rb"0(?<!00)(?:(?<=[as*]0)|0*+(?=[as*]))[^ ]*+")
_SIGN_IN_WORD = compile_later(rb"s(?<=[a0]s)(?=[a0])[^ ]*+")
# Of "phrase" and "mnemonic", with and without a capital; in capitals only as the name of a variable.
_SEED_WORDS = (b"hrase", b"nemonic", b"_PHRASE", b"MNEMONIC")
_MIN_WORD_CHARS = 8
_WORD_AND_NUMBER = compile_later(r"[^\w\s]*(?:[A-Za-z]+[-_.:]?\d{1,4}|\d{1,4}-?[a-z]+)\W*$")
# How much of the text around such a word is searched. A name is near its value; a command may begin far before it.
_BEFORE_CHARS = 300
_AFTER_CHARS = 80
# A text with more of them, or with so many numbers in words that looking at each would take long, is searched as a
# whole.
_MAX_WORDS = 12
_MAX_NUMBERS = 48
# More of them are allowed in long texts, such as messages that are searched together.
_CHARS_PER_WORD = 100
_CHARS_PER_NUMBER = 25


def find_secrets(text: str) -> list[FoundSecret]:
    """Find credentials in `text`, sorted by position and without overlaps."""
    # One byte for each character, so that offsets are the same.
    stored = text.encode("ascii", "replace")
    kinds = stored.translate(_KINDS)
    found = find_issuer_tokens(text, stored, kinds)
    if _AT in stored and stored.find(b"://") >= 0:
        from memoranda.safety.secrets.notations import find_logins

        found += find_logins(blank_escapes(text))
    if _DIGIT in kinds or _SIGN in kinds:
        for start, end in _find_unlikely_parts(text, kinds):
            part = _find_named(text[start:end])
            found += [FoundSecret(kind, first + start, last + start) for kind, first, last in part] if start else part
    if kinds.find(b"0000") >= 0:
        from memoranda.safety.secrets.checked_numbers import find_checked_numbers

        found += find_checked_numbers(text, kinds)
    if any([stored.find(word) >= 0 for word in _SEED_WORDS]):
        from memoranda.safety.secrets.checked_numbers import find_seed_phrases

        found += find_seed_phrases(text)
    return drop_overlaps(found) if found else found


def _find_unlikely_parts(text: str, kinds: bytes) -> list[tuple[int, int]]:
    """The parts of a text that may hold a password or a generated value, without overlaps.

    `kinds` has an `a` for each letter, a `0` for each digit, an `s` or `*` for each sign, and a space for white space.
    """
    words: dict[int, int] = {}
    for numbers, found in enumerate(_NUMBER_IN_WORD.finditer(kinds), start=1):
        _add_word(text, kinds, *found.span(), words)
        if (numbers > _MAX_NUMBERS and numbers > len(text) // _CHARS_PER_NUMBER) or (
            len(words) > _MAX_WORDS and len(words) > len(text) // _CHARS_PER_WORD
        ):
            return [(0, len(text))]
    for found in _SIGN_IN_WORD.finditer(kinds):
        _add_word(text, kinds, *found.span(), words)
    return _parts_around(sorted(words.items()), text) if words else []


def _add_word(text: str, kinds: bytes, position: int, end: int, words: dict[int, int]) -> None:
    """Add the word around a position up to its end, unless it is short, or a word with a number."""
    start = kinds.rfind(b" ", 0, position) + 1
    if end - start >= _MIN_WORD_CHARS and not _WORD_AND_NUMBER.match(text, start, end):
        words[start] = end


def _parts_around(words: list[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    for word_start, word_end in words:
        start = max(0, word_start - _BEFORE_CHARS)
        start = max(start, text.rfind(BETWEEN_TEXTS, start, word_start))
        end = min(len(text), word_end + _AFTER_CHARS)
        if parts and start <= parts[-1][1]:
            start = parts.pop()[0]
        parts.append((start, end))
    return parts


def _find_named(text: str) -> list[FoundSecret]:
    """The secrets that are recognised by the text before them; each search is entered only if its words occur."""
    from memoranda.safety.secrets.assignments import OTHER_PASSWORD_WORDS, find_assigned, find_stated_passwords
    from memoranda.safety.secrets.notations import find_in_files, find_in_headers, find_signatures

    lower = text.lower() if text.isascii() else _lower_same_length(text)
    blank = blank_escapes(text)
    has_pass, has_curl, has_auth = "pass" in lower, "curl" in lower, "auth" in lower
    found: list[FoundSecret] = []
    if has_pass or has_auth or any(name in lower for name in _OTHER_NAMES):
        found += find_assigned(text, lower)
    if has_curl or has_auth or "cookie" in lower or "bearer " in lower:
        found += find_in_headers(blank, lower)
    if "=" in text and "sig" in lower:
        found += find_signatures(text)
    if has_pass or not text.isascii() or any(word in lower for word in OTHER_PASSWORD_WORDS):
        found += find_stated_passwords(blank, lower, has_pass=has_pass)
    if has_pass or ":5432:" in text or ":*:" in text or "mysql" in lower:
        found += find_in_files(blank, lower, has_pass=has_pass)
    return found


def _lower_same_length(text: str) -> str:
    """The text in lower case with the same offsets: a few capitals become longer in lower case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)
