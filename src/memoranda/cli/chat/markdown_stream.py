"""Renders Markdown for a terminal while a model writes it, and wraps its words.

A word is shown as soon as it is complete. Only text that cannot be rendered yet waits: the beginning of a line until
its kind is known, a mark such as ** until its counterpart, and a table until its last row. Lines of code are shown as
they are, so that they can be copied; the terminal wraps them.
"""

import re
from collections.abc import Callable

from memoranda.cli.chat.inline_markup import CODE_COLOUR, PLAIN, Span, Style, parse_available
from memoranda.cli.chat.line_writer import LineWriter, display_width
from memoranda.cli.chat.markdown_table import Row, is_table, render_table, split_row

_FENCE = re.compile(r"\s*(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")
_RULE = re.compile(r"\s{0,3}([-*_])(?:\s*\1){2,}\s*")
_HEADING = re.compile(r"\s{0,3}(?P<mark>#{1,6})[ \t]+(?=\S)")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_QUOTE = re.compile(r"\s{0,3}>[ \t]?(?=\S)")
# The beginning of a line whose kind is not known yet.
_UNCLEAR = re.compile(r"\s*(?:#{1,6}|[-+>]|\d{1,9}[.)]?|[-*_ \t]+|`{1,2}|~{1,2})?\s*|\s*(?:`{3}|~{3}|\|).*")
_MAX_RULE_WIDTH = 40

_HEADING_STYLE = Style(bold=True)
_CODE_STYLE = Style(colour=CODE_COLOUR)
_DIM = Style(dim=True)
_BULLET, _QUOTE_MARK = "• ", "│ "


class MarkdownStream:
    """Renders one answer: `feed` returns text for the terminal, `finish` returns the rest.

    Without `markup` all marks stay as they are, and only words are wrapped.
    """

    def __init__(self, width: Callable[[], int], *, markup: bool = True) -> None:
        self._width = width
        self._markup = markup
        self._writer = LineWriter(width)
        # The line so far, while its kind is not known; after that, `_body` has the part that is not shown yet.
        self._line = ""
        self._body: str | None = None
        self._style = PLAIN
        self._before = ""
        # The marks that began a block of code, and whether its current line is being shown.
        self._fence = ""
        self._shows_code = False
        self._table: list[str] = []

    def feed(self, text: str) -> str:
        """Adds a piece of the answer; returns what can be shown now."""
        first, *others = text.split("\n")
        shown = self._continue_line(first)
        for line in others:
            shown += self._end_line() + self._continue_line(line)
        return shown

    def finish(self) -> str:
        """Returns the rest of the answer and ends its line; after that, another answer may follow."""
        shown = self._end_line() if self._line or self._body is not None or self._shows_code else ""
        shown += self._end_table()
        self._fence = ""
        return shown

    def _continue_line(self, text: str) -> str:
        if self._shows_code:
            return self._writer.write_verbatim(text, self._code_style) if text else ""
        if self._body is not None:
            self._body += text
            return self._show_body(is_complete=False)
        self._line += text
        if self._fence:
            return self._show_code() if not _may_close(self._line, self._fence) else ""
        return "" if _UNCLEAR.fullmatch(self._line) else self._begin_text() + self._show_body(is_complete=False)

    def _end_line(self) -> str:
        line = self._line
        if self._fence:
            return self._end_code_line()
        if self._body is None:
            if not self._markup and line.lstrip().startswith("|"):
                return self._show_whole_line(line, PLAIN)
            if line.lstrip().startswith("|"):
                self._table.append(line)
                self._line = ""
                return ""
            if fence := _FENCE.fullmatch(line):
                self._fence = fence["marks"]
                return self._show_whole_line(line, _DIM if self._markup else PLAIN)
            if self._markup and _RULE.fullmatch(line):
                return self._show_whole_line("─" * min(_MAX_RULE_WIDTH, self._width()), _DIM)
            if not line.strip():
                return self._show_whole_line("", PLAIN)
        shown = self._begin_text() if self._body is None else ""
        shown += self._show_body(is_complete=True) + self._writer.end_line()
        self._line, self._body = "", None
        return shown

    def _begin_text(self) -> str:
        """Returns the mark at the beginning of a line, and leaves the rest of the line in `_body`."""
        line, self._line = self._line, ""
        shown, self._style, self._writer.indent = self._end_table(), PLAIN, ""
        mark, start = "", 0
        if match := _HEADING.match(line):
            self._style, start = _HEADING_STYLE, match.end()
        elif match := _ITEM.match(line):
            bullet = _BULLET if match["mark"] in "-*+" else f"{match['mark']} "
            mark, start = match["indent"].replace("\t", "    ") + bullet, match.end()
            self._writer.indent = " " * display_width(mark)
        elif match := _QUOTE.match(line):
            mark = self._writer.indent = _DIM.apply(_QUOTE_MARK)
            self._style, start = Style(italic=True), match.end()
        elif not self._markup or line[:1].isspace():
            start = len(line) - len(line.lstrip())
            mark = self._writer.indent = line[:start].replace("\t", "    ")
        if not self._markup:
            # The marks themselves, as the model wrote them.
            mark, self._style = line[:start].replace("\t", "    "), PLAIN
            self._writer.indent = " " * display_width(mark) if _ITEM.match(line) else ""
        self._body, self._before = line[start:], ""
        self._writer.column = display_width(mark)
        return shown + mark

    def _show_body(self, *, is_complete: bool) -> str:
        body = self._body or ""
        if not self._markup:
            self._body = ""
            return self._writer.write([Span(body, PLAIN)])
        spans, self._body = parse_available(body, self._style, is_complete=is_complete, before=self._before)
        used = len(body) - len(self._body)
        self._before = body[used - 1 : used] or self._before
        return self._writer.write(spans)

    def _show_whole_line(self, line: str, style: Style) -> str:
        shown = self._end_table() + style.apply(line) + "\n"
        self._line, self._writer.column = "", 0
        return shown

    def _show_code(self) -> str:
        line, self._line = self._line, ""
        self._shows_code = True
        return self._code_style.apply(line)

    def _end_code_line(self) -> str:
        line, self._line = self._line, ""
        if not self._shows_code and line and _closes(line, self._fence):
            self._fence = ""
            return (_DIM if self._markup else PLAIN).apply(line) + "\n"
        self._shows_code = False
        return self._code_style.apply(line) + "\n"

    def _end_table(self) -> str:
        lines, self._table = self._table, []
        rows: list[Row] = [split_row(line) for line in lines]
        if is_table(rows):
            return render_table(rows, self._width())
        return "".join(f"{line}\n" for line in lines)

    @property
    def _code_style(self) -> Style:
        return _CODE_STYLE if self._markup else PLAIN


def _may_close(line: str, fence: str) -> bool:
    """Whether a line in a block of code may still become the end of the block."""
    return not line.strip().strip(fence[0])


def _closes(line: str, fence: str) -> bool:
    return len(line.strip()) >= len(fence) and _may_close(line, fence)
