"""Removes credentials from text that is about to be recorded; what the model and its tools see does not change.

Two kinds are redacted: the known credentials of this machine (from the environment and `.env`), wherever they occur,
and text in an issuer's format. Each becomes `[redacted:<kind>]`, or, in a name such as a session id, a stable
replacement by which the same name is found again.
"""

import hashlib
import json
import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any

from memoranda.safety.secrets import BETWEEN_TEXTS, FoundSecret, find_secrets
from memoranda.safety.secrets.found_secret import drop_overlaps
from memoranda.safety.secrets.issuer_tokens import KEY_MARK, find_private_keys
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later

# Shorter values are words that happen to be settings, and would be found everywhere.
_MIN_VALUE_CHARS = 8
# "pwd=" and the shortest value that counts as a secret.
_MIN_TEXT_CHARS = 12
_MAX_PARTS = 2_000_000
_PART_CHARS = 2_000_000
_SHARED_CHARS = 100_000
# JSON text within JSON text within JSON text: tool calls, their arguments, and what is sent by them.
_MAX_LEVELS = 3
_HTML_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
_PRIVATE_KEY = "[redacted:private_key]"
_LISTS = (list, tuple)
# An id in one of these forms, a UUID or the id of a tool call, is no credential of an issuer, and nearly every message
# of an agent has one. With sixteen digits at its beginning a UUID may pass for the number of a card.
_ID = compile_later(
    r"(?=[0-9-]{0,18}[a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:toolu|call)_[A-Za-z0-9]{8,32}"
)
_MAX_ID_CHARS = 38
_FLAT = frozenset({str, int, float, bool, type(None)})
# One in a hundred long numbers passes for the number of a card, and many programs use long numbers as ids.
_NOT_IN_NAMES = frozenset({"card_number", "iban", "social_security_number"})
_CACHED_NAMES = 4096
_MAX_KEY_CHARS = 40
# The cost of guessing a password from its replacement: about 15 ms and 8 MB for each guess.
_SCRYPT_COST = 2**13
_SCRYPT_SALT = b"memoranda.name"
_DIGEST_BYTES = 8
# The store refuses session ids that are longer than 200 characters.
_MAX_NAME_CHARS = 150

_log = logging.getLogger(__name__)


class Redactor:
    """Redacts text and JSON-like values, and counts the credentials that it removed."""

    def __init__(self, known_values: Iterable[str] = ()) -> None:
        plain = {value for value in known_values if len(value) >= _MIN_VALUE_CHARS}
        # The longest first, so that a value that contains another is redacted as a whole.
        self._known = _longest_first(plain)
        self._known_and_escaped = _longest_first(plain.union(*map(_escaped_forms, plain)))
        # The keys of objects recur in every message, and are searched once.
        self._clean_keys: set[Any] = set()
        self.name: Callable[[str], str] = lru_cache(_CACHED_NAMES)(self._redact_name)
        """The stored form of a name that a caller chose, such as a session id: the name itself unless it contains a
        credential. The same name always has the same form, in every home, and the form of a form is the form itself."""

    def text(self, text: str) -> tuple[str, int]:
        """The text without credentials, and how many there were."""
        if len(text) < _MIN_VALUE_CHARS:
            return text, 0
        count = 0
        for value in self._known_forms(text):
            if value in text:
                count += text.count(value)
                text = text.replace(value, "[redacted:known_value]")
        found = find_secrets(text) if len(text) >= _MIN_TEXT_CHARS else []
        if not found:
            return text, count
        pieces, position = [], 0
        for secret in found:
            pieces += [text[position : secret.start], f"[redacted:{secret.kind}]"]
            position = secret.end
        return "".join(pieces) + text[position:], count + len(found)

    def value(self, value: Any) -> tuple[Any, int]:
        """A JSON-like value with every string in it redacted; the argument itself is not changed.

        All its text is searched in one pass; the value is only copied when that finds something.
        """
        return (value, 0) if self.is_clean(value) else self._replace(value)

    def is_clean(self, value: Any) -> bool:
        """Whether no string in a JSON-like value contains a credential; for many values, pass a list of them.

        False may be wrong, and `value` then finds nothing; True is never wrong.
        """
        texts: list[str] = []
        new_keys = _collect_texts(value, texts, self._clean_keys)
        if self._known:
            joined = BETWEEN_TEXTS.join(texts)
            if contains_any(self._known_forms(joined), joined):
                return False
        joined = BETWEEN_TEXTS.join([text for text in texts if len(text) > _MAX_ID_CHARS or not _ID.fullmatch(text)])
        if find_secrets(joined) if len(joined) <= _PART_CHARS else any(map(find_secrets, _overlapping_parts(joined))):
            return False
        if new_keys and len(self._clean_keys) < _CACHED_NAMES:
            self._clean_keys.update([key for key in new_keys if type(key) is str and len(key) <= _MAX_KEY_CHARS])
        return True

    def _redact_name(self, name: str) -> str:
        if len(name) < _MIN_VALUE_CHARS:
            return name
        found = self._find_in_name(name)
        if not found:
            return name
        pieces, position = [], 0
        for secret in found:
            pieces += [name[position : secret.start], _replacement(secret.kind, name[secret.start : secret.end])]
            position = secret.end
        stored = "".join(pieces) + name[position:]
        # What is left of the name may turn the replacement into what looks like a credential, or be too long for an id.
        if len(stored) > max(len(name), _MAX_NAME_CHARS) or self._find_in_name(stored):
            stored = _replacement(found[0].kind, name)
        _log.info("An id or another name contained a credential. It is stored as %s.", stored)
        return stored

    def _find_in_name(self, name: str) -> list[FoundSecret]:
        known = [
            FoundSecret("known_value", start, start + len(value))
            for value in self._known
            if (start := name.find(value)) >= 0
        ]
        if len(name) < _MIN_TEXT_CHARS:
            return known[:1]
        formats = [secret for secret in find_secrets(name) if secret.kind not in _NOT_IN_NAMES]
        return drop_overlaps([*known, *formats]) if known or formats else []

    def _known_forms(self, text: str) -> tuple[str, ...]:
        """The forms in which a known value can occur in this text: escaped ones only if it has a backslash."""
        return self._known_and_escaped if "\\" in text else self._known

    def _replace(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            keys, items = [self._replace(key) for key in value], [self._replace(item) for item in value.values()]
            names = _distinct_names(list(value), [key for key, _ in keys])
            redacted = dict(zip(names, (item for item, _ in items), strict=True))
            return redacted, sum(count for _, count in (*keys, *items))
        if isinstance(value, _LISTS):
            whole, redacted_keys = _redact_split_keys(list(value))
            items = [self._replace(item) for item in whole]
            return [item for item, _ in items], redacted_keys + sum(count for _, count in items)
        return value, 0


@lru_cache(_CACHED_NAMES)
def _replacement(kind: str, secret: str) -> str:
    """What is stored instead of a credential in a name: slow to compute, against guessing of passwords."""
    digest = hashlib.scrypt(
        secret.encode("utf-8", "surrogatepass"), salt=_SCRYPT_SALT, n=_SCRYPT_COST, r=8, p=1, dklen=_DIGEST_BYTES
    )
    return f"redacted-{kind}-{digest.hex()}"


def _longest_first(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def _escaped_forms(value: str) -> set[str]:
    """A value as it is written inside JSON text, such as the arguments of a tool call, or in JSON text within that."""
    forms = {value}
    for _ in range(_MAX_LEVELS):
        written = {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in forms for ascii in (True, False)}
        # Some programs also escape what has a meaning in HTML.
        forms |= written | {form.translate(_HTML_ESCAPES) for form in written}
    return forms


def _distinct_names(original: list[Any], redacted: list[Any]) -> list[Any]:
    """The redacted keys of an object; those that would become equal to another key get a number."""
    used = {key for key, now in zip(original, redacted, strict=True) if key == now}
    numbers: Counter[Any] = Counter()
    names: list[Any] = []
    for key, now in zip(original, redacted, strict=True):
        name = now
        while key != now and name in used:
            numbers[now] += 1
            name = f"{now} ({numbers[now] + 1})"
        used.add(name)
        names.append(name)
    return names


def _redact_split_keys(items: list[Any]) -> tuple[list[Any], int]:
    """A list of lines without the private keys that span several of them, and how many there were."""
    lines = [item if isinstance(item, str) else "" for item in items]
    if not any(KEY_MARK in line for line in lines):
        return items, 0
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    kept, count = list(items), 0
    for start, end in find_private_keys("\n".join(lines)):
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        if first == last:
            continue
        count += 1
        kept[first] = lines[first][: start - starts[first]] + _PRIVATE_KEY
        for number in range(first + 1, last):
            kept[number] = _PRIVATE_KEY if lines[number] else items[number]
        kept[last] = _PRIVATE_KEY + lines[last][end - starts[last] :]
    return kept, count


def _overlapping_parts(text: str) -> Iterator[str]:
    """A text in parts, of which each has the beginning of the next: a search copies its text up to six times.

    No credential, together with the name before it, is as long as what two parts share.
    """
    for start in range(0, len(text), _PART_CHARS):
        yield text[start : start + _PART_CHARS + _SHARED_CHARS]


def _collect_texts(value: Any, texts: list[str], clean_keys: set[Any]) -> set[Any]:
    """Append every text in a value that is long enough for a credential to `texts`; return the keys among them.

    The keys of an object are left out if all of them are in `clean_keys`.
    """
    unvisited = [value]
    new_keys: set[Any] = set()
    seen = 0
    while unvisited:
        value = unvisited.pop()
        parts: Collection[Any]
        if type(value) is list:
            parts = value
        elif type(value) is dict and value.keys() <= clean_keys:
            parts = value.values()
        else:
            parts = _children(value)
            if type(value) is dict:
                new_keys.update(value)
        seen += len(parts)
        if seen > _MAX_PARTS:
            raise RecursionError("A value has too many parts, or contains itself.")
        for part in parts:
            if type(part) is str:
                if len(part) >= _MIN_VALUE_CHARS:
                    texts.append(part)
            elif type(part) not in _FLAT:
                unvisited.append(part)
    return new_keys


def _children(value: Any) -> Collection[Any]:
    if isinstance(value, _LISTS):
        return value
    if type(value) is dict or isinstance(value, Mapping):
        return (*value, *value.values())
    return (str.__str__(value),) if isinstance(value, str) else ()
