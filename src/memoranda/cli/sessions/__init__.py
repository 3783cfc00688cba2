"""`memoranda sessions`: the record of past conversations, for people."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.sessions import changes, list_and_show, transfer

_EPILOG = """\b
Examples:
  memoranda sessions list
  memoranda sessions show "Fix the build"
  memoranda sessions export --output past.jsonl
  memoranda sessions export "Fix the build" --format html --output build.html
  memoranda sessions prune --older-than 90d
"""


@click.group(epilog=_EPILOG)
@memory_options
def command() -> None:
    """See, name, archive, export and delete past conversations."""


for _subcommand in (
    list_and_show.list_sessions,
    list_and_show.show,
    list_and_show.stats,
    changes.rename,
    changes.archive,
    changes.unarchive,
    changes.delete_command,
    changes.prune,
    changes.vacuum,
    transfer.export,
    transfer.import_file,
):
    command.add_command(_subcommand)
