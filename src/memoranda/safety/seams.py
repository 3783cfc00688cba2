"""Finds attacks that are split over two texts: harmless separately, and an order or a command when read together.

A text in a prompt follows another one, so the author of two of them (an entry and the profile, a project file and the
description of a skill) can put one half into each. Only what spans the seam counts: each text is scanned by itself
elsewhere.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memoranda.safety.classifier import classify
from memoranda.safety.dangerous_commands import CommandHints, can_have_command, command_hints
from memoranda.safety.phrase_rules import can_begin_phrase, can_form_from, can_form_phrase, phrase_symbols
from memoranda.safety.scanner import TextStages, scan
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later

# How much of the end of the one text and of the start of the other is read together.
_REACH = 240
# Nothing continues after the end of a sentence, except an address or a command.
_ENDS_SENTENCE = compile_later(r"[.!?。！？…][\"'”’)\]]*\Z")
_MAY_CONTINUE = compile_later(r"://\S*\Z|\|[^\n]{0,40}\Z")
# The last word of a text may be the first half of an address or of something encoded.
_IS_HALF_WORD = compile_later(r"(?:://\S*|[A-Za-z0-9+/=_-]{20,})\Z")
# What the words do not show: a pipe, a tag or a comment that the second text may complete, and what it may complete.
_IS_OPEN = compile_later(r"(?:\|[^\n]{0,40}|<[^>\n]{0,100}|<!--[^>]*)\Z")
_COMPLETES = (
    *("|", "$", "/dev/tcp", "authorized_keys", "id_", "/shadow"),
    *(".ssh", ".env", ".aws", ".netrc", ".git-", ".kube", ".npmrc", ".pypirc", ".pgpass", ".gnupg", ".docker"),
)
# A download that is piped into a shell is often documented; one that is put together from two texts never is.
_DOWNLOAD_AND_RUN = compile_later(
    r"\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,200}\|\s{0,3}(?:sudo\s)?(?:ba|z|da|k)?sh\b", re.IGNORECASE
)
# Without both of them there is no such download.
_DOWNLOAD_SIGNS = (r"\|", "curl|wget|iwr|invoke-webrequest")
_NO_HINTS: CommandHints = frozenset()
# Two texts that are put together may look like a credential by chance.
_IGNORED = frozenset({"secret_in_clear", "hidden_text"})
_LEARNED = "learned_injection"
_INJECTION = "prompt_injection"
# Two texts that are not neighbours: how much of each is read, and what no two ordinary notes form by chance.
_NEAR = 80
_UNMISTAKABLE = frozenset({_INJECTION, "download_and_run", "exfiltration_command", "reverse_shell"})
_BEGINS_COMMAND = compile_later(
    r"\b(?:curl|wget|iwr|invoke-webrequest|printenv|env|cat|bash|z?sh|ncat?|tar|scp|base64|python3?|perl|powershell)\b",
    re.IGNORECASE,
)
_CONTINUES_COMMAND = compile_later(
    r"://|\A(?:sudo\s)?(?:ba|z|da|k)?sh\b|\A(?:curl|wget|ncat?|python3?|perl|base64)\b", re.IGNORECASE
)


class _JoinedPair(NamedTuple):
    """The end of a text and the start of the next one, as a reader may join them; the second begins at `start`."""

    text: str
    end: int
    start: int


class DistantPair(NamedTuple):
    """Two texts by their numbers, and the sorted ids of what they form."""

    first: int
    second: int
    ids: tuple[str, ...]


def scan_seams(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
    """For each pair of a text and the one that is read after it, the sorted ids of what is split over the two.

    Half of an attack is suspicious with any neighbour. So what only the learned model finds does not count where a
    rule finds the other half elsewhere.
    """
    found = [_scan_pair(before[-_REACH:].rstrip(), after[:_REACH].lstrip()) for before, after in pairs]
    halves = {text for pair, names in zip(pairs, found, strict=True) if names - {_LEARNED} for text in pair}
    return [
        () if names == {_LEARNED} and not halves.isdisjoint(pair) else tuple(sorted(names))
        for pair, names in zip(pairs, found, strict=True)
    ]


def scan_distant(texts: Sequence[str]) -> list[DistantPair]:
    """The texts that form an unmistakable attack with another one, wherever the two are.

    A reader may skip what is between them. A short text without the end of a sentence is read with the one before it,
    so that an attack in three pieces is found, too. Starts that the rules cannot tell apart are judged together, so
    the number of ordinary texts does not matter to each of them.
    """
    starts = [text[:_NEAR].lstrip() for text in texts]
    alike: dict[_StartTraits, list[int]] = {}
    for number, start in enumerate(starts):
        alike.setdefault(_start_traits(start), []).append(number)
    found = []
    for first, text in enumerate(texts):
        end = text[-_NEAR:].rstrip()
        if first and len(end) < _NEAR and not _is_finished(end) and not _is_finished(texts[first - 1].rstrip()):
            end = f"{texts[first - 1]} {end}"[-_NEAR:].lstrip()
        traits = _end_traits(end)
        if traits is None:
            continue
        seconds = [number for start, numbers in alike.items() if _may_form(traits, start) for number in numbers]
        for second in sorted(seconds):
            names = _scan_unmistakable(end, starts[second]) if second != first else frozenset()
            if names:
                found.append(DistantPair(first, second, tuple(sorted(names))))
    return found


class _EndTraits(NamedTuple):
    """What the rules can use of the end of a text: None where it begins no phrase, or no command.

    Half of something encoded may begin any command.
    """

    symbols: frozenset[str] | None
    hints: CommandHints | None
    is_encoded: bool


class _StartTraits(NamedTuple):
    """The same of the start of a text, and whether it can continue a command."""

    symbols: frozenset[str]
    hints: CommandHints
    continues: bool


@lru_cache(maxsize=2_000)
def _end_traits(end: str) -> _EndTraits | None:
    """None if no unmistakable attack can begin there."""
    if _is_finished(end):
        return None
    words, is_command = _words_of(end), _begins_command(end)
    symbols = phrase_symbols(words) if can_begin_phrase(words, _INJECTION) else None
    if symbols is None and not is_command:
        return None
    last_word = end.rsplit(None, 1)[-1]
    is_encoded = bool(_IS_HALF_WORD.search(end)) and "://" not in last_word
    return _EndTraits(symbols, _hints_of(f"{end} ") if is_command else None, is_encoded)


@lru_cache(maxsize=2_000)
def _start_traits(start: str) -> _StartTraits:
    continues = contains_any(_COMPLETES, start) or bool(_CONTINUES_COMMAND.search(start))
    # A blank is put between the two texts.
    hints = _hints_of(f" {start}") if continues else _NO_HINTS
    return _StartTraits(phrase_symbols(_words_of(start)), hints, continues)


def _hints_of(text: str) -> CommandHints:
    plain = TextStages(text).plain
    return command_hints(plain) | {(sign, 0) for sign in _DOWNLOAD_SIGNS if re.search(sign, plain)}


@lru_cache(maxsize=10_000)
def _may_form(end: _EndTraits, start: _StartTraits) -> bool:
    """Whether the end of a text and the start of another one can form an unmistakable attack; most cannot."""
    if end.hints is not None and start.continues:
        hints = end.hints | start.hints
        is_download = all((sign, 0) in hints for sign in _DOWNLOAD_SIGNS)
        if end.is_encoded or is_download or can_have_command(hints, _UNMISTAKABLE):
            return True
    return end.symbols is not None and can_form_from(end.symbols | start.symbols, _INJECTION)


def _is_finished(end: str) -> bool:
    """Whether nothing continues after this end of a text."""
    return not end or bool(_ENDS_SENTENCE.search(end) and not _MAY_CONTINUE.search(end))


def _begins_command(end: str) -> bool:
    return any(pattern.search(end) for pattern in (_BEGINS_COMMAND, _IS_HALF_WORD, _IS_OPEN))


@lru_cache(maxsize=2_000)
def _scan_pair(end: str, start: str) -> frozenset[str]:
    """The ids of what the end of a text and the start of another one form."""
    if _is_finished(end) or not start:
        return frozenset()
    if not _matches_rules(end, start) and classify([*_words_of(end), *_words_of(start)]) is None:
        return frozenset()
    return frozenset(name for joined in _join(end, start) for name in _find_across(joined))


@lru_cache(maxsize=10_000)
def _scan_unmistakable(end: str, start: str) -> frozenset[str]:
    """The unmistakable attacks among them."""
    return frozenset(name for joined in _join(end, start) for name in _find_across(joined)) & _UNMISTAKABLE


def _matches_rules(end: str, start: str) -> bool:
    """Whether the two can form what a rule forbids; most pairs cannot."""
    if _IS_HALF_WORD.search(end) or _IS_OPEN.search(end) or contains_any(_COMPLETES, start):
        return True
    return can_form_phrase([*_words_of(end), *_words_of(start)])


def _join(end: str, start: str) -> Iterator[_JoinedPair]:
    for joint in (" ", "") if _IS_HALF_WORD.search(end) else (" ",):
        yield _JoinedPair(f"{end}{joint}{start}", len(end), len(end) + len(joint))


def _find_across(joined: _JoinedPair) -> Iterator[str]:
    """The ids of findings that begin in the first text and end in the second."""
    text, end, start = joined
    for finding in scan(text):
        spans_both = finding.span[0] < end and finding.span[1] > start and finding.id not in _IGNORED
        # The learned model judges many words at once, so it may object to one half only.
        if spans_both and (finding.id != _LEARNED or not (scan(text[:end]) or scan(text[start:]))):
            yield finding.id
    if any(match.start() < end and match.end() > start for match in _DOWNLOAD_AND_RUN.finditer(text)):
        yield "download_and_run"


@lru_cache(maxsize=2_000)
def _words_of(text: str) -> tuple[str, ...]:
    return tuple(TextStages(text).words)
