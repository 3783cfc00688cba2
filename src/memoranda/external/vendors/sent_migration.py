"""Copies the records of what vendors have received between the files of a home and a server."""

from contextlib import closing
from pathlib import Path

from memoranda.errors import ProviderError
from memoranda.external.vendors.peer_names import read_peer_name
from memoranda.external.vendors.sent_record import APPLICATION_ID, SCHEMA, SENT, SERVER_SCHEMA, sent_file
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.support.durable_files import make_private_directory

_COLUMNS = [column.name for column in SENT.columns if column.name != "id"]
_KEY = "scope, kind, local_id"


def copy_sent_to_server(home: Path, url: str) -> int:
    """Copy the rows of all providers; rows that are there already stay. Returns how many the files have."""
    count = 0
    for path in sorted((home / "providers").glob("*.db")):
        with closing(LazyDatabase(path, SCHEMA, APPLICATION_ID)) as file, file.open().reading() as connection:
            rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM sent ORDER BY id").fetchall()
        values = [(path.stem, _user_of(row[0]), *row) for row in rows]
        server = LazyDatabase(path, SERVER_SCHEMA, APPLICATION_ID, server_url=url)
        with closing(server), server.open().writing() as connection:
            connection.executemany(
                f"INSERT INTO sent (provider, user_id, {', '.join(_COLUMNS)}) VALUES (?, ?{', ?' * len(_COLUMNS)})"
                f" ON CONFLICT (provider, user_id, {_KEY}) DO NOTHING",
                values,
            )
        count += len(rows)
    return count


def copy_sent_to_files(url: str, home: Path) -> int:
    """Copy the rows of a server to the files of their providers; returns how many the server has."""
    server = LazyDatabase(home, SERVER_SCHEMA, APPLICATION_ID, server_url=url)
    with closing(server), server.open().reading() as connection:
        rows = connection.execute(f"SELECT provider, {', '.join(_COLUMNS)} FROM sent ORDER BY id").fetchall()
    for provider in sorted({row[0] for row in rows}):
        path = sent_file(home, provider)
        make_private_directory(path.parent)
        with closing(LazyDatabase(path, SCHEMA, APPLICATION_ID)) as file, file.open().writing() as connection:
            connection.executemany(
                f"INSERT INTO sent ({', '.join(_COLUMNS)}) VALUES (?{', ?' * (len(_COLUMNS) - 1)})"
                f" ON CONFLICT ({_KEY}) DO NOTHING",
                [row[1:] for row in rows if row[0] == provider],
            )
    return len(rows)


def _user_of(scope: str) -> str:
    """The user of a name at vendors; the owner if the name does not tell."""
    try:
        return read_peer_name(scope)[1] or ""
    except ProviderError:
        return ""
