"""Finds entries that say the same words as another one, or stand in it as whole sentences.

What one word more may do to a sentence cannot be told without knowing its language: "Ana may deploy" stands in "only
Ana may deploy" and in "it is not true that Ana may deploy". So words are compared one by one and in their order, and an
entry stands in another only from the beginning of a line to the end of a sentence: nothing before it can turn it, and
what follows it there was said about it. How a word is written decides too: "US" is not "us", and "C" not "C++". So do
marks: "No, Ana may deploy" is not "No Ana may deploy". Only which marks end a sentence or a line makes no difference.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_QUOTES = '"“”„‟«»「」『』'
_MARKS = ".,;:!。，、；：！"
_SENTENCE_ENDS = ".!?…。！？"
# Chinese and Japanese sentences follow one another without a space.
_SPACE = re.compile(r"\s+|(?<=[。！？])")


class _Line(NamedTuple):
    """The words of a line, and the counts of words after which a sentence ends."""

    words: tuple[str, ...]
    ends: frozenset[int]


def repetitions(items: Sequence[T], text_of: Callable[[T], str]) -> Iterator[tuple[T, T]]:
    """The pairs of items whose texts have the same words, each with the next that has them."""
    known: dict[tuple[_Line, ...], T] = {}
    for item in items:
        lines = tuple(_lines(text_of(item)))
        if lines in known:
            yield known[lines], item
        known[lines] = item


def statements_within(items: Sequence[T], text_of: Callable[[T], str]) -> Iterator[tuple[T, T]]:
    """The pairs of a shorter item and a longer one that has each of its lines as whole sentences."""
    lines = [_lines(text_of(item)) for item in items]
    by_first_line: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, own in enumerate(lines):
        if own:
            by_first_line[own[0].words].append(place)
    lengths = {len(words) for words in by_first_line}
    for longer, others in enumerate(lines):
        beginnings = [line.words[:count] for line in others for count in lengths & line.ends]
        candidates = dict.fromkeys(place for words in beginnings for place in by_first_line.get(words, ()))
        for shorter in candidates:
            is_more = sum(len(line.words) for line in others) > sum(len(line.words) for line in lines[shorter])
            if is_more and all(any(_begins(other, line) for other in others) for line in lines[shorter]):
                yield items[shorter], items[longer]


def _begins(line: _Line, statement: _Line) -> bool:
    """Whether a line begins with a whole statement."""
    count = len(statement.words)
    return line.words[:count] == statement.words and line.ends & set(range(count + 1)) == statement.ends


def _lines(text: str) -> list[_Line]:
    """The lines of a text that have words."""
    found = []
    for line in text.splitlines():
        parts = [part for part in _SPACE.split(line) if part]
        ends = {count for count, part in enumerate(parts, start=1) if _ends_sentence(part)} | {len(parts)}
        if parts:
            words = tuple(_word(part, is_last=count in ends) for count, part in enumerate(parts, start=1))
            found.append(_Line(words, frozenset(ends)))
    return found


def _ends_sentence(part: str) -> bool:
    return part.rstrip(_QUOTES).endswith(tuple(_SENTENCE_ENDS))


def _word(part: str, *, is_last: bool) -> str:
    """A word without the quotes around it; the last one of a sentence or line also without the marks behind it.

    Only a word with a capital at most changes its case.
    """
    marked = part.strip(_QUOTES).replace("’", "'")
    bare = marked.rstrip(_MARKS + _QUOTES)
    if not bare or not (bare[-1].isalnum() or bare[-1] in ")]}"):
        return part
    is_plain = bare[1:].replace("'", "").isalpha() and bare[1:] == bare[1:].lower()
    word = bare if is_last else marked
    return word.casefold() if is_plain else word
