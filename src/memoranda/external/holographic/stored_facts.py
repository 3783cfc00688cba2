"""The facts of one user as they are stored, for a program that shows them without starting the provider."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.open_facts import facts_path, open_facts
from memoranda.storage.orphaned_wal import database_exists


@contextmanager
def stored_facts(home: Path, user: str | None, server_url: str = "") -> Iterator[FactStore | None]:
    """Opens the facts of a user, None for the home's owner; yields None if there are none yet.

    `server_url` names the server that has them, if they are not in the home.
    """
    if not server_url and not database_exists(facts_path(home, user or "")):
        yield None
        return
    with closing(open_facts(home, user or "", server_url)) as store:
        store.refresh()
        yield store
