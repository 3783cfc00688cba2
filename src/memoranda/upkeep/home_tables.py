"""The one list of the tables of a home's parts: forgetting, moving, checking and removing a user are loops over it.

A part that is not in the list is covered by none of them; a test compares the list with what a home has.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.health import CheckedDatabase, take_rows
from memoranda.storage.home_database import APPLICATION_ID, FILE_NAME, HomeDatabase, HomeEngine
from memoranda.storage.lazy_database import LazyDatabase, opened_for_everyone, users_of
from memoranda.storage.salvage.rebuild import DamagedDatabase
from memoranda.storage.schema import STATE_META, Schema
from memoranda.storage.sqlite.database import Database
from memoranda.support.health_issues import HealthIssue


def component_schemas() -> list[Schema]:
    """The tables of every part of a home that keeps data on a server."""
    from memoranda.memory.curated.schema import SCHEMA as CURATED  # noqa: PLC0415
    from memoranda.memory.record.schema import SCHEMA as RECORD  # noqa: PLC0415

    return [RECORD, CURATED, *part_schemas()]


def part_schemas() -> list[Schema]:
    """The parts beside the record and curated memory: those in `home.db`, and checkpoints in a file of their own."""
    from memoranda.memory.checkpoints.schema import SCHEMA as CHECKPOINTS  # noqa: PLC0415

    return [*home_schemas(), CHECKPOINTS]


def home_schemas() -> list[Schema]:
    """The parts that have their tables in `home.db`, or on a server."""
    from memoranda.agent.review.schema import SCHEMA as REVIEWS  # noqa: PLC0415
    from memoranda.external.holographic.schema import SCHEMA as FACTS  # noqa: PLC0415
    from memoranda.external.outbox.schema import SCHEMA as OUTBOX  # noqa: PLC0415
    from memoranda.external.vendors.sent_record import SCHEMA as SENT  # noqa: PLC0415
    from memoranda.home.access.schema import SCHEMA as SERVICE  # noqa: PLC0415
    from memoranda.importers.state.schema import SCHEMA as IMPORTS  # noqa: PLC0415
    from memoranda.models.spending.schema import SCHEMA as USAGE  # noqa: PLC0415
    from memoranda.upkeep.sync_state import SCHEMA as SYNC  # noqa: PLC0415

    return [REVIEWS, USAGE, SERVICE, IMPORTS, OUTBOX, SENT, FACTS, SYNC]


def part_database(root: Path, schema: Schema, url: str = "") -> LazyDatabase:
    """The tables of a part, in a file of the home or on a server."""
    from memoranda.memory.checkpoints.schema import SCHEMA as CHECKPOINTS  # noqa: PLC0415
    from memoranda.memory.checkpoints.store import open_checkpoints  # noqa: PLC0415

    return open_checkpoints(root, url) if schema is CHECKPOINTS else HomeDatabase(root, schema, server_url=url)


def opened_parts(root: Path, urls: Iterable[str] = ()) -> Iterator[tuple[Engine, Schema]]:
    """Each part in the files of a home, if it has them, and on servers, for everyone; closed at the end."""
    with ExitStack() as stack:
        for url in ("", *dict.fromkeys(filter(None, urls))):
            for schema in part_schemas():
                database = stack.enter_context(closing(part_database(root, schema, url)))
                if database.exists():
                    yield database.open().acting_for(None, everyone=True), schema


def users_with_rows(root: Path, url: str) -> set[str]:
    """The users that any part has rows of."""
    return {user for engine, schema in opened_parts(root, (url,)) for user in users_of(engine, schema.user_tables)}


def check_parts(root: Path, in_use: Sequence[str], setting: Path = Path(), url: str = "") -> Iterator[HealthIssue]:
    """What is wrong with rows in `home.db`, or on a server that the file `setting` names.

    `in_use` are the names of the providers in use.
    """
    from memoranda.external.checks import check_jobs  # noqa: PLC0415
    from memoranda.memory.checkpoints.store import check_server_checkpoints  # noqa: PLC0415

    path, has = (setting, "names a server that has") if url else (root / FILE_NAME, "has")
    for schema in home_schemas():
        if schema.check_rows is None:
            continue
        with opened_for_everyone(part_database(root, schema, url)) as engine, engine.reading() as connection:
            issues = list(schema.check_rows(connection, bool(url)))
        for issue in issues:
            repair = None if issue.repair is None else partial(_repair, root, schema, url, issue.repair)
            yield HealthIssue(issue.severity, path, f"{has} {issue.problem}", issue.remedy, repair, issue.harmless)
    yield from check_jobs(root, setting, url, in_use)
    yield from check_server_checkpoints(root, setting, url) if url else ()


def _repair(root: Path, schema: Schema, url: str, repair: Callable[[Connection], str]) -> str:
    with opened_for_everyone(part_database(root, schema, url)) as engine, engine.writing() as connection:
        return repair(connection)


class CheckedHome(CheckedDatabase):
    """`home.db` with the tables of all parts."""

    def open(self, path: Path | None = None) -> Database:
        engine = HomeEngine(path or self.path, 2.0)
        try:
            for schema in home_schemas():
                engine.create_tables(schema)
        except BaseException:
            engine.close()
            raise
        return engine


def checked_home(root: Path, in_use: Sequence[str] = ()) -> CheckedHome:
    """For the doctor: what is wrong with `home.db`, and how to save what can still be read."""

    def check_content(database: Database) -> Iterator[HealthIssue]:
        return check_parts(root, in_use)

    def save(damaged: DamagedDatabase, fresh: Path) -> str:
        tables = [table for schema in home_schemas() for table in schema.tables]
        with closing(store.open(fresh)) as database, database.writing() as connection:
            count = sum(take_rows(connection, damaged, table) for table in (*tables, STATE_META))
            for statement in (each for schema in home_schemas() for each in schema.after_salvage):
                connection.execute(statement)
        return f"{count:,} rows"

    store = CheckedHome(root / FILE_NAME, APPLICATION_ID, home_schemas()[0], check_content, save)
    return store
