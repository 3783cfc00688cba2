"""Imports of different commands take turns; nobody waits without knowing for whom."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memoranda.cli.context import Invocation
from memoranda.importers.import_lock import import_lock

# What a hook takes in takes a moment; everything longer is for a person to wait for.
_PATIENCE = 5.0


@contextmanager
def hold_import_lock(invocation: Invocation, root: Path) -> Iterator[None]:
    """Import while nobody else does, or say who does and leave."""
    with import_lock(root, _PATIENCE, _say_waiting) as other:
        if other:
            invocation.fail(
                f"Another import into this home is at work: {other}. Nothing was imported; try again when it is done, "
                "or stop it.",
                {"holder": other},
            )
        yield


def _say_waiting(other: str) -> None:
    click.echo(f"Waiting up to {_PATIENCE:g} s for another import into this home: {other}.", err=True)
