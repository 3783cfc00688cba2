"""`memoranda migrate`: copies a memory between the files of a home and a PostgreSQL server."""

from pathlib import Path

import click

from memoranda.api.migrated_parts import copy_parts_to_files, copy_parts_to_server
from memoranda.cli.context import Invocation, common_options
from memoranda.cli.progress_line import ProgressLine
from memoranda.home.config import shown_value
from memoranda.support.home import Home, is_server_url
from memoranda.upkeep.migration.migrate import MigrationReport, migrate_to_files, migrate_to_server
from memoranda.upkeep.migration.tables import Progress

_FILES = "sqlite:"
_EPILOG = """\b
Examples:
  memoranda migrate sqlite:~/.memoranda postgresql://memo@db.example/memory
  memoranda migrate postgresql://memo@db.example/memory sqlite:~/memoranda-copy
"""


@click.command(epilog=_EPILOG)
@click.argument("source")
@click.argument("target")
@common_options
def command(source: str, target: str) -> None:
    """Copy a memory from SOURCE to TARGET, and verify the copy.

    One of the two is a home, written as sqlite:HOME, and the other a server, written as postgresql://…. SOURCE is only
    read. TARGET must be empty; after an interruption, the same command continues. Stop all programs that use either of
    them first. Settings, skills and the state of imports stay where they are.
    """
    invocation = Invocation.current()
    line = ProgressLine(visible=not invocation.as_json)

    def show(what: str, done: int, total: int) -> None:
        if line.is_due():
            line.show(f"{what}: {done:,} of {total:,}")

    try:
        report = _migrate(source, target, invocation.profile, show)
    finally:
        line.clear()
    counts = ", ".join(f"{number:,} {name}" for name, number in report.tables.items() if number)
    text = f"Copied and verified {counts or 'no rows'}, and the memories of {report.memories:,} users."
    if is_server_url(target):
        text += f"\nNow set the server: memoranda config set store.url {shown_value(target)}"
    invocation.respond(text, {"success": True, "tables": report.tables, "memories": report.memories})


def _migrate(source: str, target: str, profile: str | None, progress: Progress) -> MigrationReport:
    if source.startswith(_FILES) and is_server_url(target):
        home = _home(source, profile, exists=True)
        return migrate_to_server(home, target, progress, lambda: copy_parts_to_server(home, target, progress))
    if is_server_url(source) and target.startswith(_FILES):
        home = _home(target, profile, exists=False)
        return migrate_to_files(source, home, progress, lambda: copy_parts_to_files(source, home, progress))
    raise click.UsageError("Name a home as sqlite:HOME and a server as postgresql://user@host/database.")


def _home(location: str, profile: str | None, *, exists: bool) -> Home:
    home = Home.at(Path(location.removeprefix(_FILES)), profile)
    home.refuse_if_foreign()
    if exists and not home.root.is_dir():
        raise click.UsageError(f"{home.root} is not a home.")
    return home
