"""Runs every check over a text and sorts the findings.

A text passes through stages: escapes undone, letters folded, words separated. Each stage can map its offsets back to
the stage before. What an encoding or a disguise hides is collected into one further text and scanned once in the same
way.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple

from memoranda.safety import normalization
from memoranda.safety.classifier import classify
from memoranda.safety.dangerous_commands import MESSAGES as COMMAND_MESSAGES
from memoranda.safety.dangerous_commands import find_commands
from memoranda.safety.decoding import (
    ESCAPES,
    MAX_DISGUISED,
    HiddenPiece,
    find_disguised,
    find_encoded,
    find_spaced_out,
    unescape,
)
from memoranda.safety.finding import Finding, Severity
from memoranda.safety.hidden_characters import scan_characters
from memoranda.safety.markup import find_markup
from memoranda.safety.phrase_rules import can_form_phrase, find_phrases, separate_unspaced
from memoranda.safety.secrets import find_secrets
from memoranda.safety.sentence_rules import find_sentences
from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_attribute import lazy_attribute

# More findings would not change the verdict on a text, and only cost time.
MAX_FINDINGS = 16
_MAX_PHRASE_CHARS = 200
_BATCH = 64
_MAX_LAYERS = 3
# Each of these names may begin an assignment of a credential, which costs time to examine.
_CREDENTIAL_NAMES = ("pass", "token", "secret", "key", "pwd")
_MAX_CREDENTIAL_NAMES = 1200
_CHARS_PER_CREDENTIAL_NAME = 80
# Two ends of a sentence in a row: no phrase, run of one-word sentences or line reaches over them. The blank prevents
# that the separator completes a text that ends in half a line end.
_BETWEEN_TEXTS = " \n\n\n\n"
_BETWEEN_PIECES = f" {normalization.STOP}\n\n"


class TextStages:
    """A text after each stage, and the mapping of their offsets back to the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.unescaped, self._unescape_origin = unescape(text) if contains_any(ESCAPES, text) else (text, None)
        self.plain = normalization.fold(self.unescaped)
        self.spaced = normalization.blank_punctuation(self.plain)
        self.words = normalization.split_words(separate_unspaced(self.spaced))

    @lazy_attribute
    def _fold_origin(self) -> Callable[[int], int]:
        return normalization.fold_origin(self.unescaped)

    @lazy_attribute
    def _blanked_origin(self) -> Callable[[int], int]:
        return normalization.blanked_origin(self.plain)

    @lazy_attribute
    def _word_offsets(self) -> normalization.WordOffsets:
        return normalization.WordOffsets(self.spaced, self.words)

    def from_unescaped(self, start: int, end: int) -> tuple[int, int]:
        if self._unescape_origin is None:
            return start, end
        return self._unescape_origin(start), max(self._unescape_origin(end), self._unescape_origin(start) + 1)

    def from_plain(self, start: int, end: int) -> tuple[int, int]:
        return self.from_unescaped(self._fold_origin(start), self._fold_origin(max(start, end - 1)) + 1)

    def from_words(self, first: int, last: int) -> tuple[int, int]:
        start, end = self._word_offsets.begin(first), self._word_offsets.end(last - 1)
        return self.from_plain(self._blanked_origin(start), self._blanked_origin(max(start, end - 1)) + 1)


class _JoinedStages(TextStages):
    """Texts to scan in one pass, for whether anything is found: where in them has no meaning."""

    def __init__(self, parts: Sequence[TextStages]) -> None:
        self.text = _BETWEEN_TEXTS.join([part.text for part in parts])
        self.unescaped = _BETWEEN_TEXTS.join([part.unescaped for part in parts])
        self.plain = _BETWEEN_TEXTS.join([part.plain for part in parts])
        self.spaced = _BETWEEN_TEXTS.join([part.spaced for part in parts])
        # A sign that ends a sentence before a blank makes one more end of those that separate the texts.
        self.words = [
            word
            for part in parts
            for word in (*part.words, *[normalization.STOP] * (2 + part.plain.endswith(normalization.END_SIGNS)))
        ]
        self._unescape_origin = None


def scan(text: str, *, learned: bool = True) -> tuple[Finding, ...]:
    """Scan a text; findings are sorted by position and id, at most `MAX_FINDINGS`; an empty tuple when it is clean."""
    return _scan_whole(TextStages(text), learned) if text else ()


def _scan_whole(stages: TextStages, learned: bool) -> tuple[Finding, ...]:
    checks = chain(_scan_stages(stages), scan_characters(stages.text), _scan_hidden(stages, learned))
    found = list(islice(checks, MAX_FINDINGS)) or (list(_find_learned(stages)) if learned else [])
    return tuple(_sort_findings(found)) if found else ()


class ScanVerdicts(NamedTuple):
    """The findings of each text, and the words of all of them."""

    findings: list[tuple[Finding, ...]]
    words: set[str]

    @property
    def may_join(self) -> bool:
        """Whether their words together could form a phrase that a rule forbids."""
        return can_form_phrase(self.words)


def scan_each(texts: Sequence[str]) -> ScanVerdicts:
    """Scan many texts, at a fraction of the cost when most are clean.

    The rules scan a batch of texts in one pass, separated so that nothing can match across or be hidden by a
    neighbour. Only when something is found or disguised is each text of that batch scanned separately, so the findings
    are those of `scan`.
    """
    verdicts: list[tuple[Finding, ...]] = []
    words: set[str] = set()
    for start in range(0, len(texts), _BATCH):
        batch = list(map(TextStages, texts[start : start + _BATCH]))
        together = _JoinedStages(batch)
        words.update(together.words)
        if _is_plain(together):
            verdicts += [tuple(_find_learned(stages)) for stages in batch]
        else:
            verdicts += [_scan_whole(stages, learned=True) for stages in batch]
    return ScanVerdicts(verdicts, words)


def _is_plain(stages: TextStages) -> bool:
    """Whether the rules find nothing in a text and nothing in it is disguised, so only the classifier can object."""
    odd = chain(_scan_stages(stages), scan_characters(stages.text), _find_hidden_pieces(stages))
    return next(odd, None) is None


def scan_phrases(text: str) -> tuple[Finding, ...]:
    """Scan with the phrase rules only: enough for the joints of texts that were scanned separately."""
    return tuple(_find_phrases(TextStages(text))) if text else ()


def _find_phrases(stages: TextStages) -> Iterator[Finding]:
    for phrase in find_phrases(stages.words):
        if len("".join(stages.words[phrase.first : phrase.last])) <= _MAX_PHRASE_CHARS:
            span = stages.from_words(phrase.first, phrase.last)
            yield Finding(phrase.rule.id, phrase.rule.severity, span, phrase.rule.message)


def _find_sentences(stages: TextStages) -> Iterator[Finding]:
    """Judge the sentences of a text in which there is no forbidden phrase."""
    for match in islice(find_sentences(stages.plain, stages.words), MAX_FINDINGS):
        span = stages.from_words(match.first, match.last)
        yield Finding(match.rule.id, match.rule.severity, span, match.rule.message)


def _find_learned(stages: TextStages) -> Iterator[Finding]:
    """Classify a text in which no rule found anything."""
    if window := classify(stages.words):
        message = "The wording resembles known attacks on language models."
        yield Finding("learned_injection", Severity.MEDIUM, stages.from_words(window.first, window.last), message)


def _scan_stages(stages: TextStages) -> Iterator[Finding]:
    phrases = list(_find_phrases(stages))
    yield from phrases or _find_sentences(stages)
    for command in find_commands(stages.plain):
        span = stages.from_plain(command.start, command.end)
        yield Finding(command.rule.id, command.rule.severity, span, COMMAND_MESSAGES[command.rule.id])
    for mark in find_markup(stages.plain):
        yield Finding(mark.id, mark.severity, stages.from_plain(mark.start, mark.end), mark.message)
    yield from _find_credentials(stages)


def _find_credentials(stages: TextStages) -> Iterator[Finding]:
    """Credentials in clear; a flood of names that could introduce one is reported instead of being examined."""
    names = sum(map(stages.plain.count, _CREDENTIAL_NAMES))
    if names > max(_MAX_CREDENTIAL_NAMES, len(stages.text) // _CHARS_PER_CREDENTIAL_NAME):
        message = "The text names more passwords, keys and tokens than can be checked."
        yield Finding("hidden_text", Severity.MEDIUM, (0, len(stages.text)), message)
        return
    for secret in find_secrets(stages.text):
        kind = secret.kind.replace("_", " ")
        message = f"The text contains a credential ({kind})."
        yield Finding("secret_in_clear", Severity.HIGH, (secret.start, secret.end), message)


class _HiddenLayer(NamedTuple):
    """What one text hides, as one further text, and where each of its pieces was hidden in the original text."""

    stages: TextStages
    starts: list[int]
    spans: list[tuple[int, int]]

    def origin(self, offset: int) -> tuple[int, int]:
        return self.spans[min(bisect_right(self.starts, offset) - 1, len(self.spans) - 1)]


def _scan_hidden(stages: TextStages, learned: bool) -> Iterator[Finding]:
    """Scan what was encoded or disguised, layer by layer, and report it at the span where it was hidden."""
    layer: _HiddenLayer | None = None
    for _ in range(_MAX_LAYERS):
        layer, excess = _decode_layer(stages, layer)
        if excess:
            message = "The text contains more encoded or disguised text than can be checked."
            yield Finding("hidden_text", Severity.MEDIUM, excess, message)
        if layer is None:
            return
        stages = layer.stages
        found = list(_scan_stages(stages)) or (list(_find_learned(stages)) if learned else [])
        for finding in found:
            yield Finding(finding.id, finding.severity, layer.origin(finding.span[0]), finding.message)
        if found or excess:
            return


def _decode_layer(stages: TextStages, outer: _HiddenLayer | None) -> tuple[_HiddenLayer | None, tuple[int, int] | None]:
    """The next layer, if the text hides any, and the span of the first piece for which there was no room."""
    texts: list[str] = []
    spans: list[tuple[int, int]] = []
    room, excess = MAX_DISGUISED, None
    for piece, span in _find_hidden_pieces(stages):
        origin = outer.origin(span[0]) if outer else span
        room -= piece.end - piece.start
        if room < 0:
            excess = origin
            break
        texts.append(piece.undo())
        spans.append(origin)
    if not texts:
        return None, excess
    starts = list(accumulate((len(text) + len(_BETWEEN_PIECES) for text in texts), initial=0))
    return _HiddenLayer(TextStages(_BETWEEN_PIECES.join(texts)), starts, spans), excess


def _find_hidden_pieces(stages: TextStages) -> Iterator[tuple[HiddenPiece, tuple[int, int]]]:
    """Encoded and disguised parts, with their spans in the original text."""
    for piece in find_encoded(stages.unescaped):
        yield piece, stages.from_unescaped(piece.start, piece.end)
    for piece in chain(find_disguised(stages.plain, stages.words), find_spaced_out(stages.plain, stages.words)):
        yield piece, stages.from_plain(piece.start, piece.end)


def _sort_findings(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings; of overlapping findings of one kind only the first stays."""
    kept: list[Finding] = []
    ends: dict[str, int] = {}
    for finding in sorted(found, key=lambda item: (item.span[0], item.id, item.span[1])):
        if finding.span[0] >= ends.get(finding.id, -1):
            kept.append(finding)
            ends[finding.id] = max(finding.span[1], ends.get(finding.id, -1))
    return kept
