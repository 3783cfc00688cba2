"""`memoranda server migrate` and `shards`: copy a memory to PostgreSQL or back, and move users between servers."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memoranda.cli.context import Invocation, common_options
from memoranda.cli.terminal_text import ProgressLine
from memoranda.home.config import load, shown_value, store_urls
from memoranda.support.home import Home, is_server_url
from memoranda.upkeep.home_tables import component_schemas
from memoranda.upkeep.migration.migrate import MigrationReport, migrate_to_files, migrate_to_server
from memoranda.upkeep.migration.tables import Progress

if TYPE_CHECKING:
    from memoranda.home.shards.directory import Directory
    from memoranda.home.shards.move import MoveProgress

_FILES = "sqlite:"
_MIGRATE_EPILOG = """\b
Examples:
  memoranda server migrate sqlite:~/.memoranda postgresql://memo@db.example/memory
  memoranda server migrate postgresql://memo@db.example/memory sqlite:~/memoranda-copy
"""
_EPILOG = """\b
Examples:
  memoranda server shards list
  memoranda server shards move 32 33 34 35 --to 1
"""


@click.command(epilog=_MIGRATE_EPILOG)
@click.argument("source")
@click.argument("target")
@common_options
def migrate(invocation: Invocation, source: str, target: str) -> None:
    """Copy a memory from SOURCE to TARGET, and verify the copy.

    One of the two is a home, written as sqlite:HOME, and the other a server, written as postgresql://…. SOURCE is only
    read. TARGET must be empty; after an interruption, the same command continues. Stop all programs that use either of
    them first. Settings, skills and the state of imports stay where they are.
    """
    with ProgressLine(visible=not invocation.as_json) as line:
        report = _migrate(
            source,
            target,
            invocation.profile,
            lambda what, done, total: line.update(f"{what}: {done:,} of {total:,}"),
        )
    counts = ", ".join(f"{number:,} {name}" for name, number in report.tables.items() if number)
    text = f"Copied and verified {counts or 'no rows'}, and the memories of {report.memories:,} users."
    if is_server_url(target):
        text += f"\nNow set the server: memoranda config set store.url {shown_value(target)}"
    invocation.respond(text, {"success": True, "tables": report.tables, "memories": report.memories})


def _migrate(source: str, target: str, profile: str | None, progress: Progress) -> MigrationReport:
    if source.startswith(_FILES) and is_server_url(target):
        home = _home(source, profile, exists=True)
        return migrate_to_server(home, target, progress)
    if is_server_url(source) and target.startswith(_FILES):
        home = _home(target, profile, exists=False)
        return migrate_to_files(source, home, progress)
    raise click.UsageError("Name a home as sqlite:HOME and a server as postgresql://user@host/database.")


def _home(location: str, profile: str | None, *, exists: bool) -> Home:
    home = Home.at(Path(location.removeprefix(_FILES)), profile)
    home.refuse_if_foreign()
    if exists and not home.root.is_dir():
        raise click.UsageError(f"{home.root} is not a home.")
    return home


@click.group(epilog=_EPILOG)
@common_options
def shards() -> None:
    """See which server has which users of a fleet, and move them.

    Every user belongs to one of 64 shards, by a hash of the user's id. All shards start in the store of store.url; the
    URLs in store.servers are stores 1, 2 and so on.
    """


@shards.command("list")
@common_options
def list_shards(invocation: Invocation) -> None:
    """List the stores, and which shards each of them has."""
    with _opened(invocation) as directory:
        placements = directory.placements()
        stores = [
            {
                "store": number,
                "location": engine.location,
                "shards": [each.shard for each in placements if each.store == number],
                "arriving": [each.shard for each in placements if each.moving_to == number],
            }
            for number, engine in enumerate(directory.engines)
        ]
    lines = [
        f"{store['store']}  {store['location']}  {_shorten(store['shards'])}"
        + (f"  arriving: {_shorten(store['arriving'])}" if store["arriving"] else "")
        for store in stores
    ]
    invocation.respond("\n".join(lines), {"stores": stores})


@shards.command("move")
@click.argument("shards", type=click.IntRange(0, 63), nargs=-1, required=True)
@click.option("--to", "target", type=click.IntRange(0), required=True, help="The number of the store.")
@common_options
def move_shards(invocation: Invocation, shards: tuple[int, ...], target: int) -> None:
    """Move SHARDS to another store while their users work.

    Each user waits for the moment in which the rows are copied. An interrupted move continues when the command is
    given again.
    """
    from memoranda.home.shards.move import ShardMove  # noqa: PLC0415

    moved = Counter[str]()
    started = time.monotonic()
    with _opened(invocation) as directory, ProgressLine(visible=not invocation.as_json) as line:
        if target >= len(directory.engines):
            invocation.fail(f"There is no store {target}: the settings name {len(directory.engines)} stores, from 0.")
        for shard in shards:

            def show(progress: "MoveProgress", shard: int = shard) -> None:
                line.update(f"Shard {shard}: {progress.users:,} users, {progress.rows:,} rows")

            done = ShardMove(directory, shard, target, report=show).run()
            moved.update(users=done.users, rows=done.rows)
    data = {"success": True, "shards": list(shards), "store": target, "users": moved["users"], "rows": moved["rows"]}
    data["seconds"] = round(time.monotonic() - started, 3)
    text = f"Moved {len(shards)} shards with {moved['users']:,} users and {moved['rows']:,} rows to store {target}."
    invocation.respond(text, data)


@contextmanager
def _opened(invocation: Invocation) -> "Iterator[Directory]":
    home = invocation.locate_home()
    settings = load(home)
    if not settings.store.servers:
        invocation.fail(
            "This home has one store. To distribute users, set store.url, and store.servers to the URLs of others."
        )
    from memoranda.home.shards.directory import Directory  # noqa: PLC0415

    directory = Directory(store_urls(home, settings), component_schemas())
    try:
        yield directory
    finally:
        directory.close()


def _shorten(shards: object) -> str:
    """The numbers of shards as ranges: 0-31, 40."""
    assert isinstance(shards, list)
    ranges: list[list[int]] = []
    for shard in sorted(shards):
        if ranges and shard == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], shard]
        else:
            ranges.append([shard])
    return ", ".join("-".join(map(str, each)) for each in ranges) or "no shards"
