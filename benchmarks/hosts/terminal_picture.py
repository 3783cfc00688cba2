"""Runs a program in a terminal, records what the screen shows, and draws the screens as an animated SVG."""

import fcntl
import os
import pty
import select
import struct
import termios
import time
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from xml.sax.saxutils import escape

import pyte  # type: ignore[import-not-found,unused-ignore]

COLUMNS, ROWS = 92, 24
_TIMEOUT = 60.0
_CELL_WIDTH, _LINE_HEIGHT, _MARGIN, _BAR = 8.4, 18, 14, 28
_BACKGROUND, _FOREGROUND = "#1b1d23", "#d7dae0"
_COLORS = {
    "black": "#3a3f4b",
    "red": "#e06c75",
    "green": "#8fc379",
    "brown": "#d7a75f",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
    "white": "#d7dae0",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A character of the screen with its style."""

    text: str
    color: str
    bold: bool
    inverse: bool


@dataclass(frozen=True, slots=True)
class Screen:
    """What the terminal showed, and for how many seconds."""

    lines: tuple[tuple[Cell, ...], ...]
    seconds: float


class Recording:
    """Types into a program in a terminal as a person would, and records a screen after each step."""

    def __init__(self, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self.screens: list[Screen] = []
        self._terminal = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._terminal)
        self._process, self._file = pty.fork()
        if self._process == 0:
            os.chdir(directory)
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def __enter__(self) -> "Recording":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
        os.waitpid(self._process, 0)

    def type(self, text: str) -> None:
        """Types a text, and records a screen for every two characters."""
        for start in range(0, len(text), 2):
            os.write(self._file, text[start : start + 2].encode())
            self._read(0.15)
            self._add_screen(0.06)
        self._add_screen(0.6)

    def press_enter(self, until: str, seconds: float) -> None:
        """Presses Enter, waits for the text `until`, and shows that screen for so many seconds."""
        os.write(self._file, b"\r")
        self.wait_for(until)
        self._read(1.0)
        self._add_screen(seconds)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while text not in "\n".join(self._terminal.display):
            if time.monotonic() > deadline:
                raise SystemExit(f"{text!r} did not appear:\n" + "\n".join(self._terminal.display))
            self._read(0.2)
            self._add_screen(0.2)

    def _read(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._file], [], [], left)[0]:
                self._stream.feed(os.read(self._file, 65536))

    def _add_screen(self, seconds: float) -> None:
        buffer = self._terminal.buffer
        lines = tuple(tuple(_make_cell(buffer[row][column]) for column in range(COLUMNS)) for row in range(ROWS))
        if self.screens and self.screens[-1].lines == lines:
            seconds += self.screens.pop().seconds
        self.screens.append(Screen(lines, seconds))


def _make_cell(character: object) -> Cell:
    color = getattr(character, "fg", "default")
    hex_color = _COLORS.get(color.removeprefix("bright"), _FOREGROUND if color == "default" else f"#{color}")
    return Cell(
        getattr(character, "data", " "),
        hex_color,
        getattr(character, "bold", False),
        getattr(character, "reverse", False),
    )


def draw_animation(screens: list[Screen], title: str) -> str:
    """Returns an SVG that shows the screens one after the other, in a loop; without animation, it shows the last."""
    screens = [Screen(screen.lines, min(screen.seconds, 6.0)) for screen in screens]
    total = sum(screen.seconds for screen in screens)
    width, height = COLUMNS * _CELL_WIDTH + 2 * _MARGIN, ROWS * _LINE_HEIGHT + _BAR + _MARGIN
    rows = {line: f"r{number}" for number, line in enumerate(dict.fromkeys(_all_lines(screens)))}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        "<style>text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}"
        f".s{{visibility:hidden;animation:{total:.1f}s step-end infinite}}.s:last-of-type{{visibility:visible}}",
    ]
    start = 0.0
    for number, screen in enumerate(screens):
        end = start + screen.seconds
        frames = f"{100 * start / total:.2f}%{{visibility:visible}}{100 * end / total:.2f}%{{visibility:hidden}}"
        first = "0%{visibility:hidden}" if start else ""
        parts.append(f"@keyframes k{number}{{{first}{frames}}}#s{number}{{animation-name:k{number}}}")
        start = end
    parts.append("</style><defs>")
    parts += [f'<g id="{name}">{_draw_line(line)}</g>' for line, name in rows.items()]
    parts.append(f'</defs><rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>')
    parts += [f'<circle cx="{20 + 18 * dot}" cy="15" r="5" fill="#4b5162"/>' for dot in range(3)]
    for number, screen in enumerate(screens):
        uses = [
            f'<use href="#{rows[line]}" y="{_BAR + (row + 1) * _LINE_HEIGHT - 4}"/>'
            for row, line in enumerate(screen.lines)
            if line in rows
        ]
        parts.append(f'<g class="s" id="s{number}">{"".join(uses)}</g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _all_lines(screens: list[Screen]) -> list[tuple[Cell, ...]]:
    return [
        line for screen in screens for line in screen.lines if any(cell.text.strip() or cell.inverse for cell in line)
    ]


def _draw_line(line: tuple[Cell, ...]) -> str:
    parts, column = [], 0
    for (color, bold, inverse), run in groupby(line, key=lambda cell: (cell.color, cell.bold, cell.inverse)):
        cells = list(run)
        text, x, width = "".join(cell.text for cell in cells), _MARGIN + column * _CELL_WIDTH, len(cells) * _CELL_WIDTH
        column += len(cells)
        if inverse:
            parts.append(f'<rect x="{x:.1f}" y="-14" width="{width:.1f}" height="{_LINE_HEIGHT}" fill="{color}"/>')
        if text.strip():
            shown, fill = text.rstrip(), _BACKGROUND if inverse else color
            weight = ' font-weight="bold"' if bold else ""
            length = f' textLength="{len(shown) * _CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            parts.append(f'<text x="{x:.1f}" fill="{fill}"{weight}{length}>{escape(shown)}</text>')
    return "".join(parts)
