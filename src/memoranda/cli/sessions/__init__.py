"""`memoranda sessions`: the record of past conversations, for people."""

import click

from memoranda.cli.context import memory_options
from memoranda.cli.lazy_group import LazyGroup

_FUNCTIONS = {
    "archive": "memoranda.cli.sessions.changes:archive",
    "delete": "memoranda.cli.sessions.changes:delete_command",
    "export": "memoranda.cli.sessions.transfer:export",
    "import": "memoranda.cli.sessions.transfer:import_file",
    "list": "memoranda.cli.sessions.list_and_show:list_sessions",
    "prune": "memoranda.cli.sessions.changes:prune",
    "rename": "memoranda.cli.sessions.changes:rename",
    "show": "memoranda.cli.sessions.list_and_show:show",
    "stats": "memoranda.cli.sessions.list_and_show:stats",
    "unarchive": "memoranda.cli.sessions.changes:unarchive",
    "vacuum": "memoranda.cli.sessions.changes:vacuum",
}
_EPILOG = """\b
Examples:
  memoranda sessions list
  memoranda sessions show "Fix the build"
  memoranda sessions export --output past.jsonl
  memoranda sessions export "Fix the build" --format html --output build.html
  memoranda sessions prune --older-than 90d
"""


@click.group(cls=LazyGroup, functions=_FUNCTIONS, epilog=_EPILOG)
@memory_options
def command() -> None:
    """See, name, archive, export and delete past conversations."""
