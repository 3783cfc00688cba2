"""`memoranda sessions`: the record of past conversations, for people."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.sessions import changing, listing, transfer

_EPILOG = """\b
Examples:
  memoranda sessions list
  memoranda sessions show "Fix the build"
  memoranda sessions export --output past.jsonl
  memoranda sessions prune --older-than 90d
"""


@click.group(epilog=_EPILOG)
@memory_options
def command() -> None:
    """See, name, export and delete past conversations."""


for _each in (
    listing.list_sessions,
    listing.show,
    listing.stats,
    changing.rename,
    changing.delete_command,
    changing.prune,
    transfer.export,
    transfer.import_file,
):
    command.add_command(_each)
