"""Renders Markdown for a terminal while a model writes it: headings, bold text, code and blocks of code.

A word is shown as soon as it is complete. Only text that cannot be rendered yet waits: the beginning of a line until
its kind is known, a mark such as ** until its counterpart or the end of its line, and a line of code until its end.
Lists, tables and everything else stay as the model wrote them. Words are wrapped; lines of code and of tables are left
to the terminal, so that they can be copied.
"""

import re
from collections.abc import Callable

import click
from prompt_toolkit.utils import get_cwidth

_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})[^`]*")
_HEADING = re.compile(r"\s{0,3}#{1,6}[ \t]+(?=\S)")
_LINE_START = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S))?")
# The beginning of a line whose kind is not known yet.
_UNCLEAR = re.compile(r"\s*(?:#{1,6}|[-*+]|\d{1,9}[.)]?|`{1,2}|~{1,2})?\s*|\s*(?:`{3}|~{3}|\|).*")
_MARK = re.compile(r"\*\*|\*$|`")
_MARKED = re.compile(r"\*\*(?P<bold>(?![\s*])(?:(?!\*\*).)+(?<!\s))\*\*|`(?P<code>[^`]+)`")
_PART = re.compile(r"\s+|\S+")
_TAB = "    "
_CODE_COLOUR = "cyan"


class MarkdownStream:
    """Renders one answer: `feed` returns text for the terminal, `finish` returns the rest.

    Without `markup` all marks stay as they are, and only words are wrapped.
    """

    def __init__(self, width: Callable[[], int], *, markup: bool = True) -> None:
        self._markup = markup
        self._words = _WordWrap(width)
        # The part of the current line that is not shown yet; `_begun` says that the kind of the line is known.
        self._line = ""
        self._begun = False
        self._is_heading = False
        # The marks that began a block of code.
        self._fence = ""

    def feed(self, text: str) -> str:
        """Adds a piece of the answer; returns what can be shown now."""
        *ended, last = text.split("\n")
        shown = ""
        for line in ended:
            self._line += line
            shown += self._end_line()
        self._line += last
        if not self._begun and (self._fence or _UNCLEAR.fullmatch(self._line)):
            return shown
        return shown + self._show_line(is_complete=False)

    def finish(self) -> str:
        """Returns the rest of the answer and ends its line; after that, another answer may follow."""
        shown = self._end_line() if self._line or self._begun else ""
        self._fence = ""
        return shown

    def _end_line(self) -> str:
        fence = _FENCE.fullmatch(self._line)
        if self._begun or not (self._fence or fence or self._line.lstrip().startswith("|")):
            shown = self._show_line(is_complete=True) + self._words.end_word()
        else:
            marks, opened = fence["marks"] if fence else "", self._fence
            is_code = bool(marks or opened) and self._markup
            shown = click.style(self._line, fg=_CODE_COLOUR) if is_code else self._line
            if not opened or (marks.startswith(opened) and self._line.strip() == marks):
                self._fence = "" if opened else marks
        self._line, self._begun = "", False
        return shown + "\n"

    def _show_line(self, *, is_complete: bool) -> str:
        """Returns what can be shown of the line; the rest begins with a mark that has no counterpart yet."""
        shown = "" if self._begun else self._begin_line()
        text, position = self._line, 0
        while self._markup and (mark := _MARK.search(text, position)):
            shown += self._words.write(text[position : mark.start()], bold=self._is_heading)
            marked = _MARKED.match(text, mark.start())
            if marked is None and not is_complete:
                self._line = text[mark.start() :]
                return shown
            if marked is None:
                shown += self._words.write(mark[0], bold=self._is_heading)
            elif marked["bold"]:
                shown += self._words.write(marked["bold"], bold=True)
            else:
                shown += self._words.write(marked["code"], bold=self._is_heading, colour=_CODE_COLOUR)
            position = (marked or mark).end()
        self._line = ""
        return shown + self._words.write(text[position:], bold=self._is_heading)

    def _begin_line(self) -> str:
        """Returns what precedes the words of a line, such as the bullet of a list item, which indents its text."""
        heading = _HEADING.match(self._line) if self._markup else None
        self._begun, self._is_heading = True, heading is not None
        start = heading or _LINE_START.match(self._line)
        assert start is not None
        self._line = self._line[start.end() :]
        shown = "" if heading else start[0].replace("\t", _TAB)
        self._words.begin_line(" " * get_cwidth(shown))
        return shown


class _WordWrap:
    """Wraps styled words: one that does not fit begins the next line, after the indentation.

    A word longer than a line is left to the terminal, so that an address can be copied.
    """

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self.begin_line("")

    def begin_line(self, indent: str) -> None:
        self._indent, self._column = indent, len(indent)
        self._space = self._word = ""

    def write(self, text: str, *, bold: bool = False, colour: str | None = None) -> str:
        """Adds text; returns what can be shown now: all but the last word, which may continue."""
        shown = ""
        for part in _PART.findall(text):
            if part.isspace():
                shown += self.end_word()
                self._space += part.replace("\t", _TAB)
            else:
                self._word += click.style(part, fg=colour, bold=bold or None) if bold or colour else part
        return shown

    def end_word(self) -> str:
        if not self._word:
            return ""
        shown, size, width = self._space + self._word, display_width(self._word), max(2, self._width())
        end = self._column + len(self._space) + size
        if end > width and self._column > len(self._indent):
            shown, end = f"\n{self._indent}{self._word}", len(self._indent) + size
        # The terminal continues a longer word on the next line.
        self._column = (end - 1) % width + 1
        self._space = self._word = ""
        return shown


def wrap_lines(text: str, width: int) -> str:
    """Wraps text that may contain styles at its spaces; each line continues at its own indentation."""
    wrapped = []
    for line in text.split("\n"):
        words = _WordWrap(lambda: width)
        plain = click.unstyle(line)
        indent = plain[: len(plain) - len(plain.lstrip())]
        words.begin_line(indent)
        wrapped.append(indent + words.write(line.replace(indent, "", 1)) + words.end_word())
    return "\n".join(wrapped)


def display_width(text: str) -> int:
    """Returns how many columns a text takes, without the escape codes of its styles."""
    return int(get_cwidth(click.unstyle(text)))
