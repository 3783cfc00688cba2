"""Excerpts of a text around the matches of a query, and the curated entries that share words with a question."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memoranda.search.index.postings import And, Or, Pattern, Phrase, Prefix, Without, Word
from memoranda.search.index.tokenizer import TokenSpan, is_single_character, token_spans, tokenize
from memoranda.search.query import Query, content_words

OPEN, CLOSE, CUT = ">>>", "<<<", "…"
_MAX_TEXT = 200_000
_WIDTH = 240
_MAX_SNAP = 20
_FLAT = str.maketrans("\n\r\t\v\f", "     ")
# The hints without which there is no sign of a kind, the signs, and what stays of them. Underscores stay, because names
# in code begin and end with them, and so does a link with a match in its address.
_MARKDOWN = (
    (("",), re.compile(r"^[ \t]*(?:```[^\n`]*|[ \t|:=*_-]{3,})$", re.MULTILINE), ""),
    (("# ", "> "), re.compile(r"^[ \t]*(?:#{1,6} |(?:> )+)", re.MULTILINE), ""),
    (("* ", "+ "), re.compile(r"^([ \t]*)[*+] ", re.MULTILINE), r"\1- "),
    (("](",), re.compile(r"!?\[([^\[\]\n]*)\]\((?:[^()\s>]|\([^()\s>]*\))*\)"), r"\1"),
    (("**", "~~"), re.compile(r"(\*\*|~~)(?=\S)([^\n]+?)(?<=\S)\1"), r"\2"),
    (("*",), re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (("`",), re.compile(r"(`+)([^`\n]+)\1"), r"\2"),
)


class _Match(NamedTuple):
    """Where in a text a token or sequence of the query matches."""

    start: int
    end: int
    term: str


def excerpt(text: str, query: Query, width: int = _WIDTH) -> "Excerpt":
    """At most `width` characters around the best cluster of matches, not counting marks; without matches, the start."""
    text = text[:_MAX_TEXT]
    found = _find_matches(text, query)
    cluster = _best_cluster(found, width)
    start, end = _choose_window(text, cluster, width)
    pieces = [CUT] if start else []
    at = start
    for match_start, match_end in _merge_overlaps(found):
        left, right = max(match_start, start), min(match_end, end)
        if left < right:
            pieces += [text[at:left], OPEN, text[left:right], CLOSE]
            at = right
    pieces.append(text[at:end])
    if end < len(text):
        pieces.append(CUT)
    return Excerpt(without_markdown("".join(pieces)).translate(_FLAT), cluster)


def best_match(text: str, query: Query) -> int:
    """Where in a text its best cluster of matches begins; 0 if nothing matches."""
    return _best_cluster(_find_matches(text[:_MAX_TEXT], query), _WIDTH) or 0


def without_markdown(text: str) -> str:
    """A text without the signs of Markdown for headings, emphasis, code, links, quotes and tables."""
    for hints, pattern, rest in _MARKDOWN:
        text = pattern.sub(rest, text) if any(map(text.__contains__, hints)) else text
    return text


class Excerpt(NamedTuple):
    """A snippet, and where in the text its best cluster of matches begins; None if nothing matches."""

    text: str
    at: int | None


def match_spans(text: str, query: Query) -> list[tuple[int, int]]:
    """Where the matches are, in order."""
    return _merge_overlaps(_find_matches(text, query))


class _Marks:
    """What to mark: whole phrases where they occur, else their tokens."""

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
                # A single character matches every token that begins with it.
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


def _find_matches(text: str, query: Query) -> list[_Match]:
    """All matches of the query in the text, in order."""
    marks = _Marks(query)
    tokens, prefixes = marks.tokens, tuple(marks.prefixes)
    spans = list(token_spans(text, None if marks.sequences or prefixes else tokens))
    matches = list(_find_sequences(spans, marks.sequences))
    if not matches and marks.sequences:
        tokens = tokens | marks.loose
    for span in spans:
        for token in span.tokens:
            if token in tokens:
                matches.append(_Match(span.start, span.end, token))
            elif prefixes and token.startswith(prefixes):
                matches.append(_Match(span.start, _match_end(span.start, span.end, token, prefixes), prefixes[0]))
    matches.sort()
    return matches


def _match_end(start: int, end: int, token: str, prefixes: tuple[str, ...]) -> int:
    """The end of the mark; in a pair of characters, only the one that the query names is marked."""
    single = is_single_character(token[0]) and any(len(prefix) == 1 and token.startswith(prefix) for prefix in prefixes)
    return start + 1 if single else end


def _find_sequences(spans: list[TokenSpan], sequences: list[tuple[str, ...]]) -> Iterator[_Match]:
    """Where the tokens of a phrase follow each other."""
    if not sequences:
        return
    flat = [(token, span) for span in spans for token in span.tokens]
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


def _best_cluster(matches: list[_Match], width: int) -> int | None:
    """The start of the window with the most different terms, then the most matches; the first of equals."""
    reach = width * 3 // 4
    best: tuple[int, int] = (0, 0)
    start: int | None = None
    counts: dict[str, int] = {}
    last = 0
    for match in matches:
        while last < len(matches) and matches[last].end <= match.start + reach:
            counts[matches[last].term] = counts.get(matches[last].term, 0) + 1
            last += 1
        worth = (len(counts), sum(counts.values()))
        if worth > best or start is None:
            best, start = max(worth, best), match.start
        # A match longer than the reach was never counted.
        if counts.get(match.term, 0) > 1:
            counts[match.term] -= 1
        else:
            counts.pop(match.term, None)
    return start


def _choose_window(text: str, cluster: int | None, width: int) -> tuple[int, int]:
    """The part to show: a quarter before the cluster, the rest after it; cut between words if one ends nearby."""
    if len(text) <= width:
        return 0, len(text)
    # Room for a cut mark on either side.
    room = max(1, width - 2)
    start = max(0, min((cluster or 0) - width // 4, len(text) - room))
    if start:
        space = text.find(" ", start, start + _MAX_SNAP)
        if 0 <= space < (cluster or 0):
            start = space + 1
    end = min(len(text), start + room)
    if end < len(text):
        space = text.rfind(" ", max(start + 1, end - _MAX_SNAP), end)
        if space > (cluster or 0) + width // 4:
            end = space
    return start, end


def _merge_overlaps(matches: list[_Match]) -> list[tuple[int, int]]:
    """Merges matches that touch or overlap into one mark."""
    merged: list[tuple[int, int]] = []
    for start, end, _ in matches:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def entries_matching(question: str, entries: Iterable[str]) -> list[str]:
    """The entries that share words with a question, those that share most first; equal ones keep their order."""
    subject = content_words(question) or frozenset(tokenize(question))
    shared = [(len(subject.intersection(tokenize(entry))), entry) for entry in entries]
    return [entry for count, entry in sorted(shared, key=lambda pair: -pair[0]) if count]
