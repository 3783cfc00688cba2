"""Health checks and repairs of the caches of facts, which must find all of them.

A cache with a problem is deleted, and filled again when it is next used.
"""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from memoranda.errors import CorruptStoreError
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.schema import APPLICATION_ID, CACHE_SCHEMA
from memoranda.external.holographic.shared_facts import CACHE
from memoranda.external.holographic.user_facts import delete_cache, lost_store, user_of
from memoranda.storage.health import check_file
from memoranda.storage.home_database import FILE_NAME
from memoranda.storage.sqlite.database import Database
from memoranda.storage.sqlite.engine import open_sqlite_engine
from memoranda.support.health_issues import HealthIssue


def check_caches(home: Path) -> Iterator[HealthIssue]:
    """The issues in the caches of the home's owner and of each user of a gateway."""
    for path in sorted((home / CACHE).glob("holographic*.db")):
        user = user_of(path)
        if user is not None and lost_store(home, path):
            yield HealthIssue(
                "error",
                home / FILE_NAME,
                "was lost or replaced: its spend ledger, API keys and log of imports are gone, and the facts of "
                f"{user or 'the owner'} are only in {path.name}",
                "restore a backup, or put the facts back from their cache, which their next use does as well",
                partial(_put_back, home, user),
            )
            continue
        yield from check_file(path, partial(_check_cache, path), partial(_cache_issue, path))


def _put_back(home: Path, user: str) -> str:
    with closing(FactStore(home, user)) as store:
        store.refresh()
        return f"{len(store.all_rows()):,} facts are in {FILE_NAME} again"


def _check_cache(path: Path) -> Iterator[HealthIssue]:
    with closing(open_sqlite_engine(path, CACHE_SCHEMA, APPLICATION_ID, wait=2.0, durable=False)) as database:
        problems = database.check(thorough=True)
        problem = f"is damaged: {problems[0]}" if problems else _find_problem(database)
    if problem:
        yield _cache_issue(path, problem)


def _cache_issue(path: Path, problem: str) -> HealthIssue:
    return HealthIssue(
        "warning",
        path,
        problem,
        "delete it: it is filled again from the facts when they are next used",
        lambda: delete_cache(path),
        harmless=True,
    )


def _find_problem(database: Database) -> str:
    """The problem that prevents a search from finding facts; empty if there is none."""
    if database.read_only:
        return ""
    try:
        with database.writing() as connection:
            connection.execute("INSERT INTO fact_words (fact_words) VALUES ('integrity-check')")
            (wordless,) = connection.execute(
                "SELECT count(*) FROM facts WHERE fact_id NOT IN (SELECT rowid FROM fact_words)"
            ).fetchone()
            (extra,) = connection.execute(
                "SELECT count(*) FROM fact_words WHERE rowid NOT IN (SELECT fact_id FROM facts)"
            ).fetchone()
            (without_vector,) = connection.execute(
                "SELECT count(*) FROM facts WHERE encoding <> '' AND fact_id NOT IN (SELECT fact_id FROM vectors)"
            ).fetchone()
    except CorruptStoreError as error:
        return f"has a damaged word index ({error.__cause__})"
    count = max(wordless + extra, without_vector)
    return f"has missing or unused words or vectors of {count} facts" if count else ""
