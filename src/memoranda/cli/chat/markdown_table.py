"""Renders a Markdown table for a terminal."""

import re

from memoranda.cli.chat.inline_markup import PLAIN, Style, parse_inline
from memoranda.cli.chat.line_writer import LineWriter, display_width

_SEPARATOR_CELL = re.compile(r":?-+:?")
_CELL_END = re.compile(r"(?<!\\)\|")
_GAP = "  "
_MIN_COLUMN_WIDTH = 5

Row = list[str]


def split_row(line: str) -> Row:
    """Returns the cells of a line."""
    cells = _CELL_END.split(line.strip().removeprefix("|"))
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.strip().replace("\\|", "|") for cell in cells]


def is_table(rows: list[Row]) -> bool:
    """Whether the second line separates a header from the rest."""
    return len(rows) >= 2 and all(_SEPARATOR_CELL.fullmatch(cell) for cell in rows[1])


def render_table(rows: list[Row], width: int) -> str:
    """Renders columns that fit the width; if they would be too narrow, renders each row as a list of its cells."""
    header, separator, *body = rows
    count = max(map(len, rows))
    table = [row + [""] * (count - len(row)) for row in (header, *body)]
    widths = _fit_widths(
        [max(display_width(_plain(cell)) for cell in column) for column in zip(*table, strict=True)], width
    )
    if widths is None:
        return _render_as_lists(table[0], table[1:], width)
    alignments = [_alignment(cell) for cell in separator] + ["left"] * count
    lines = _render_row(table[0], widths, alignments, Style(bold=True))
    lines.append(Style(dim=True).apply(_GAP.join("─" * size for size in widths)))
    for row in table[1:]:
        lines += _render_row(row, widths, alignments, PLAIN)
    return "".join(f"{line}\n" for line in lines)


def _plain(cell: str) -> str:
    return "".join(span.text for span in parse_inline(cell))


def _fit_widths(widths: list[int], available: int) -> list[int] | None:
    """Reduces the widest columns until all of them fit; returns None if that is not possible."""
    widths = [max(1, size) for size in widths]
    available -= len(_GAP) * (len(widths) - 1)
    while sum(widths) > available:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _MIN_COLUMN_WIDTH:
            return None
        widths[widest] -= 1
    return widths


def _alignment(cell: str) -> str:
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _render_row(cells: Row, widths: list[int], alignments: list[str], style: Style) -> list[str]:
    wrapped = [_wrap(cell, size, style) for cell, size in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    columns = [
        [_pad(line, size, alignment) for line in lines + [""] * (height - len(lines))]
        for lines, size, alignment in zip(wrapped, widths, alignments, strict=False)
    ]
    return [_GAP.join(parts).rstrip() for parts in zip(*columns, strict=True)]


def _wrap(cell: str, width: int, style: Style) -> list[str]:
    writer = LineWriter(lambda: width, breaks_words=True)
    return (writer.write(parse_inline(cell, style)) + writer.flush()).split("\n")


def _pad(line: str, width: int, alignment: str) -> str:
    missing = max(0, width - display_width(line))
    before = {"left": 0, "right": missing, "center": missing // 2}[alignment]
    return " " * before + line + " " * (missing - before)


def _render_as_lists(header: Row, body: list[Row], width: int) -> str:
    shown = ""
    for number, row in enumerate(body):
        shown += "\n" if number else ""
        for name, cell in zip(header, row, strict=True):
            writer = LineWriter(lambda: width, indent="  ")
            shown += writer.write([*parse_inline(name, Style(bold=True)), *parse_inline(f": {cell}")])
            shown += writer.end_line()
    return shown
