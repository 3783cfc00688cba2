"""Health checks and repairs of facts: in `holographic.db`, and on a server.

In a file, words and vectors are rebuilt from the facts. On a server, every node must see all facts.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.errors import CorruptStoreError
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.schema import (
    ALIASES,
    APPLICATION_ID,
    ENTITIES,
    FACT_ENTITIES,
    FACTS,
    SCHEMA,
    SERVER_SCHEMA,
    WORDS,
)
from memoranda.external.holographic.word_index import store_words
from memoranda.storage.connection import Connection
from memoranda.storage.health import CheckedDatabase, check_store, take_rows
from memoranda.storage.lazy_database import open_server_engine
from memoranda.storage.salvage.rebuild import DamagedDatabase
from memoranda.storage.schema import STATE_META
from memoranda.storage.sqlite.database import Connection as SqliteConnection
from memoranda.storage.sqlite.database import Database
from memoranda.support.health_issues import HealthIssue

# Nodes ask for what came after the number they know, so a row with a higher one than the user's counter is overlooked.
_OVERLOOKED = (
    "SELECT f.user_id, max(f.revision), count(*) FROM shared_facts f"
    " LEFT JOIN fact_revisions r ON r.user_id = f.user_id"
    " WHERE f.revision > COALESCE(r.revision, 0) GROUP BY f.user_id ORDER BY f.user_id"
)


def check(home: Path) -> Iterator[HealthIssue]:
    """The issues in the databases of the home's owner and of each user of a gateway."""
    for path in sorted(home.glob("holographic*.db")):
        yield from check_store(_checked_database(path))


def _checked_database(path: Path) -> CheckedDatabase:
    def check_content(database: Database) -> Iterator[HealthIssue]:
        problem = _find_problem(database)
        if problem:
            yield HealthIssue("warning", path, problem, "rebuild them from the facts", lambda: _rebuild_derived(path))

    def save(damaged: DamagedDatabase, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            for table in (ENTITIES, ALIASES, FACT_ENTITIES, STATE_META):
                take_rows(connection, damaged, table)
            count = take_rows(connection, damaged, FACTS)
            _rebuild_words(connection)
            unlinked = _facts_without_links(connection)
        with closing(FactStore(fresh)) as facts:
            for fact_id in unlinked:
                facts.relink(fact_id)
        return f"{count:,} facts"

    store = CheckedDatabase(path, APPLICATION_ID, SCHEMA, check_content, save)
    return store


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


def _rebuild_derived(path: Path) -> str:
    with closing(_checked_database(path).open()) as database, database.writing() as connection:
        return f"{_rebuild_words(connection):,} facts can be found again"


def _rebuild_words(connection: SqliteConnection) -> int:
    """Rebuilds the word index; vectors are encoded again when they are next used."""
    connection.execute("DROP TABLE fact_words")
    connection.execute(WORDS)
    rows = connection.execute("SELECT fact_id, content, tags FROM facts").fetchall()
    for fact_id, content, tags in rows:
        store_words(connection, fact_id, content, tags.split(","))
    connection.execute("UPDATE facts SET encoding = ''")
    for table in ("vectors", "meanings"):
        connection.execute(f"DELETE FROM {table} WHERE fact_id NOT IN (SELECT fact_id FROM facts)")
    connection.execute(
        "DELETE FROM fact_entities WHERE fact_id NOT IN (SELECT fact_id FROM facts)"
        " OR entity_id NOT IN (SELECT entity_id FROM entities)"
    )
    return len(rows)


def _facts_without_links(connection: SqliteConnection) -> list[int]:
    """The facts that had entities, but lost all of them."""
    rows = connection.execute(
        "SELECT fact_id FROM facts WHERE entity_count > 0 AND fact_id NOT IN (SELECT fact_id FROM fact_entities)"
    )
    return [row[0] for row in rows]


def check_shared_facts(setting: Path, url: str) -> Iterator[HealthIssue]:
    """Report facts that nodes overlook, and facts that cannot be read; `setting` is the file that names the server."""
    with closing(open_server_engine(url, SERVER_SCHEMA)) as server:
        engine = server.acting_for(None, everyone=True)
        with engine.reading() as connection:
            overlooked = connection.execute(_OVERLOOKED).fetchall()
            unreadable = _count_unreadable(connection)
    if overlooked:
        yield HealthIssue(
            "error",
            setting,
            f"names a server that has {sum(row[2] for row in overlooked):,} facts of {len(overlooked):,} users that "
            "nodes overlook, because the number of the last change is too low",
            "raise that number",
            lambda: _raise_revisions(url),
        )
    if unreadable:
        yield HealthIssue(
            "error",
            setting,
            f"names a server that has {unreadable:,} facts whose names of entities cannot be read",
            "set given_names of those rows of shared_facts to '[]', or restore them from a backup of the server",
        )


def _count_unreadable(connection: Connection) -> int:
    rows = connection.execute("SELECT given_names FROM shared_facts WHERE given_names <> '' AND removed = 0").fetchall()
    return sum(not _is_list(text) for (text,) in rows)


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _raise_revisions(url: str) -> str:
    with (
        closing(open_server_engine(url, SERVER_SCHEMA)) as server,
        server.acting_for(None, everyone=True).writing() as connection,
    ):
        rows = connection.execute(_OVERLOOKED).fetchall()
        connection.executemany(
            "INSERT INTO fact_revisions (user_id, revision) VALUES (?, ?)"
            " ON CONFLICT (user_id) DO UPDATE SET revision = excluded.revision",
            [(user, revision) for user, revision, _ in rows],
        )
    return f"the facts of {len(rows):,} users are complete on every node again"
