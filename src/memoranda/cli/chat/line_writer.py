"""Wraps styled text at the width of a terminal, word by word as it arrives."""

import unicodedata
from collections.abc import Callable, Iterable

import click
from prompt_toolkit.utils import get_cwidth

from memoranda.cli.chat.inline_markup import PLAIN, Span, Style

_JOINER = "\u200d"
# A line may break between wide characters, but not before the first set or after the second.
_NOT_AT_START = set("、。，．：；！？）」』】〉》〕｝”’…‥ー々〜%％")
_NOT_AT_END = set("（「『【〈《〔｛“‘")
_HANGUL = range(0x1100, 0x1200), range(0x3130, 0x3190), range(0xA960, 0xA980), range(0xAC00, 0xD800)


class LineWriter:
    """Collects words and returns them as terminal text; a word that does not fit begins the next line.

    `indent` begins every line after the first one, for example under the text of a list item. A word longer than a
    line is left to the terminal, so that an address can be copied, unless `breaks_words`.
    """

    def __init__(self, width: Callable[[], int], *, indent: str = "", breaks_words: bool = False) -> None:
        self.indent = indent
        self.column = 0
        self._width = width
        self._breaks_words = breaks_words
        self._space = 0
        self._word: list[Span] = []
        self._last = ""

    def write(self, spans: Iterable[Span]) -> str:
        """Adds text; returns what can be shown now: all but the last word, which may continue."""
        shown = ""
        for text, style in spans:
            for char in text:
                if char in " \t":
                    shown += self._end_word()
                    self._space += 4 if char == "\t" else 1
                else:
                    if self._word and _may_break(self._last, char):
                        shown += self._end_word()
                    self._add(char, style)
                self._last = char
        return shown

    def write_verbatim(self, text: str, style: Style = PLAIN) -> str:
        """Adds text that must not be wrapped, such as a bullet or a line of code; returns what can be shown now."""
        shown = self._end_word() + " " * self._space + style.apply(text)
        self.column += self._space + get_cwidth(text)
        self._space, self._last = 0, text[-1:]
        return shown

    def end_line(self) -> str:
        """Returns the last word and the end of the line."""
        shown = self._end_word() + "\n"
        self.column = self._space = 0
        self._last = ""
        return shown

    def flush(self) -> str:
        """Returns the last word."""
        return self._end_word()

    def _add(self, char: str, style: Style) -> None:
        if self._word and self._word[-1].style == style:
            self._word[-1] = Span(self._word[-1].text + char, style)
        else:
            self._word.append(Span(char, style))

    def _end_word(self) -> str:
        if not self._word:
            return ""
        word, self._word = self._word, []
        size, width = sum(get_cwidth(span.text) for span in word), max(2, self._width())
        shown = " " * self._space
        start = display_width(self.indent)
        if self.column + self._space + size > width and self.column > start:
            shown = "\n" + self.indent
            self.column = start
        else:
            self.column += self._space
        self._space = 0
        if self._breaks_words and self.column + size > width:
            return shown + self._break_word(word, width)
        # The terminal continues a longer word on the next line.
        self.column = (self.column + size - 1) % width + 1
        return shown + "".join(span.style.apply(span.text) for span in word)

    def _break_word(self, word: list[Span], width: int) -> str:
        shown = ""
        for span in word:
            for char in span.text:
                size = get_cwidth(char)
                if self.column + size > width:
                    shown += "\n" + self.indent
                    self.column = display_width(self.indent)
                shown += span.style.apply(char)
                self.column += size
        return shown


def wrap_lines(text: str, width: int) -> str:
    """Wraps text that may contain styles at its spaces; each line continues at its own indentation."""
    wrapped = []
    for line in text.split("\n"):
        plain = click.unstyle(line)
        indent = plain[: len(plain) - len(plain.lstrip())]
        column, pieces = 0, list[str]()
        for number, word in enumerate(line.split(" ")):
            size = display_width(word)
            if number and column + 1 + size > width and column > len(indent):
                pieces.append("\n" + indent)
                column = len(indent)
            elif number:
                pieces.append(" ")
                column += 1
            pieces.append(word)
            column += size
        wrapped.append("".join(pieces))
    return "\n".join(wrapped)


def display_width(text: str) -> int:
    """Returns how many columns a text takes, without the escape codes of its styles."""
    return int(get_cwidth(click.unstyle(text)))


def _may_break(before: str, after: str) -> bool:
    """Whether a line may break between two characters that no space separates."""
    if not before or before == _JOINER or unicodedata.combining(after) or get_cwidth(after) == 0:
        return False
    if after in _NOT_AT_START or before in _NOT_AT_END:
        return False
    return _is_breakable(before) or _is_breakable(after)


def _is_breakable(char: str) -> bool:
    """Whether a character belongs to a script without spaces between words."""
    return get_cwidth(char) == 2 and not any(ord(char) in part for part in _HANGUL)
