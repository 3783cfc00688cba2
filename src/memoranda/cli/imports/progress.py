"""Shows the progress of an import on one line of the terminal."""

import sys
import time

import click

from memoranda.cli.imports.summary_text import format_size
from memoranda.importers.importer import ImportProgress

_INTERVAL = 0.1
_WIDTH = 30


class ProgressBar:
    """A progress bar on stderr; invisible when stderr is not a terminal."""

    def __init__(self, verb: str, *, visible: bool) -> None:
        self._verb = verb
        self._visible = visible and sys.stderr.isatty()
        self._next_update = 0.0

    def __call__(self, progress: ImportProgress) -> None:
        if not self._is_due():
            return
        part = progress.bytes / progress.all_bytes if progress.all_bytes else 1.0
        filled = round(part * _WIDTH)
        line = (
            f"{self._verb} {progress.source} [{'#' * filled}{'-' * (_WIDTH - filled)}] {part:4.0%}  "
            f"{format_size(progress.bytes)} of {format_size(progress.all_bytes)}, {progress.messages:,} messages"
        )
        click.echo(f"\r\x1b[K{line}", nl=False, err=True)

    def indexing(self, done: int, total: int) -> None:
        """Show how many of the imported messages are in the index."""
        if self._is_due():
            click.echo(f"\r\x1b[KIndexing {done:,} of {total:,} messages", nl=False, err=True)

    def clear(self) -> None:
        if self._visible and self._next_update:
            click.echo("\r\x1b[K", nl=False, err=True)

    def _is_due(self) -> bool:
        if not self._visible or time.monotonic() < self._next_update:
            return False
        self._next_update = time.monotonic() + _INTERVAL
        return True
