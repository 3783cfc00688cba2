"""Finds credentials in clear text.

Nearly all texts contain none and every message is searched, so each kind of search begins with a cheap check.
"""

import re

from memoranda.safety.secrets.addresses import find_logins, find_signatures
from memoranda.safety.secrets.assignments import find_assigned
from memoranda.safety.secrets.checked_numbers import find_checked_numbers
from memoranda.safety.secrets.credential_files import find_in_files
from memoranda.safety.secrets.found_secret import FoundSecret, drop_overlaps
from memoranda.safety.secrets.headers import find_in_headers
from memoranda.safety.secrets.issuer_tokens import blank_escapes, find_issuer_tokens
from memoranda.safety.secrets.password_sentences import find_stated_passwords
from memoranda.safety.secrets.seed_phrases import find_seed_phrases
from memoranda.safety.secrets.unlikely_words import find_unlikely_parts

# The kinds of characters: 'a' for letters, '_' and '-', '0' for digits, a space for white space, 's' for signs that
# passwords have and prose seldom has within a word, a dot for all others.
_KINDS = b"".join(
    b"0" if char.isdigit() else b"a" if char.isalpha() or char in "_-"
    else b" " if char.isspace() else b"s" if char in "@&%$#+!^~" else b"."
    for char in map(chr, range(128))
).ljust(256, b".")  # fmt: skip
# What the numbers of cards, accounts and social security have.
_LONG_NUMBER = re.compile(r"[0-9](?:[0-9]{3}[ -]?[0-9]{4}|[0-9]{2}-[0-9]{2}-[0-9]{4})").search
_MIN_NUMBER_DIGITS = 9


def find_secrets(text: str) -> list[FoundSecret]:
    """Find credentials in `text`, sorted by position and without overlaps."""
    # One byte for each character, so that offsets are the same.
    stored = text.encode("ascii", "replace")
    kinds = stored.translate(_KINDS)
    found = find_issuer_tokens(text, stored, kinds.replace(b"0", b"a"))
    if "@" in text and "://" in text:
        found += find_logins(blank_escapes(text))
    if b"0" in kinds or b"s" in kinds:
        for start, end in find_unlikely_parts(text, stored, kinds):
            part = _find_named(text[start:end])
            found += [FoundSecret(secret.kind, secret.start + start, secret.end + start) for secret in part]
    if b"0000" in kinds and kinds.count(b"0") >= _MIN_NUMBER_DIGITS and _LONG_NUMBER(text):
        found += find_checked_numbers(text)
    # Of "phrase" and "mnemonic", with and without a capital; in capitals only as the name of a variable.
    if "hrase" in text or "nemonic" in text or ("_PHRASE" in text if "_" in text else False) or "MNEMONIC" in text:
        found += find_seed_phrases(text)
    return drop_overlaps(found) if found else found


def _find_named(text: str) -> list[FoundSecret]:
    """The secrets that are recognised by the text before them."""
    lower = text.lower() if text.isascii() else _lower_same_length(text)
    blank = blank_escapes(text)
    has_pass = "pass" in lower
    found = list(find_assigned(text, lower))
    found += find_in_headers(blank, lower)
    if "=" in text and "sig" in lower:
        found += find_signatures(text)
    found += find_stated_passwords(blank, lower, has_pass=has_pass)
    found += find_in_files(blank, lower, has_pass=has_pass)
    return found


def _lower_same_length(text: str) -> str:
    """The text in lower case with the same offsets: a few capitals become longer in lower case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)
