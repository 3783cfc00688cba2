"""Health checks and repairs of `holographic.db`: words and vectors are rebuilt from the facts."""

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
    STATE_META,
    WORDS,
)
from memoranda.external.holographic.word_index import store_words
from memoranda.storage.health import CheckedDatabase, check_store, take_rows
from memoranda.storage.salvage.rebuild import DamagedDatabase
from memoranda.storage.sqlite.database import Connection, Database
from memoranda.support.health_issues import HealthIssue


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


def _rebuild_words(connection: Connection) -> int:
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


def _facts_without_links(connection: Connection) -> list[int]:
    """The facts that had entities, but lost all of them."""
    rows = connection.execute(
        "SELECT fact_id FROM facts WHERE entity_count > 0 AND fact_id NOT IN (SELECT fact_id FROM fact_entities)"
    )
    return [row[0] for row in rows]
