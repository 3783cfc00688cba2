"""`memoranda provider`: choose, configure, inspect and test the external memory; loads only what is called."""

import click

from memoranda.cli.context import common_options
from memoranda.cli.lazy_group import LazyGroup

# Those that run sessions take long to load, and `list` needs none of them.
_FUNCTIONS = {
    "list": "memoranda.cli.provider.status:list_providers",
    "status": "memoranda.cli.provider.status:status",
    "use": "memoranda.cli.provider.setup:use",
    "off": "memoranda.cli.provider.setup:off",
    "setup": "memoranda.cli.provider.setup:setup",
    "test": "memoranda.cli.provider.sessions:test",
    "ask": "memoranda.cli.provider.sessions:ask",
    "call": "memoranda.cli.provider.sessions:call",
    "retry": "memoranda.cli.provider.sessions:retry",
    "backfill": "memoranda.cli.provider.backfill:backfill",
    "forget": "memoranda.cli.provider.forget:forget",
    "run": "memoranda.cli.provider.sessions:run",
}
_EPILOG = """\b
Examples:
  memoranda provider list
  memoranda provider setup holographic
  memoranda provider status
  memoranda provider ask "which database do we use?"
  memoranda provider off
"""


@click.group(cls=LazyGroup, functions=_FUNCTIONS, epilog=_EPILOG)
@common_options
def command() -> None:
    """Show, set up, test, clear and switch off the external memory."""
