"""The stretch of a text that shows best why it was found, with every match marked >>>like this<<<."""

from collections.abc import Iterator
from typing import NamedTuple

from memoranda.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.index.tokenizer import TokenSpan, is_single_character, token_spans
from memoranda.recall.query import Query

OPEN, CLOSE, CUT = ">>>", "<<<", "…"
_LONGEST_TEXT = 200_000
_LONGEST_SNAP = 20
_FLAT = str.maketrans("\n\r\t\v\f", "     ")


class _Match(NamedTuple):
    """Where something that is looked for stands, and what."""

    start: int
    end: int
    what: str


def snippet(text: str, query: Query, width: int = 240) -> str:
    """At most `width` characters around the best cluster of matches, markers not counted; a text without one begins."""
    return excerpt(text, query, width).text


def excerpt(text: str, query: Query, width: int = 240) -> "Excerpt":
    """The snippet, and where its matches are."""
    text = text[:_LONGEST_TEXT]
    found = _matches(text, query)
    cluster = _best_cluster(found, width)
    start, end = _window(text, cluster, width)
    pieces = [CUT] if start else []
    at = start
    for match_start, match_end in _merged(found):
        left, right = max(match_start, start), min(match_end, end)
        if left < right:
            pieces += [text[at:left], OPEN, text[left:right], CLOSE]
            at = right
    pieces.append(text[at:end])
    if end < len(text):
        pieces.append(CUT)
    return Excerpt("".join(pieces).translate(_FLAT), cluster)


class Excerpt(NamedTuple):
    """A snippet, and where in the text its best cluster of matches begins; None when nothing in it matches."""

    text: str
    at: int | None


def match_spans(text: str, query: Query) -> list[tuple[int, int]]:
    """Where the matches are, in order."""
    return list(_merged(_matches(text, query)))


class _Wanted:
    """What to mark: whole sequences where they occur, else their tokens."""

    def __init__(self, query: Query) -> None:
        self.tokens: set[str] = set()
        self.prefixes: list[str] = []
        self.sequences: list[tuple[str, ...]] = []
        only_small = all(part.small for part in query.leaves)
        for part in query.leaves:
            if part.small and not only_small:
                continue
            self._add(part.pattern)
        self.loose = {term.token for term in query.terms}

    def _add(self, pattern: Pattern) -> None:
        match pattern:
            case Word(token):
                # A single character stands for every token that begins with it.
                (self.prefixes.append if is_single_character(token) else self.tokens.add)(token)
            case Prefix(token):
                self.prefixes.append(token)
            case Phrase(tokens):
                self.sequences.append(tokens)
            case And(parts) | Or(parts):
                for part in parts:
                    self._add(part)
            case Without(keep, _):
                self._add(keep)


def _matches(text: str, query: Query) -> list[_Match]:
    """Everything in the text that is looked for, in order."""
    wanted = _Wanted(query)
    found = list(token_spans(text))
    matches = list(_in_sequence(found, wanted.sequences))
    tokens = wanted.tokens
    if not matches and wanted.sequences:
        tokens = tokens | wanted.loose
    prefixes = tuple(wanted.prefixes)
    for span in found:
        for token in span.tokens:
            if token in tokens:
                matches.append(_Match(span.start, span.end, token))
            elif prefixes and token.startswith(prefixes):
                matches.append(_Match(span.start, _end_of(span.start, span.end, token, prefixes), prefixes[0]))
    matches.sort()
    return matches


def _end_of(start: int, end: int, token: str, prefixes: tuple[str, ...]) -> int:
    """Of a pair of characters of which one is looked for, only that one is marked."""
    single = is_single_character(token[0]) and any(len(prefix) == 1 and token.startswith(prefix) for prefix in prefixes)
    return start + 1 if single else end


def _in_sequence(found: list[TokenSpan], sequences: list[tuple[str, ...]]) -> Iterator[_Match]:
    """Where the tokens of a sequence follow each other."""
    if not sequences:
        return
    flat = [(token, span) for span in found for token in span.tokens]
    tokens = [token for token, _ in flat]
    for sequence in sequences:
        first, length = sequence[0], len(sequence)
        at = -1
        while True:
            try:
                at = tokens.index(first, at + 1)
            except ValueError:
                break
            if tuple(tokens[at : at + length]) == sequence:
                yield _Match(flat[at][1].start, flat[at + length - 1][1].end, " ".join(sequence))


def _best_cluster(found: list[_Match], width: int) -> int | None:
    """Where the stretch begins that holds the most different matches, then the most; the first of equals."""
    reach = width * 3 // 4
    best: tuple[int, int] = (0, 0)
    start: int | None = None
    counts: dict[str, int] = {}
    last = 0
    for match in found:
        while last < len(found) and found[last].end <= match.start + reach:
            counts[found[last].what] = counts.get(found[last].what, 0) + 1
            last += 1
        worth = (len(counts), sum(counts.values()))
        if worth > best or start is None:
            best, start = max(worth, best), match.start
        # A match longer than the reach was never counted.
        if counts.get(match.what, 0) > 1:
            counts[match.what] -= 1
        else:
            counts.pop(match.what, None)
    return start


def _window(text: str, cluster: int | None, width: int) -> tuple[int, int]:
    """Which stretch is shown: a quarter before the cluster, the rest behind; cut between words where one is near."""
    if len(text) <= width:
        return 0, len(text)
    # Room for the signs of a cut on either side.
    room = max(1, width - 2)
    start = max(0, min((cluster or 0) - width // 4, len(text) - room))
    if start:
        space = text.find(" ", start, start + _LONGEST_SNAP)
        if 0 <= space < (cluster or 0):
            start = space + 1
    end = min(len(text), start + room)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, end - _LONGEST_SNAP), end)
        if space > (cluster or 0) + width // 4:
            end = space
    return start, end


def _merged(found: list[_Match]) -> Iterator[tuple[int, int]]:
    """Matches that touch or overlap are one mark."""
    at: tuple[int, int] | None = None
    for start, end, _ in found:
        if at is not None and start <= at[1]:
            at = (at[0], max(at[1], end))
        else:
            if at is not None:
                yield at
            at = (start, end)
    if at is not None:
        yield at
