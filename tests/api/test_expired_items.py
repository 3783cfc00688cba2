"""Expired items are removed from the record by a long-running process, on a file and on a server."""

import threading
from pathlib import Path

import pytest

import memoranda
from memoranda.api.maintenance import remove_expired_items
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
from tests.timing import wait_until

pytestmark = pytest.mark.slow


def _remove_once(location: Path | str) -> None:
    stopped = threading.Event()
    thread = threading.Thread(target=remove_expired_items, args=(location, stopped))
    thread.start()
    try:
        with open_store(location) as store:
            wait_until(lambda: store.item_passages.count() == 0)
    finally:
        stopped.set()
        thread.join()


def test_a_file_loses_what_has_expired(tmp_path: Path) -> None:
    """For all users; without a record nothing is created."""
    path = tmp_path / "state.db"
    stopped = threading.Event()
    stopped.set()
    remove_expired_items(path, stopped)
    assert not path.exists()
    with memoranda.open(tmp_path, user="ana") as memory:
        memory.items.put(("n",), "k", 1, ttl=0.001)
    _remove_once(path)


def test_a_server_loses_what_has_expired(postgres_url: str) -> None:
    """The location is the URL of the record."""
    with open_store(postgres_url) as store:
        store.scoped(Scope.of("ana")).items.put(("n",), "k", 1, ttl=0.001)
    _remove_once(postgres_url)
