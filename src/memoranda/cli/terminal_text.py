"""Formats text for a terminal: colours, times, single lines, long output, and a line that shows progress."""

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import click

from memoranda.cli.context import printable
from memoranda.support.shorten import shorten_end

_MATCH = re.compile(r">>>(.*?)<<<", re.DOTALL)
_INTERVAL = 0.1


def bold(text: str) -> str:
    return click.style(text, bold=True)


def dim(text: str) -> str:
    return click.style(text, dim=True)


def highlight_matches(text: str) -> str:
    """Colours the matches in a snippet; without colour the marks around them stay."""
    if not uses_colour():
        return text
    return _MATCH.sub(lambda match: click.style(match[1], fg="yellow", bold=True), text)


def local_time(seconds: float | None) -> str:
    """Formats a timestamp in the local time zone; "?" when it is out of range."""
    try:
        return "" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "?"


def to_local_time(when: str | None) -> str:
    """Converts a timestamp of an answer to the local time zone; returns one that cannot be parsed unchanged."""
    try:
        return local_time(datetime.fromisoformat(when).timestamp()) if when else ""
    except (ValueError, OverflowError):
        return printable(when or "")


def count_of(number: int, noun: str) -> str:
    """A number with its noun: "1 session", "2 sessions"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_change(change: Mapping[str, Any], file: str) -> str:
    """Formats one change of a journal: its number, local time, file, action, actor, session and note."""
    session = f", session {printable(change['session'])}" if change["session"] else ""
    reference = f" of {change['refers_to']}" if change["refers_to"] else ""
    note = f"  ({printable(change['note'])})" if change["note"] else ""
    sources = format_sources(name for names in change.get("sources", {}).values() for name in names)
    action = f"{change['action']}{reference} by {printable(change['actor'])}{session}{sources}{note}"
    return f"{change['number']:>4}  {to_local_time(change['at'])}  {file}  {action}"


def format_sources(names: Iterable[str]) -> str:
    """Formats the untrusted sources of a change, after its session."""
    known = ", ".join(dict.fromkeys(map(printable, names)))
    return f", after reading {known}" if known else ""


def terminal_line(text: str, max_chars: int = 0) -> str:
    """Makes untrusted text safe for one line of a terminal, shortened to `max_chars` if that is not 0."""
    line = printable(text.replace("\t", "    "))
    return shorten_end(line, max_chars) if max_chars else line


def format_table(cells: Sequence[Sequence[str]]) -> list[str]:
    """Formats rows of equal length: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in cells]


def resume_line(command: str) -> str:
    """The line with the command that resumes a conversation; it says if the directory is not on this machine."""
    words = shlex.split(command)
    is_gone = words[0] == "cd" and not os.path.isdir(words[1])
    return f"resume: {terminal_line(command)}{'  (this directory is gone, or on another machine)' if is_gone else ''}"


def print_paged(text: str) -> None:
    """Prints a text, through a pager when it does not fit on the terminal."""
    lines = text.count("\n") + 1
    if sys.stdout.isatty() and lines > shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        click.echo(text)


def uses_colour() -> bool:
    """Whether output is coloured: by NO_COLOR and FORCE_COLOR, otherwise if it goes to a terminal."""
    context = click.get_current_context(silent=True)
    return sys.stdout.isatty() if context is None or context.color is None else context.color


class ProgressLine:
    """A line on stderr that each update replaces, until the block ends; invisible when stderr is not a terminal."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible and sys.stderr.isatty()
        self._next_update = 0.0

    def update(self, text: str) -> None:
        """Shows a text, unless the last one was shown just now: most updates come sooner than a person can read."""
        if self._visible and time.monotonic() >= self._next_update:
            self._next_update = time.monotonic() + _INTERVAL
            self._show(text)

    def clear(self) -> None:
        if self._visible and self._next_update:
            self._show("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def _show(self, text: str) -> None:
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)
