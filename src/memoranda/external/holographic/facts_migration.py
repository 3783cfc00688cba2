"""Copies the facts of a user between a file of a home and a server, with their numbers, counts and dates."""

from contextlib import closing
from pathlib import Path

from memoranda.errors import StorageError
from memoranda.external.holographic.cached_fact_store import CachedFactStore, forget_state, read_rows
from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.shared_facts import SharedFact, SharedFacts
from memoranda.external.holographic.transferred_facts import given_names

_EVERYTHING = -1


def export_facts(path: Path, url: str, user: str) -> int:
    """Copy the facts of a file to a server, and verify them; can be repeated. Returns how many facts there are."""
    with closing(FactStore(path)) as store, store.database.reading() as connection:
        numbers = [number for (number,) in connection.execute("SELECT fact_id FROM facts ORDER BY fact_id")]
        given = given_names(connection)
        rows = [SharedFact(fact.fact_id, fact.values, given.get(fact.fact_id))
                for fact in read_rows(connection, numbers)]  # fmt: skip
    with closing(SharedFacts(url, user)) as shared:
        if rows:
            with shared.changing() as connection:
                shared.write(connection, rows)
        stored = [fact for fact in shared.read_after(_EVERYTHING).facts if fact.values is not None]
    if [fact[:2] for fact in stored] != [fact[:2] for fact in rows]:
        raise StorageError(f"The facts of {path.name} differ on the server. Was the file changed during the copy?")
    return len(rows)


def import_facts(url: str, user: str, path: Path) -> int:
    """Copy the facts of a server into a file; can be repeated. Returns how many facts there are."""
    with closing(CachedFactStore(path, url, user)) as store:
        store.refresh()
        with store.database.writing() as connection:
            forget_state(connection)
            (count,) = connection.execute("SELECT count(*) FROM facts").fetchone()
    path.with_suffix(".lock").unlink(missing_ok=True)
    return int(count)
