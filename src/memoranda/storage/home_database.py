"""`home.db`: what the parts of a home keep beside its conversations, in the tables that a server has."""

from pathlib import Path

from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.schema import Schema

FILE_NAME = "home.db"
APPLICATION_ID = int.from_bytes(b"MemH", "big")


class HomeDatabase(LazyDatabase):
    """The tables of one part of a home: in `home.db`, or on the server that has the record."""

    def __init__(self, root: Path, schema: Schema, *, server_url: str = "", wait: float = 10.0) -> None:
        super().__init__(root / FILE_NAME, schema, APPLICATION_ID, server_url=server_url, wait=wait)
