"""The one list of the tables of a home's parts: forgetting, moving, checking and removing a user are loops over it.

A part that is not in the list is covered by none of them; a test compares the list with what a home has.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.health import CheckedDatabase
from memoranda.storage.home_database import APPLICATION_ID, FILE_NAME, HomeDatabase
from memoranda.storage.lazy_database import LazyDatabase, opened_for_everyone, users_of
from memoranda.storage.schema import Schema
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


def check_parts(
    root: Path, schemas: Sequence[Schema], in_use: Sequence[str], path: Path, url: str = ""
) -> Iterator[HealthIssue]:
    """What is wrong with the rows of parts: in the file `path`, or on a server that it names.

    `in_use` are the names of the providers in use.
    """
    from memoranda.external.checks import check_jobs  # noqa: PLC0415

    has = "names a server that has" if url else "has"
    for schema in schemas:
        if schema.check_rows is not None:
            with opened_for_everyone(part_database(root, schema, url)) as engine, engine.reading() as connection:
                issues = list(schema.check_rows(connection, bool(url)))
            for issue in issues:
                repair = None if issue.repair is None else partial(_repair, root, schema, url, issue.repair)
                yield HealthIssue(issue.severity, path, f"{has} {issue.problem}", issue.remedy, repair, issue.harmless)
        if schema.name == "outbox":
            yield from check_jobs(root, path, has, url, in_use)


def _repair(root: Path, schema: Schema, url: str, repair: Callable[[Connection], str]) -> str:
    with opened_for_everyone(part_database(root, schema, url)) as engine, engine.writing() as connection:
        return repair(connection)


def checked_files(root: Path, in_use: Sequence[str] = ()) -> list[CheckedDatabase]:
    """For the doctor: the files with the tables of parts."""
    from memoranda.memory.checkpoints import schema as checkpoints  # noqa: PLC0415

    home = (root / FILE_NAME, APPLICATION_ID, home_schemas())
    others = (root / checkpoints.FILE_NAME, checkpoints.APPLICATION_ID, [checkpoints.SCHEMA])
    return [
        CheckedDatabase(path, number, schemas, partial(check_parts, root, schemas, in_use, path))
        for path, number, schemas in (home, others)
    ]
