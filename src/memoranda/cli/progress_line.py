"""One line on the terminal that shows how far a command is."""

import sys
import time

import click

_INTERVAL = 0.1


class ProgressLine:
    """A line on stderr that each update replaces; invisible when stderr is not a terminal."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible and sys.stderr.isatty()
        self._next_update = 0.0

    def is_due(self) -> bool:
        """Whether the line should be shown again now; most updates come sooner than a person can read."""
        if not self._visible or time.monotonic() < self._next_update:
            return False
        self._next_update = time.monotonic() + _INTERVAL
        return True

    def show(self, text: str) -> None:
        click.echo(f"\r\x1b[K{text}", nl=False, err=True)

    def clear(self) -> None:
        if self._visible and self._next_update:
            self.show("")
