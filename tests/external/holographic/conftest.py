"""A store of facts for every test, in memory if the system has such a directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memoranda.external.holographic.fact_store import FactStore
from memoranda.external.holographic.retrieval import Retriever


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += 86_400 * days


@contextmanager
def opened(place: Path, user: str = "", **options: Any) -> Iterator[FactStore]:
    """Opens the store of a home and closes it afterwards."""
    store = FactStore(place, user, **options)
    try:
        store.refresh()
        yield store
    finally:
        store.close()


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        yield Path(name)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(home: Path, clock: Clock) -> Iterator[FactStore]:
    with opened(home, clock=clock) as made:
        yield made


@pytest.fixture
def ask(store: FactStore) -> Retriever:
    return Retriever(store)
