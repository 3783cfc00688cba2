"""A credential that was found, and the checks of its value: is it generated, a password, or only a placeholder?"""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import NamedTuple

from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later


class FoundSecret(NamedTuple):
    """A credential at `start` up to `end` of the text; `kind` names its issuer or form."""

    kind: str
    start: int
    end: int


def drop_overlaps(found: Iterable[FoundSecret]) -> list[FoundSecret]:
    """The credentials sorted by position; of those that overlap, only what the first does not cover."""
    kept: list[FoundSecret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
        elif secret.end > kept[-1].end:  # the rest of a credential that begins within another one
            kept.append(FoundSecret(secret.kind, kept[-1].end, secret.end))
    return kept


# What refers to a value that is elsewhere, is calculated, or is masked: its first sign, its first word, a part of it.
_REFERENCE_SIGNS = "$%@~&*#.!\\/|-"
_REFERENCE_WORD = compile_later(
    r"(?i)(?:https?|sha\d{1,3}-?|pbkdf2|scrypt|bcrypt|os|env|process|config|settings|self|str|see|vault|secrets?|enc|op|arn)"
    r"[.:/\[(-]"
)
_REFERENCE_PARTS = ("${", "{{", "...", "…", "***", "xxxx")
_PLACEHOLDERS = (
    "your", "example", "sample", "placeholder", "change", "dummy", "fake", "redacted", "secret", "password", "token",
    "xxx", "todo", "foo", "here", "insert", "replace", "test", "none", "null", "true", "false", "my_", "my-",
)  # fmt: skip
_PLACEHOLDER = compile_later(r"(?:abc|1234).{0,12}$|.*bar\b")
_NOT_RANDOM = ("xxxx", "000000", "example", "placeholder", "your")
_HASH = compile_later(r"(?i)(?:sha\d{1,3}[-:])?[0-9a-f]{7,128}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_LIKE_A_HASH = compile_later(r"(?i)[0-9a-f]{32,128}$|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_BASE64 = compile_later(r"[A-Za-z0-9+/%]{38,4000}={0,2}$")
_WORD_AND_NUMBER = compile_later(r"[A-Za-z]+[-_.:]?\d{1,4}$|[a-z_]+\(")
_ADDRESS_ON_A_CHAIN = compile_later(r"0x[0-9a-fA-F]{40,64}$")
_PARTS = compile_later(r"[-_.:/|~+=%]")
# Between a small letter, a capital and a digit.
_CHANGES = compile_later(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_SIGNS = compile_later(r"[^\w\-./:]")
_DIGITS = compile_later(r"\d")
# A generated value changes between kinds of characters about twice in three; a name seldom does.
_MIN_CHANGES = 0.3
_MIN_PART_CHARS = 10
_MIN_PASSWORD_CHANGES = 4


def looks_random(token: str) -> bool:
    """Whether the part after an issuer's prefix has the variety of a generated value."""
    tail = token[-32:]
    if len(set(tail)) < 9 or (
        tail.islower() and len(_DIGITS.findall(token)) < 3
    ):  # a name such as `sk-estimator-doc-link-2`
        return False
    return not contains_any(_NOT_RANDOM, token.lower())


def looks_generated(value: str) -> bool:
    """Whether a value of at least 16 characters was generated, and is not a name, a path or a hash."""
    if len(value) < 16 or len(set(value)) < 10 or _ADDRESS_ON_A_CHAIN.match(value):
        return False
    part = max(_PARTS.split(value), key=len) if not value.isalnum() else value
    return len(part) >= _MIN_PART_CHARS and len(_CHANGES.findall(part)) >= _MIN_CHANGES * len(part)


def is_reference(value: str) -> bool:
    """Whether a value refers to a secret that is elsewhere, or stands in for one."""
    return _refers(value) or _is_placeholder(value)


def _refers(value: str) -> bool:
    lower = value.lower()
    return value[:1] in _REFERENCE_SIGNS or contains_any(_REFERENCE_PARTS, lower) or bool(_REFERENCE_WORD.match(value))


def _is_placeholder(value: str) -> bool:
    lower = value.lower()
    return contains_any(_PLACEHOLDERS, lower) or bool(_PLACEHOLDER.match(lower))


def is_key(value: str, *, may_be_hash: bool) -> bool:
    """Whether the value of a key or token is real; many services issue keys that look like hashes or UUIDs."""
    if value.isalpha() and (len(value) < 30 or not looks_generated(value)):
        return False
    if _HASH.match(value):
        return may_be_hash and bool(_LIKE_A_HASH.match(value)) and len(set(value)) >= 8
    if _BASE64.match(value) and len(set(value)) >= 22 and _is_mixed(value):  # which may well have a '/' or two
        return not _ADDRESS_ON_A_CHAIN.match(value) and "EXAMPLE" not in value and _has_few_words(value)
    if len(value) >= 20 and looks_generated(value):  # in which a word such as "foo" may occur by chance
        return not contains_any(_NOT_RANDOM, value.lower()) and not _refers(value.lstrip("-./"))
    return is_password(value) and not is_reference(value) and not _ADDRESS_ON_A_CHAIN.match(value)


def is_password(value: str) -> bool:
    """Whether a value mixes letters with digits or signs as no word does, and varies enough for its length."""
    if len(value) < 8 or value.isalpha() or value.isdigit() or len(set(value)) < 6:
        return False
    if (
        "://" in value
        or value.count("/") > 1
        or value.count(".") > 2
        or _HASH.match(value)
        or _WORD_AND_NUMBER.match(value)
    ):
        return False
    digits = len(_DIGITS.findall(value))
    if digits == len(value) or value.upper() == value.lower():  # no letters
        return False
    if digits >= 2 or (digits and len(_CHANGES.findall(value)) >= _MIN_PASSWORD_CHANGES):
        return True
    return bool(_SIGNS.findall(value)) and (digits > 0 or not (value.islower() or value.isupper()))


def is_login_password(value: str) -> bool:
    """Whether the password in an address or a command is real: most real ones have a digit or a capital."""
    if is_reference(value) or len(set(value)) < 4:
        return False
    return bool(_DIGITS.findall(value)) or not value.replace("_", "").replace("-", "").islower()


def is_header_token(value: str) -> bool:
    """Whether the token of a header is real."""
    return not is_reference(value) and len(set(value)) >= 8 and bool(_DIGITS.findall(value))


def is_login(value: str) -> bool:
    """Whether base64 text is a user with a password, as Docker and npm store them."""
    try:
        decoded = b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return decoded.isascii() and b":" in decoded[1:-1] and decoded.decode().isprintable()


def _is_mixed(value: str) -> bool:
    return bool(_DIGITS.findall(value)) and not value.islower() and not value.isupper()


def _has_few_words(value: str) -> bool:
    """Whether base64 text is not a path: the parts of a path between '/' are words."""
    return value.count("/") < 2 or looks_generated(value.replace("/", ""))
