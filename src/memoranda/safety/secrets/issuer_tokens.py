"""Finds tokens in the format of an issuer.

Every issuer's token has a run of at least twenty letters, digits, '_' and '-', but for the few with a mark of their
own. Such runs are rare in ordinary text, so only they are compared with the formats, each format at the places where
its beginning stands.
"""

import re
from collections.abc import Iterator
from functools import cache

from memoranda.safety.secrets.found_secret import FoundSecret
from memoranda.safety.secrets.issuer_formats import EMBEDDED_FORMATS, FORMATS, MARKED_FORMATS
from memoranda.safety.secrets.private_keys import ENCODED_MARK, KEY_MARK, PUTTY_MARK, find_private_keys
from memoranda.safety.secrets.value_checks import looks_random
from memoranda.safety.substrings import contains_any

_RUN = b"a" * 20
# After it, the first letter of a run is part of an escape.
_BACKSLASH = ord("\\")
_DOT = ord(".")
# A prefix may end with a sign that is not part of the run; then this much of the text around the run counts too.
_SIGNS_BEFORE = b"./:~"
# How a prefix ends that is followed by a run, and what such a prefix may contain.
_PREFIX_ENDS = (
    b"SG.", b"hvs.", b"hvb.", b"hvr.", b"sl.", b"sl.u.", b"ya29.", b"st.", b"pat.", b"sat.", b"AQ.", b"v1.",
    b"secret-token:", b"sha256~", b"Q~", *(b"%d:" % digit for digit in range(10)),
)  # fmt: skip
_PREFIX_PARTS = (b"dp.", b"dt0", b"pat")
_MAX_PREFIX_CHARS = 48
_BEFORE_RUN = 80
_AFTER_RUN = 200
# A run this long may have the mark of its issuer in the middle.
_MIN_MARKED_RUN = 36
_INNER_MARKS = (b"AZDO", b"JQQJ99", b"-us", b"_mmk")
_DISCORD_HEADS = b"MNO"
_CAPITAL_OR_DIGIT = re.compile(rb"[A-Z0-9]").search


def _by_head() -> dict[bytes, tuple[tuple[str, str], ...]]:
    """The formats by the first two characters of their tokens."""
    heads: dict[bytes, dict[tuple[str, str], None]] = {}
    for kind, hints, pattern in FORMATS:
        for hint in hints:
            heads.setdefault(hint[:2].encode(), {})[kind, pattern] = None
    return {head: tuple(formats) for head, formats in heads.items()}


_FORMATS_BY_HEAD = _by_head()
_HEADS = frozenset((*_FORMATS_BY_HEAD, PUTTY_MARK[:2].encode(), ENCODED_MARK[:2].encode()))


_MARKED_BY_CHAR = tuple(
    (rare, tuple((mark, kind, pattern) for char, mark, kind, pattern in MARKED_FORMATS if char == rare))
    for rare in dict.fromkeys(rare for rare, _, _, _ in MARKED_FORMATS)
)


def find_issuer_tokens(text: str, stored: bytes, runs: bytes) -> list[FoundSecret]:
    """The tokens and private keys in a text.

    `stored` is the text as ASCII bytes, one for each character; `runs` has an `a` for each letter, digit, '_' and '-',
    and spaces for the rest.
    """
    start = runs.find(_RUN)
    has_key = "K" in text and KEY_MARK in text
    found: list[FoundSecret] = []
    if start >= 0:
        candidates = _candidates(stored, runs, start)
        if candidates:
            found += _match_candidates(blank_escapes(text), stored, candidates)
            has_key = has_key or (PUTTY_MARK in text or ENCODED_MARK in text)
    for rare, formats in _MARKED_BY_CHAR:
        if rare in text:
            for mark, kind, pattern in formats:
                if mark in text:
                    found += _find_all(kind, pattern, blank_escapes(text), 0, len(text))
    if has_key:
        found += [FoundSecret("private_key", *span) for span in find_private_keys(text)]
    return found


def blank_escapes(text: str) -> str:
    """A text of the same length whose escaped breaks are spaces: in a JSON string, a token may follow an `n`."""
    if "\\" not in text:
        return text
    return text.replace("\\n", "  ").replace("\\r", "  ").replace("\\t", "  ")


def _candidates(stored: bytes, runs: bytes, start: int) -> list[tuple[int, int, bool]]:
    """The runs that may be a token: where they begin and end, and whether the text around them matters."""
    found = []
    while start >= 0:
        end = runs.find(b" ", start)
        end = end if end >= 0 else len(stored)
        before = stored[start - 1] if start else 0
        if before == _BACKSLASH:
            start += 1
        has_surroundings = (
            before in _SIGNS_BEFORE and _follows_prefix(stored[max(0, start - _BEFORE_RUN) : start])
        ) or (stored[start] in _DISCORD_HEADS and stored[end : end + 1] == b".")
        if has_surroundings or end - start >= _MIN_MARKED_RUN or stored[start : start + 2] in _HEADS:
            is_candidate = has_surroundings or _has_mark(stored[start:end])
        else:
            is_candidate = stored.find(b"-", start, end) > 0 and _has_head(stored[start:end])
        if is_candidate and _CAPITAL_OR_DIGIT(stored, start, end):
            found.append((start, end, has_surroundings or end - start >= _MIN_MARKED_RUN))
        start = runs.find(_RUN, end)
    return found


def _has_mark(run: bytes) -> bool:
    """Whether a run begins like an issuer's token, or has the mark of an issuer in it."""
    return _has_head(run) or any(mark in run for mark in _INNER_MARKS)


def _follows_prefix(before: bytes) -> bool:
    """Whether the text before a run ends a prefix; a '/' does only in the address of a host or a webhook."""
    if before.endswith(b"/"):
        return before.endswith(b"//") or b"hook" in before
    if before.endswith(_PREFIX_ENDS):
        return True
    prefix = before[-_MAX_PREFIX_CHARS:]
    return any(part in prefix for part in _PREFIX_PARTS)


def _has_head(run: bytes) -> bool:
    """Whether a run, or a part of it after a '-', begins like an issuer's token."""
    return run[:2] in _HEADS or not _HEADS.isdisjoint([part[:2] for part in run.split(b"-")])


def _match_candidates(text: str, stored: bytes, candidates: list[tuple[int, int, bool]]) -> Iterator[FoundSecret]:
    """The tokens at the candidates; `text` has no escaped breaks."""
    regions: list[tuple[int, int]] = []
    for start, end, has_surroundings in candidates:
        position, done = start, start
        while position >= 0:
            if position >= done:
                for kind, pattern in _FORMATS_BY_HEAD.get(stored[position : position + 2], ()):
                    match = _compiled(pattern).match(text, position)
                    if match and _is_token(kind, match[0]):
                        yield FoundSecret(kind, position, match.end())
                        done = match.end()
                        break
            position = stored.find(b"-", position, end) + 1 or -1
        if has_surroundings:
            _add_region(regions, max(0, start - _BEFORE_RUN), min(len(text), end + _AFTER_RUN))
    for start, end in regions:
        part = text[start:end]
        for kind, hints, pattern in EMBEDDED_FORMATS:
            if contains_any(hints, part):
                yield from _find_all(kind, pattern, text, start, end)


def _add_region(regions: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a part of the text, joined with the last one if they overlap, so that no character is searched twice."""
    if regions and start <= regions[-1][1]:
        start = regions.pop()[0]
    regions.append((start, end))


def _find_all(kind: str, pattern: str, text: str, start: int, end: int) -> Iterator[FoundSecret]:
    for match in _compiled(pattern).finditer(text, start, end):
        if _is_token(kind, match[0]):
            yield FoundSecret(kind, match.start(), match.end())


def _is_token(kind: str, token: str) -> bool:
    return kind in ("json_web_token", "sentry_dsn") or looks_random(token)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
