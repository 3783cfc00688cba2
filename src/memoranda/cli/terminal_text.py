"""How text looks on a terminal."""

import re
import shutil
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from memoranda.cli.context import printable
from memoranda.support.shorten import shorten_end

_MATCH = re.compile(r">>>(.*?)<<<", re.DOTALL)


def bold(text: str) -> str:
    return click.style(text, bold=True)


def dim(text: str) -> str:
    return click.style(text, dim=True)


def highlight_matches(text: str) -> str:
    """A snippet with its matches in colour; without colour the marks say where they are."""
    if not _coloured():
        return text
    return _MATCH.sub(lambda match: click.style(match[1], fg="yellow", bold=True), text)


def local_time(seconds: float | None) -> str:
    """A moment in the reader's time zone."""
    try:
        return "" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "?"


def format_change(change: Mapping[str, Any], where: str) -> str:
    """One change of a journal: its number, when, where, what, by whom, and why."""
    session = f", session {printable(change['session'])}" if change["session"] else ""
    about = f" of {change['refers_to']}" if change["refers_to"] else ""
    note = f"  ({printable(change['note'])})" if change["note"] else ""
    when = printable(change["at"][:19].replace("T", " "))
    what = f"{change['action']}{about} by {printable(change['actor'])}{session}{note}"
    return f"{change['number']:>4}  {when}  {where}  {what}"


def terminal_line(text: str, most: int = 0) -> str:
    """Text from elsewhere on one line, safe for a terminal, cut when it is longer than `most`."""
    line = printable(text.replace("\t", "    "))
    return shorten_end(line, most) if most else line


def print_paged(text: str) -> None:
    """Print, through a pager when a person is looking and it does not fit on the screen."""
    lines = text.count("\n") + 1
    if sys.stdout.isatty() and lines > shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        click.echo(text)


def _coloured() -> bool:
    context = click.get_current_context(silent=True)
    return sys.stdout.isatty() if context is None or context.color is None else context.color
