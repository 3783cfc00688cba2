"""`memoranda sessions`: the record of past conversations, for people."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.sessions import archive, export, list_and_show, prune, rename_and_delete, transfer

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
    rename_and_delete.rename,
    archive.archive,
    archive.unarchive,
    rename_and_delete.delete_command,
    prune.prune,
    prune.vacuum,
    export.export,
    transfer.import_file,
):
    command.add_command(_subcommand)
