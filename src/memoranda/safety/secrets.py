"""Finds credentials in clear text, by the formats of their issuers.

Formats with an issuer's prefix are certain. Assignments (`password = …`) are judged by their value: a reference
(`$TOKEN`, `<your key>`, `see the vault`), a placeholder, a word or a plain hash is not a secret.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log2

from memoranda.safety.credential_formats import FORMATS
from memoranda.safety.private_keys import KEY_MARK, KEY_MARKS, find_private_keys
from memoranda.safety.substrings import contains_any


@dataclass(frozen=True, slots=True)
class FoundSecret:
    """A credential at `start` up to `end` of the text; `kind` names its issuer or form."""

    kind: str
    start: int
    end: int


# Every issuer's token has this many letters, digits, '_' and '-' in a row, but for those with a mark of their own.
_RUN = b"a" * 20
# After it, the first letter of a run is part of an escape.
_BACKSLASH = ord("\\")
_AS_RUNS = bytes(97 if byte < 128 and (chr(byte).isalnum() or chr(byte) in "_-") else 32 for byte in range(256))
# The marks, each with a rare character of it.
_MARKS = (("K", KEY_MARK), ("K", "AccountKey="), ("_", "whsec_"))
# A prefix may end with a sign that is not part of the run; then this much of the text before the run counts too.
_SIGNS_BEFORE = b"./:~"
_BEFORE_RUN = 80
_CAPITAL_OR_DIGIT = re.compile(rb"[A-Z0-9]").search
_NO_HASH = re.compile(rb"[g-zA-Z_]").search
_ISSUER_HINTS = (*dict.fromkeys(hint for _, hints, _ in FORMATS for hint in hints), *KEY_MARKS)
# The first two characters of a run, or of a part of it after a '-', that has an issuer's prefix.
_HEADS = frozenset(hint[:2].encode() for hint in _ISSUER_HINTS)

_QUOTE = r"(?:\\{0,3}[\"'`])?"
# Two texts that must both occur in lower case, the rarer first, kind, pattern.
_WITH_VALUE: tuple[tuple[str, str, str, str], ...] = (
    (
        "@",
        "://",
        "connection_string",
        r"\b[a-z][a-z0-9+.-]{2,20}://[^\s:/@\"'`<>]{0,64}:(?P<value>[^\s/@\"'`]{3,128})@[\w.\[-]",
    ),
    (
        "bearer",
        "bearer ",
        "bearer_token",
        r"\b[Bb](?:earer|EARER)\s{1,3}(?P<value>[A-Za-z0-9._~+/-]{20,2000}={0,2})",
    ),
    (
        "authorization",
        ":",
        "authorization_header",
        rf"(?i:\bauthorization{_QUOTE}\s?:\s{{0,3}}{_QUOTE}(?:basic|token|api-?key|ssws)\s{{1,3}})"
        rf"(?P<value>[A-Za-z0-9+/._-]{{12,500}}={{0,2}})",
    ),
    (
        "curl",
        ":",
        "login",
        r"\s(?:-[A-Za-z]{0,6}[uU]|--(?:proxy-)?user)[\s=]{0,3}\\{0,3}(?P<quote>[\"'])?[^\s:\"'\\]{0,100}:"
        r"(?P<value>(?(quote)(?:(?!(?P=quote))[^\n\\]){3,128}|[^\s\"'`\\]{3,128}))",
    ),
)
# How far after the name of the command its options are searched for.
_MAX_COMMAND_CHARS = 600

# Matched on a lower-case copy; the value is then read from the text itself.
_ASSIGNMENT_HINTS = ("key", "token", "secret", "pass", "pwd")
# The longest such word with what may be between it and its value.
_NAME_AND_SIGN = 24
# How many characters of such a word may precede the hint.
_BEFORE_HINT = 13
_SIGN_OF_VALUE = rf"{_QUOTE}(?:\s{{0,3}}(?::=|=>|=|:)|\sis\b)"
# How such a word ends, from the hint on.
_NAME_END = rf"(?:key(?:_base)?|token|secret|passw(?:or)?d|passphrase|pwd){_SIGN_OF_VALUE}"
_ASSIGNMENT = (
    # A value with one of these names is a key even when it looks like a hash, because many services issue such keys.
    r"(?:(?P<key>(?:api|app|application|access|master|private|secret|subscription)[_ -]?key(?:_base)?|auth[_ -]?token"
    r"|(?:client|signing)[_ -]?secret)|secret|token|password|passwd|passphrase|pwd)"
    rf"{_SIGN_OF_VALUE}\s{{0,3}}{_QUOTE}"
)
_MATCH_NAME_END = re.compile(_NAME_END).match
_VALUE = r"[^\s\"'`,;<>{}()\[\]]{6,256}"
# Where it ends in a JSON string: at an escaped quote, or at an escaped break before another name or line.
_ESCAPED_END = r"\\+(?:$|[nrt](?=[A-Za-z_][\w.-]{0,60}[=:]|[\\#-]|$))"

_REFERENCE = (
    r"(?i)^[$%@~&*#.!\\/|-]|^(?:https?|sha\d{1,3}-?|pbkdf2|scrypt|bcrypt|os|env|process|config|settings|self|str"
    r"|see|vault|secrets?)[.:/\[-]|\$\{|\.\.\.|…|\*{3}|x{4}"
)
_PLACEHOLDER = (
    r"(?i)your|example|sample|placeholder|change|dummy|fake|redacted|secret|password|token|xxx|todo|foo|bar\b|here"
    r"|insert|replace|test|none|null|true|false|my[_-]|^(?:abc|1234).{0,12}$"
)
_HASH = r"(?i)^(?:sha\d{1,3}[-:])?[0-9a-f]{7,128}$|^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_LIKE_A_HASH = r"(?i)^[0-9a-f]{32,128}$|^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_BASE64 = r"^[A-Za-z0-9+/]{38,128}={0,2}$"


def find_secrets(text: str) -> list[FoundSecret]:
    """Find credentials in `text`, sorted by position and without overlaps."""
    # Nearly all texts contain no credential, so each part makes cheap checks first.
    stored = text.encode("utf-8", "replace")
    lower = text.lower() if text.isascii() else stored.lower().decode("latin-1")
    found: list[FoundSecret] = []
    suspects = _find_suspects(stored)
    # Each mark contains a capital or an underscore, which most texts do not.
    suspects += [mark for sign, mark in _MARKS if sign in text and mark in text]
    if suspects and contains_any(_ISSUER_HINTS, joined := " ".join(suspects)):
        found += _find_formatted(_blank_escapes(text), joined)
        if contains_any(KEY_MARKS, joined):
            found += [FoundSecret("private_key", *span) for span in find_private_keys(text)]
    for rare, common, kind, pattern in _WITH_VALUE:
        if rare in lower and common in lower:
            found += _find_with_value(kind, pattern, _blank_escapes(text))
    if not text.isascii():
        lower = _lower_same_length(text) if contains_any(_ASSIGNMENT_HINTS, lower) else ""
    if names := _find_names(lower):
        found += _find_assigned(text, lower, names)
    return _drop_overlaps(found) if found else found


def _blank_escapes(text: str) -> str:
    """A text of the same length whose escaped breaks are spaces: in a JSON string, a token may follow an `n`."""
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ")


def _drop_overlaps(found: list[FoundSecret]) -> list[FoundSecret]:
    kept: list[FoundSecret] = []
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if not kept or secret.start >= kept[-1].end:
            kept.append(secret)
        elif secret.end > kept[-1].end:  # the rest of a credential that begins within another one
            kept.append(FoundSecret(secret.kind, kept[-1].end, secret.end))
    return kept


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_literal_first(pattern))


def _literal_first(pattern: str) -> str:
    """The same pattern with its word boundary after the issuer's prefix: `re` skips fast to a leading literal."""
    found = re.match(r"\\b([A-Za-z0-9_-]{2,})(?![?*+{])", pattern)
    if not found or "|" in pattern:
        return pattern
    return rf"{found[1]}(?<!\w{found[1]}){pattern[found.end() :]}"


def _find_suspects(stored: bytes) -> list[str]:
    """The few parts of a text that can be an issuer's token: long runs that begin like one."""
    found: list[str] = []
    runs = stored.translate(_AS_RUNS)
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        end = end if end >= 0 else len(stored)
        if _CAPITAL_OR_DIGIT(stored, start, end):
            if start and stored[start - 1] == _BACKSLASH:
                start += 1
            if start and stored[start - 1] in _SIGNS_BEFORE and _follows_prefix(stored, start):
                found.append(stored[max(0, start - _BEFORE_RUN) : end].decode("utf-8", "replace"))
            elif _has_head(run := stored[start:end]) and _NO_HASH(run):
                found.append(run.decode())
        start = runs.find(_RUN, end)
    return found


def _has_head(run: bytes) -> bool:
    """Whether a run, or a part of it after a '-', begins like an issuer's token."""
    if run[:2] in _HEADS:
        return True
    return run.find(b"-") > 0 and not _HEADS.isdisjoint([part[:2] for part in run.split(b"-")])


def _follows_prefix(stored: bytes, start: int) -> bool:
    """Whether the sign before a run can end a prefix; a '/' only in an address, because base64 is full of them."""
    before = stored[max(0, start - _BEFORE_RUN) : start]
    return before[-1:] != b"/" or b"." in before or b"//" in before


def _find_formatted(text: str, suspects: str) -> Iterator[FoundSecret]:
    for kind, hints, pattern in FORMATS:
        if contains_any(hints, suspects):
            for match in _compiled(pattern).finditer(text):
                if kind == "json_web_token" or _looks_random(match[0]):
                    yield FoundSecret(kind, match.start(), match.end())


def _find_with_value(kind: str, pattern: str, text: str) -> Iterator[FoundSecret]:
    for match in _compiled(pattern).finditer(text):
        if _looks_real(kind, match["value"]) and (kind != "login" or _is_curl_option(text, match.start())):
            yield FoundSecret(kind, match.start("value"), match.end("value"))


def _is_curl_option(text: str, option: int) -> bool:
    """Whether an option belongs to a `curl` command: `-u` means other things elsewhere."""
    line = text[max(0, option - _MAX_COMMAND_CHARS) : option]
    return "curl" in line and not _compiled(r"(?<!\\)\n|\||&&").search(line, line.rindex("curl"))


def _lower_same_length(text: str) -> str:
    """The text in lower case with the same offsets: a few capitals become longer in lower case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(char.lower() if char.isascii() else char for char in text)


def _find_assigned(text: str, lower: str, names: list[int]) -> Iterator[FoundSecret]:
    """The values assigned to the names at these positions; `lower` is the text in lower case with the same offsets."""
    assignment, position = _compiled(_ASSIGNMENT), 0
    for name_at in sorted(names):
        end = name_at + 2 * _NAME_AND_SIGN
        match = assignment.search(lower, max(position, name_at - _BEFORE_HINT), end)
        if match and match.end() <= name_at:
            match = assignment.search(lower, match.end(), end)
        if match is None or match.start() > name_at:
            continue
        if found := _compiled(_VALUE).match(text, match.end()):
            value = _compiled(_ESCAPED_END).split(found[0], maxsplit=1)[0]
            position = found.start() + len(value)
            if _looks_real("assigned_key" if match["key"] else "assigned_secret", value):
                yield FoundSecret("assigned_secret", found.start(), found.start() + len(value))


def _find_names(lower: str) -> list[int]:
    """The positions of words that name secrets and are followed by a sign that assigns a value."""
    names = []
    for hint in _ASSIGNMENT_HINTS:
        found = lower.find(hint)
        while found >= 0:
            if _MATCH_NAME_END(lower, found):
                names.append(found)
            found = lower.find(hint, found + len(hint))
    return names


def _looks_random(token: str) -> bool:
    """Whether the part after the issuer's prefix has the variety of a generated value."""
    tail = token[-20:]
    mixed = not tail.islower() or sum(map(str.isdigit, token)) >= 3  # and no name such as `sk-estimator-doc-link-2`
    return mixed and len(set(tail)) >= 9 and not re.search(r"x{4}|0{6}|example|placeholder|your", token, re.I)


def _looks_real(kind: str, value: str) -> bool:
    if _compiled(_REFERENCE).search(value) or _compiled(_PLACEHOLDER).search(value):
        return False
    if kind in ("connection_string", "login"):
        return len(set(value)) >= 4 and (
            any(map(str.isdigit, value)) or not value.replace("_", "").replace("-", "").islower()
        )
    if kind in ("bearer_token", "authorization_header"):
        return _entropy(value) >= 3.0 and any(map(str.isdigit, value))
    if kind == "assigned_key" and _compiled(_LIKE_A_HASH).match(value):
        return _entropy(value) >= 3.0
    if _compiled(_BASE64).match(value) and _entropy(value) >= 4.5:  # which may well have a '/' or two
        return True
    if _compiled(_HASH).match(value) or "://" in value or value.count("/") > 1 or value.count(".") > 2:
        return False
    return _is_password_like(value)


def _is_password_like(value: str) -> bool:
    """Whether a value mixes letters with digits or signs as no word does, and varies enough for its length."""
    letters = any(map(str.isalpha, value))
    digits = sum(map(str.isdigit, value))
    signs = sum(not char.isalnum() and char not in "_-./:" for char in value)
    cases = any(map(str.islower, value)) and any(map(str.isupper, value))
    mixed = letters and (digits >= 2 or (signs and (digits or cases)))
    return (
        bool(mixed)
        and len(value) >= 8
        and _entropy(value) >= 2.75
        and not re.fullmatch(r"[A-Za-z]+[-_.:]?\d{1,4}|[a-z_]+\(.*", value)
    )


def _entropy(value: str) -> float:
    counts = Counter(value)
    return -sum(count / len(value) * log2(count / len(value)) for count in counts.values())
