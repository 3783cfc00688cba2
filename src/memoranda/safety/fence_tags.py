"""The tag of a memory fence, when an opener is only a mention of it, and the filter that hides fences in a stream.

A tag is `<memory-context>` or `</memory-context>` in any case, with up to 8 blanks after `<` and `/`, an underscore or
any dash of Unicode between the two words, and up to 200 characters of attributes (anything but angle brackets). So a
tag is never longer than `MAX_TAG_CHARS`, and contains no second `<`: text that stops in the middle of one is recognised
by its last `<`.

The text before an opener on its line, and at most `MAX_TAG_CHARS` characters from its own `<` on, decide whether it
begins a fence:

1. Inside a code span (begun by backticks on this line) it is text if the span ends on the same line, within that
   reach, and before a closer of its own.
2. After a word on the same line, without attributes, and followed by what continues a sentence (blanks and a small
   letter, a letter of a script without capitals, or one of `.,;!?)` and closing quotes) it is text, unless a closer of
   its own follows within that reach.
3. Everywhere else it begins a fence: at the start of a line or after bullets, quote marks, numbers and control
   characters, before a line end, before a capital, a bracket or another tag. Fenced code blocks change nothing.

"Of its own" means that tags are counted: an opener in between is closed by the next closer.

`StreamingContextScrubber` shows text as it arrives and hides every fence, from its opener to the closer of its own. It
reads nothing but the text, so the total output is the same however the stream is cut. At the end of the stream
(`flush`) a fence without a closer is discarded, to the last character.

The hard case is "The tag <memory-context> is special." against "unterminated fences are discarded": the filter cannot
see the end of the stream, and both mistakes cost something. Hiding a mention swallows the rest of an answer that
explains the tag; showing a fence leaks a memory. Rules 1 and 2 are the choice: a recalled block never looks like a
mention, because its opener is followed by a line end and then a bracket. Everything else is hidden, also in fenced code
blocks, where a model that quotes its context is likelier than one that documents ours. Closers without an opener are
text: they hide nothing.

What can still get through: a fence that begins in the middle of a sentence, continues in small letters and ends more
than `MAX_TAG_CHARS` characters later, which `sanitize_context` removes before text is stored, because it sees the
whole of it; and an opener in a one-line code span that never closes, of which it removes only the tag.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

from memoranda.safety.substrings import contains_any
from memoranda.support.lazy_pattern import compile_later

_MAX_BLANKS = 8
_MAX_ATTRIBUTES = 200
MAX_TAG_CHARS = len("</memory-context>") + 2 * _MAX_BLANKS + 1 + _MAX_ATTRIBUTES

_DASHES = "-_\u00ad\u058a\u2010-\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d\uff3f"
_BREAKS = "\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_HEAD = rf"<\s{{0,{_MAX_BLANKS}}}"
_SLASH = rf"/\s{{0,{_MAX_BLANKS}}}"
_ATTRIBUTES = rf"[\s/][^<>]{{0,{_MAX_ATTRIBUTES}}}+"
_STEPS = (*"memory", f"[{_DASHES}]", *"context", _ATTRIBUTES)

_TAG = compile_later(rf"{_HEAD}({_SLASH})?memory[{_DASHES}]context({_ATTRIBUTES})?>", re.IGNORECASE)
# Any beginning of a tag, up to all of it but the last bracket.
_UNFINISHED = compile_later(
    rf"{_HEAD}(?:{_SLASH})?" + "".join(f"(?:{step}" for step in _STEPS) + ")?" * len(_STEPS), re.IGNORECASE
)
# What a model could still read as the tag: other brackets, entities, missing or strange characters within.
_LOOK_ALIKE = compile_later(
    r"([<＜﹤]|&lt;|&#60;|&#x3c;)(?!\\)(?=(?:[^\w<＜﹤]|_){0,18}memory(?:[^\w<＜﹤]|_){0,3}context)",
    re.IGNORECASE,
)
_BRACKETS = ("<", "&", "＜", "﹤")
_RUN_OR_BREAK = compile_later(rf"`+|[{_BREAKS}]")
_RUNS = compile_later("`+|[^`]+")
_LETTER = compile_later(r"[^\W\d_]")
_BLANKS = compile_later(rf"[ \t]{{0,{_MAX_BLANKS}}}")
_CONTINUES_SENTENCE = frozenset(".,;!?)\"'”’»，。、；！？）」』")


class FenceTag(NamedTuple):
    """A whole tag in a text."""

    start: int
    end: int
    closes: bool
    bare: bool


class TagReading(Enum):
    """How an opener is read; `UNDECIDED` as long as the characters that decide have not arrived."""

    FENCE = auto()
    TEXT = auto()
    UNDECIDED = auto()


def next_tag(text: str, start: int, end: int | None = None) -> FenceTag | None:
    """The first whole tag between two offsets of a text."""
    match = _TAG.search(text, start, len(text) if end is None else end)
    if match is None:
        return None
    return FenceTag(match.start(), match.end(), match[1] is not None, not (match[2] or "").strip())


def unfinished_tag(text: str, start: int, end: int | None = None) -> int:
    """The start of a tag that the end of the text interrupts; the end of the text when there is none."""
    end = len(text) if end is None else end
    opening = text.rfind("<", max(start, end - MAX_TAG_CHARS), end)
    return opening if opening >= 0 and _UNFINISHED.fullmatch(text, opening, end) else end


def escape_tags(text: str) -> str:
    r"""Put a backslash into everything that looks like a tag (`<\memory-context>`): legible, and no tag any more."""
    return text if not contains_any(_BRACKETS, text) else _LOOK_ALIKE.sub(r"\1\\", text)


class LineState:
    """The state of the current line: whether it has a word, and which code span is open."""

    __slots__ = ("_code", "_run", "_words")

    def __init__(self) -> None:
        self._words = False
        self._code = self._run = 0

    def advance(self, text: str) -> None:
        """Read more text; the result does not depend on how the text is split."""
        tail = (text + ".").splitlines()[-1][:-1]
        if len(tail) < len(text):
            self._words = False
            self._code = self._run = 0
        if not self._words:
            self._words = _LETTER.search(tail) is not None
        if self._run or "`" in tail:
            for piece in _RUNS.findall(tail):
                if piece[0] == "`":
                    self._run += len(piece)
                else:
                    self._end_run()

    @property
    def in_code(self) -> bool:
        """Whether a code span is open where `judge` was called last."""
        return self._code > 0

    def judge(self, text: str, tag: FenceTag, *, final: bool) -> TagReading:
        """How to read an opener at this point; `final` when no more text follows."""
        self._end_run()
        reach = min(len(text), tag.start + MAX_TAG_CHARS)
        whole = final or len(text) >= tag.start + MAX_TAG_CHARS
        if self._code:
            return _judge_in_code(text, tag, self._code, reach, whole)
        if self._words and tag.bare:
            return _judge_in_sentence(text, tag, reach, whole)
        return TagReading.FENCE

    def _end_run(self) -> None:
        """A run of backticks opens a code span, or closes one that was opened by a run of the same length."""
        if self._run:
            if not self._code:
                self._code = self._run
            elif self._code == self._run:
                self._code = 0
            self._run = 0


def _judge_in_code(text: str, tag: FenceTag, code: int, reach: int, whole: bool) -> TagReading:
    """Text if the code span ends first; a fence if the line, the reach, the text or the fence ends first."""
    # A backtick within a tag that has not fully arrived would be one of its attributes.
    settled = reach if whole else unfinished_tag(text, tag.end, reach)
    start, depth = tag.end, 1
    while depth:
        inner = next_tag(text, start, settled)
        end = inner.start if inner else settled
        reading = _judge_code_between_tags(text, start, end, code, None if whole else reach)
        if reading is not None:
            return reading
        if inner is None:
            return TagReading.FENCE if whole else TagReading.UNDECIDED
        depth += -1 if inner.closes else 1
        start = inner.end
    return TagReading.FENCE


def _judge_code_between_tags(text: str, start: int, end: int, code: int, reach: int | None) -> TagReading | None:
    """What the first line break, or the first run of as many backticks as opened the code span, decides; else None.

    A run that ends at `reach` may still grow, so it decides nothing yet.
    """
    for match in _RUN_OR_BREAK.finditer(text, start, end):
        if match[0][0] != "`":
            return TagReading.FENCE
        if match.end() == reach:
            return TagReading.UNDECIDED
        if len(match[0]) == code:
            return TagReading.TEXT
    return None


def _judge_in_sentence(text: str, tag: FenceTag, reach: int, whole: bool) -> TagReading:
    """Text if the sentence continues and no closer of its own follows within reach."""
    blanks = _BLANKS.match(text, tag.end)
    after = blanks.end() if blanks else tag.end
    if after >= reach:
        return TagReading.TEXT if whole else TagReading.UNDECIDED
    char = text[after]
    in_word = char.isalpha() and not char.isupper() and (after > tag.end or not char.islower())
    if not in_word and char not in _CONTINUES_SENTENCE:
        return TagReading.FENCE
    position, depth = tag.end, 1
    while inner := next_tag(text, position, reach):
        depth += -1 if inner.closes else 1
        if not depth:
            return TagReading.FENCE
        position = inner.end
    return TagReading.TEXT if whole else TagReading.UNDECIDED


class StreamingContextScrubber:
    """One stream of visible text; never holds back more than `MAX_TAG_CHARS` characters, and takes linear time."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the stream and the text that is held back; the next text starts a new stream."""
        self._held = ""
        self._depth = 0
        self._line = LineState()

    def feed(self, chunk: str) -> str:
        """The text that can be shown now that `chunk` has arrived."""
        if not self._held and not self._depth and "<" not in chunk:
            self._line.advance(chunk)
            return chunk
        return self._advance(self._held + chunk, final=False)

    def flush(self) -> str:
        """The rest of the text at the end of the stream, a fence without an end discarded; then `reset`."""
        rest = self._advance(self._held, final=True)
        self.reset()
        return rest

    def _advance(self, text: str, *, final: bool) -> str:
        shown: list[str] = []
        position = 0
        while tag := next_tag(text, position):
            if self._depth:
                self._depth += -1 if tag.closes else 1
                position = tag.end
                continue
            self._show(text[position : tag.start], shown)
            reading = TagReading.TEXT if tag.closes else self._line.judge(text, tag, final=final)
            if reading is TagReading.UNDECIDED:
                self._held = text[tag.start :]
                return "".join(shown)
            if reading is TagReading.FENCE:
                self._depth = 1
            else:
                self._show(text[tag.start : tag.end], shown)
            position = tag.end
        end = len(text) if final else unfinished_tag(text, position)
        if not self._depth:
            self._show(text[position:end], shown)
        self._held = text[end:]
        return "".join(shown)

    def _show(self, text: str, shown: list[str]) -> None:
        shown.append(text)
        self._line.advance(text)
