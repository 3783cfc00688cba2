"""Runs the tests of curated memory on both storages, files and tables, unless a test is about files as such."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.memory.curated.schema import SCHEMA
from memoranda.memory.curated.store import MemoryStore
from memoranda.storage.engine import Engine
from memoranda.storage.lazy_database import open_server_engine
from tests.memory.curated.storages import RowPath, Tables, open_store
from tests.storage.postgres.servers import Server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    only_files = metafunc.definition.get_closest_marker("about_files")
    kinds = ["files"] if only_files else ["files", pytest.param("tables", marks=pytest.mark.slow)]
    if "memory_storage" in metafunc.fixturenames:
        metafunc.parametrize("memory_storage", kinds, indirect=True)


@pytest.fixture(autouse=True)
def memory_storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where `open_store` keeps memories in this test."""
    kind: str = request.param
    if kind == "tables":
        Tables.engine = request.getfixturevalue("table_engine")
    yield kind
    Tables.engine = None


@pytest.fixture(scope="session")
def table_engine(postgres_server: Server) -> Iterator[Engine]:
    """A database with the tables of curated memory, shared by all tests: each uses users of its own."""
    with postgres_server.schema() as url:
        engine = open_server_engine(url, SCHEMA)
        yield engine
        engine.close()


@pytest.fixture
def directory(tmp_path: Path, memory_storage: str) -> Path:
    path = tmp_path / "home" / "memories"
    return path if memory_storage == "files" else RowPath(path)


@pytest.fixture
def store(directory: Path) -> MemoryStore:
    loaded = open_store(directory)
    loaded.load_from_disk()
    return loaded
