"""Replaces the passages of a text that the scanner objects to with placeholders; the rest stays as it is.

A passage is a run of whole lines of a file; in other texts, whose lines may be long paragraphs, it is a run of
sentences. Lines and sentences are judged separately and together, because a phrase can be split over several of them.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from memoranda.safety.finding import Finding
from memoranda.safety.scanner import scan, scan_each, scan_phrases
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later

# Lines that are harmless separately can form a phrase once others are withheld; after this many rounds the whole text
# is withheld. Long texts get fewer rounds, so that no file delays the start of a session.
_MIN_ROUNDS, _MAX_ROUNDS = 4, 24
_MAX_SCANNED = 4_000_000
# More distinct lines than this would take too long to scan one by one.
_MAX_LINES = 20_000
# A longer line is withheld by the sentence.
_MAX_WHOLE_LINE = 160
_SENTENCE_END = compile_later(r"(?<=[.!?…])\s+(?=[^\sa-z])|(?<=[。！？])")
# How many texts are remembered as clean. A conversation is shown again and again, and scanning it costs the most.
_MAX_CLEAN = 2_000
_MAX_CLEAN_CHARS = 10_000
# Names, timestamps and roles between two texts do not keep a reader from joining them.
_NAME = compile_later(r"user|assistant|tool|\S*\d\S*")
# A third of the texts of an answer are timestamps, which say nothing else.
_TIMESTAMP = compile_later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
# How much of the end of a text and of the start of the next one can form a phrase, and what separates the two.
_REACH = 90
_NOT_JOINED = " \n\n\n\n"


@dataclass(frozen=True, slots=True)
class WithheldPassage:
    """Lines that are withheld: the number of the first, their text, and the sorted ids of the findings."""

    first_line: int
    text: str
    findings: tuple[str, ...]

    @property
    def placeholder(self) -> str:
        return f"[withheld: {', '.join(self.findings)}]"


@dataclass(frozen=True, slots=True)
class ScreenedText:
    """A text as it may be shown, and the passages that placeholders replace in it."""

    text: str
    passages: tuple[WithheldPassage, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """The ids of everything that was found, sorted."""
        return tuple(sorted({finding for passage in self.passages for finding in passage.findings}))


def withhold_passages(
    text: str,
    allowed: Callable[[str], frozenset[str]] | None = None,
    read_as: Callable[[str], str] = str,
) -> ScreenedText:
    """Replace the lines that the scan objects to, separately or together with others, with placeholders.

    `allowed` returns the findings that a person has accepted in a passage. `read_as` changes each line for the scan,
    for texts that may say something which would be suspicious elsewhere.
    """
    lines = text.split("\n")
    # A line that ends in CR LF is a line like any other.
    passages = _to_passages(lines, _find_blocked([read_as(line.removesuffix("\r")) for line in lines]))
    if allowed is not None:
        passages = [passage for passage in passages if not set(passage.findings) <= allowed(passage.text)]
    if not passages:
        return ScreenedText(text)
    shown: list[str] = []
    line = 0
    for passage in passages:
        shown += [*lines[line : passage.first_line], passage.placeholder]
        line = passage.first_line + passage.text.count("\n") + 1
    return ScreenedText("\n".join([*shown, *lines[line:]]), tuple(passages))


@dataclass(frozen=True, slots=True)
class ScreenedTexts:
    """Several texts as they may be shown, and the passages that placeholders replace in them."""

    texts: tuple[str, ...]
    passages: tuple[WithheldPassage, ...] = ()


def withhold_in_texts(texts: Sequence[str]) -> ScreenedTexts:
    """Withhold passages in texts that are read one after the other, over which a phrase can be split.

    Most texts are clean, and are only scanned when they are seen for the first time.
    """
    if _are_clean(texts):
        return ScreenedTexts(tuple(texts))
    screened = _withhold_pieces(texts, _split_sentences)
    if _are_clean(screened.texts):
        return screened
    # A finding needed several sentences of one line, so whole lines are withheld.
    return _withhold_pieces(texts, _split_lines)


class _Piece(NamedTuple):
    """A part of a text that is withheld or shown as a whole, and what separates it from the next one."""

    text: str
    separator: str


def _split_lines(text: str) -> Iterator[_Piece]:
    for line in text.split("\n"):
        yield _Piece(line, "\n")


def _split_sentences(text: str) -> Iterator[_Piece]:
    """The lines of a text, and the sentences of the long ones."""
    for line in text.split("\n"):
        start = 0
        for end in _SENTENCE_END.finditer(line) if len(line) > _MAX_WHOLE_LINE else ():
            yield _Piece(line[start : end.start()], end[0])
            start = end.end()
        yield _Piece(line[start:], "\n")


def _withhold_pieces(texts: Sequence[str], split: Callable[[str], Iterator[_Piece]]) -> ScreenedTexts:
    pieces = [list(split(text)) for text in texts]
    # What a reader joins comes first, and then the names that would separate it.
    order = sorted(range(len(texts)), key=lambda index: not _is_prose(texts[index]))
    blocked = _find_blocked([piece.text.removesuffix("\r") for index in order for piece in pieces[index]])
    shown = list(texts)
    passages: list[WithheldPassage] = []
    number = 0
    for index in order:
        parts: list[str] = []
        for is_blocked, run in groupby(enumerate(pieces[index], number), lambda numbered: numbered[0] in blocked):
            numbers, members = zip(*run, strict=True)
            body, end = "".join(piece.text + piece.separator for piece in members), members[-1].separator
            if is_blocked:
                ids = set[str]().union(*(blocked[each] for each in numbers))
                passages.append(WithheldPassage(numbers[0], body.removesuffix(end), tuple(sorted(ids))))
                body = passages[-1].placeholder + end
            parts.append(body)
        number += len(pieces[index])
        shown[index] = "".join(parts).removesuffix("\n")
    return ScreenedTexts(tuple(shown), tuple(passages))


_clean_texts: dict[str, None] = {}


def _are_clean(texts: Sequence[str]) -> bool:
    """Whether the scan finds nothing in any of the texts, and no phrase that is split over two of them."""
    distinct = dict.fromkeys(text for text in texts if text.strip() and not _TIMESTAMP.fullmatch(text))
    unknown = [text for text in distinct if text not in _clean_texts]
    findings = scan_each(unknown).findings
    if len(_clean_texts) + len(unknown) > _MAX_CLEAN:
        _clean_texts.clear()
    clean = (text for text, found in zip(unknown, findings, strict=True) if not found)
    _clean_texts.update(dict.fromkeys(text for text in clean if len(text) <= _MAX_CLEAN_CHARS))
    return not any(findings) and not _has_split_phrase(texts)


def _is_prose(text: str) -> bool:
    return bool(text) and not _NAME.fullmatch(text)


def _has_split_phrase(texts: Sequence[str]) -> bool:
    prose = list(filter(_is_prose, texts))
    ends = [
        text if len(text) <= 2 * _REACH else f"{text[:_REACH]}{_NOT_JOINED}{text[-_REACH:]}"
        for text in (prose if len(prose) > 1 else ())
    ]
    return bool(scan_phrases("\n".join(ends)))


class _BlockedLines:
    """The numbers of the lines to withhold, and the ids of what was found in each."""

    def __init__(self) -> None:
        self.ids: dict[int, set[str]] = {}

    def add(self, number: int, findings: Iterable[Finding]) -> None:
        self.ids.setdefault(number, set()).update(finding.id for finding in findings)

    def add_all(self, findings: Sequence[Finding], lines: Sequence[str]) -> None:
        """Add findings in the lines joined together; one that spans several lines blocks each of them."""
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        for finding in findings:
            first, last = (bisect_right(starts, at) - 1 for at in (finding.span[0], finding.span[1] - 1))
            for number in range(first, last + 1):
                self.add(number, [finding])

    def blank(self, lines: Sequence[str]) -> list[str]:
        return ["" if number in self.ids else line for number, line in enumerate(lines)]


def _find_blocked(lines: Sequence[str]) -> dict[int, set[str]]:
    """The numbers of the lines in which the scan finds something, and the ids of what it finds."""
    distinct = list(dict.fromkeys(line for line in lines if line.strip()))
    if len(distinct) > _MAX_LINES:
        return {number: {"hidden_text"} for number in range(len(lines))}
    blocked = _BlockedLines()
    # Together first: a phrase over several lines blocks all of them, not only the one that is suspicious separately.
    blocked.add_all(scan("\n".join(lines)), lines)
    verdicts = dict(zip(distinct, scan_each(distinct).findings, strict=True))
    for number, line in enumerate(lines):
        if findings := verdicts.get(line):
            blocked.add(number, findings)
    if _block_the_rest(blocked, lines):
        return blocked.ids
    every_id = set[str]().union(*blocked.ids.values())
    return {number: every_id for number in range(len(lines))}


def _block_the_rest(blocked: _BlockedLines, lines: Sequence[str]) -> bool:
    """Blank what is blocked and scan the rest, until nothing more is found; False when that takes too many rounds.

    One scan reports a limited number of findings, and blanking lines can bring the words of a phrase together.
    """
    affordable = min(_MAX_ROUNDS, _MAX_SCANNED // (sum(map(len, lines)) + 1))
    for _ in range(max(_MIN_ROUNDS, affordable)):
        unblocked = blocked.blank(lines)
        findings = scan("\n".join(unblocked))
        if not findings:
            return True
        blocked.add_all(findings, unblocked)
    return False


def _to_passages(lines: Sequence[str], blocked: dict[int, set[str]]) -> list[WithheldPassage]:
    """Blocked lines that follow each other are one passage."""
    found: list[WithheldPassage] = []
    for _, run in groupby(enumerate(sorted(blocked)), lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        ids = set[str]().union(*(blocked[number] for number in numbers))
        found.append(WithheldPassage(numbers[0], "\n".join(lines[number] for number in numbers), tuple(sorted(ids))))
    return found
