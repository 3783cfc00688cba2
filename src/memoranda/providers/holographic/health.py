"""What the doctor looks at in `holographic.db`: the facts are the truth, words and vectors follow from them."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from memoranda.db.health import CheckedDatabase, check_store, take_rows
from memoranda.db.salvage.rebuild import DamagedDatabase
from memoranda.db.sqlite import Connection, Database
from memoranda.errors import CorruptStoreError
from memoranda.providers.holographic.fact_store import FactStore
from memoranda.providers.holographic.schema import (
    ALIASES,
    APPLICATION_ID,
    ENTITIES,
    FACT_ENTITIES,
    FACTS,
    SCHEMA,
    STATE_META,
    WORDS,
)
from memoranda.providers.holographic.word_index import store_words
from memoranda.support.health_issues import HealthIssue


def check(home: Path) -> Iterator[HealthIssue]:
    """Of the home itself and of each user of a gateway."""
    for path in sorted(home.glob("holographic*.db")):
        yield from check_store(_facts(path))


def _facts(path: Path) -> CheckedDatabase:
    def inside(database: Database) -> Iterator[HealthIssue]:
        wrong = _not_found(database)
        if wrong:
            yield HealthIssue("warning", path, wrong, "make them anew from the facts", lambda: _mend(path))

    def save(damaged: DamagedDatabase, fresh: Path) -> str:
        with closing(store.open(fresh)) as database, database.writing() as connection:
            for table in (ENTITIES, ALIASES, FACT_ENTITIES, STATE_META):
                take_rows(connection, damaged, table)
            count = take_rows(connection, damaged, FACTS)
            _derive(connection)
            unlinked = _unlinked(connection)
        with closing(FactStore(fresh)) as facts:
            for fact_id in unlinked:
                facts.describe_again(fact_id)
        return f"{count:,} facts"

    store = CheckedDatabase(path, APPLICATION_ID, SCHEMA, inside, save)
    return store


def _not_found(database: Database) -> str:
    """What keeps facts from being found, if anything."""
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
            (bare,) = connection.execute(
                "SELECT count(*) FROM facts WHERE encoding <> '' AND fact_id NOT IN (SELECT fact_id FROM vectors)"
            ).fetchone()
    except CorruptStoreError as error:
        return f"has a damaged index of its words ({error.__cause__})"
    wrong = max(wordless + extra, bare)
    return f"has {wrong} facts whose words or vectors are missing or left over" if wrong else ""


def _mend(path: Path) -> str:
    with closing(_facts(path).open()) as database, database.writing() as connection:
        return f"{_derive(connection):,} facts can be found again"


def _derive(connection: Connection) -> int:
    """Index the words of every fact anew; vectors are encoded again when they are next needed."""
    connection.execute("DROP TABLE fact_words")
    connection.execute(WORDS)
    rows = connection.execute("SELECT fact_id, content, tags FROM facts").fetchall()
    for fact_id, content, tags in rows:
        store_words(connection, fact_id, content, tags.split(","))
    connection.execute("UPDATE facts SET encoding = ''")
    connection.execute("DELETE FROM vectors WHERE fact_id NOT IN (SELECT fact_id FROM facts)")
    connection.execute(
        "DELETE FROM fact_entities WHERE fact_id NOT IN (SELECT fact_id FROM facts)"
        " OR entity_id NOT IN (SELECT entity_id FROM entities)"
    )
    return len(rows)


def _unlinked(connection: Connection) -> list[int]:
    """Facts that had entities, of which none could be read."""
    rows = connection.execute(
        "SELECT fact_id FROM facts WHERE entity_count > 0 AND fact_id NOT IN (SELECT fact_id FROM fact_entities)"
    )
    return [row[0] for row in rows]
