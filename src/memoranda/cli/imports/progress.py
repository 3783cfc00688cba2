"""A bar that shows how far an import is, where somebody is looking."""

import sys
import time

import click

from memoranda.cli.imports.summary_text import size
from memoranda.importers.importer import ImportProgress

_EVERY = 0.1
_WIDTH = 30


class ProgressBar:
    """Shows progress on one line of the terminal; elsewhere it shows nothing."""

    def __init__(self, verb: str, *, shown: bool) -> None:
        self._verb = verb
        self._shown = shown and sys.stderr.isatty()
        self._next = 0.0

    def __call__(self, progress: ImportProgress) -> None:
        if not self._shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY
        part = progress.bytes / progress.all_bytes if progress.all_bytes else 1.0
        filled = round(part * _WIDTH)
        line = (
            f"{self._verb} {progress.source} [{'#' * filled}{'-' * (_WIDTH - filled)}] {part:4.0%}"
            f"  {size(progress.bytes)} of {size(progress.all_bytes)}, {progress.messages:,} messages"
        )
        click.echo(f"\r\x1b[K{line}", nl=False, err=True)

    def indexing(self, done: int, total: int) -> None:
        """The index follows what was imported."""
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            click.echo(f"\r\x1b[KIndexing {done:,} of {total:,} messages", nl=False, err=True)

    def clear(self) -> None:
        if self._shown and self._next:
            click.echo("\r\x1b[K", nl=False, err=True)
