"""`home.db`: what the parts of a home keep beside its conversations, in the tables that a server has.

Every part has a schema of its own with a version of its own. The parts of a home that are open in one process share the
connections to the file, as they share those to a server.
"""

from pathlib import Path

from memoranda.storage.engine import Engine
from memoranda.storage.files.fork_lock import ForkLock
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Schema
from memoranda.storage.sqlite.engine import SqliteEngine
from memoranda.storage.sqlite.schema_upgrade import upgrade_component

FILE_NAME = "home.db"
APPLICATION_ID = int.from_bytes(b"MemH", "big")

_registry = ForkLock()
_engines: "dict[tuple[Path, float], HomeEngine]" = {}


class HomeEngine(SqliteEngine):
    """The connections to one `home.db`; closed when the last of its users has closed it."""

    def __init__(self, path: Path, wait: float) -> None:
        super().__init__(path, application_id=APPLICATION_ID, wait=wait)
        self.users = 1

    def create_tables(self, schema: Schema) -> None:
        upgrade_component(self, schema)

    def close(self) -> None:
        with _registry:
            self.users -= 1
            if self.users:
                return
            if _engines.get((self.path, self._wait)) is self:
                del _engines[self.path, self._wait]
        super().close()


class HomeDatabase(LazyDatabase):
    """The tables of one part of a home: in `home.db`, or on the server that has the record."""

    def __init__(self, root: Path, schema: Schema, *, server_url: str = "", wait: float = 10.0) -> None:
        super().__init__(root / FILE_NAME, schema, APPLICATION_ID, server_url=server_url, wait=wait)

    def _open(self) -> Engine:
        if self.server_url:
            return super()._open()
        engine = _shared_engine(self.path, self._wait)
        try:
            engine.create_tables(self._schema)
        except BaseException:
            engine.close()
            raise
        return engine


def _shared_engine(path: Path, wait: float) -> HomeEngine:
    with _registry:
        engine = _engines.get((path, wait))
        if engine is None:
            engine = _engines[path, wait] = HomeEngine(path, wait)
        else:
            engine.users += 1
        return engine
