"""`memoranda remember`: save a fact to curated memory."""

import sys
from typing import get_args

import click

from memoranda.cli.context import Invocation, memory_options
from memoranda.cli.memory.entries import report
from memoranda.cli.open_home import open_curated_memory
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import Target
from memoranda.support.origin import PERSON

_EPILOG = """\b
Examples:
  memoranda remember "The staging database is called heron."
  memoranda remember --target user "Prefers concise answers."
  echo "CI runs on Debian 12." | memoranda remember -
"""


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--target",
    type=click.Choice(get_args(Target)),
    default="memory",
    show_default=True,
    help="The agent's notes, or the profile of the user.",
)
@click.option("--allow", multiple=True, metavar="FINDING", help="Accept a scanner finding in the text.")
@memory_options
def command(words: tuple[str, ...], target: Target, allow: tuple[str, ...]) -> None:
    """Save a fact for every agent that uses this home. '-' reads it from standard input.

    The fact is on disk when the command answers, and agents know it from their next session on. 'memoranda memory'
    lists, changes, removes and undoes.
    """
    invocation = Invocation.current()
    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    store = open_curated_memory(invocation)
    report(invocation, store, store.apply(target, [Add(text)], PERSON, frozenset(allow)))
