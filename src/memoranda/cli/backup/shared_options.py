"""What `backup` and `restore` share: the passphrase, and how far they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memoranda.cli.context import Invocation
from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.progress_line import ProgressLine
from memoranda.upkeep.backup.archive import Progress

_VERBS = {"copy": "Copying", "verify": "Verifying", "restore": "Restoring"}

passphrase_file_option = click.option(
    "--passphrase-file", type=click.Path(path_type=Path), help="Read the passphrase from the first line of a file."
)


def read_passphrase(invocation: Invocation, file: Path | None, *, confirm: bool) -> str:
    """The passphrase from a file, or else from the terminal; ends the command if it is empty."""
    if file is not None:
        lines = file.expanduser().read_text("utf-8").splitlines()
        passphrase = lines[0] if lines else ""
    else:
        passphrase = click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)
    if not passphrase:
        invocation.fail("The passphrase is empty.")
    return str(passphrase)


@contextmanager
def shown_progress(invocation: Invocation) -> Iterator[Progress]:
    """Shows on the terminal how far a backup or a restore is."""
    line = ProgressLine(visible=not invocation.as_json)

    def show(progress: Progress) -> None:
        if line.is_due():
            line.show(f"{_VERBS[progress.step]} {format_size(progress.done)} of {format_size(progress.total)}")

    try:
        yield Progress(show)
    finally:
        line.clear()
