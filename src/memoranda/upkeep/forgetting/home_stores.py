"""Where a home keeps its record and its curated memories: in its files, or on a server.

A server URL names one store of a fleet; without one, it is the store that the settings of the home name.
"""

from dataclasses import replace
from pathlib import Path

from memoranda.home import config
from memoranda.home.memory_store import CuratedMemories
from memoranda.home.session_db import SessionDB
from memoranda.memory.checkpoints.store import open_checkpoints
from memoranda.storage.lazy_database import LazyDatabase
from memoranda.storage.orphaned_wal import database_exists
from memoranda.support.home import Home

SERVER_NOTE = (
    "The server keeps deleted rows in free space until it vacuums its tables, and in its log (WAL), replicas and "
    "backups as long as its administrator has set: Memoranda cannot read or change those."
)
OTHER_NODES_NOTE = (
    "Other nodes that use this server have search indexes of their own, which this command cannot read. A node whose "
    "service runs removes the words from them when it reads the change, mostly within seconds; one that is off does so "
    "after its next start. To be sure, delete the files 'server-*.index.*' of that node: searches build them again."
)


def uses_server(home: Home) -> bool:
    """Whether the record of a home is on a server."""
    return bool(config.load(home).store.url)


def existing_record(home: Home, server_url: str = "") -> Path | str | None:
    """The path or the URL of the record; None if the home has none."""
    location = config.record_location(home, _settings(home, server_url))
    return location if isinstance(location, str) or database_exists(location) else None


def open_record_of(home: Home, server_url: str = "") -> SessionDB:
    """The sessions of a home, wherever they are."""
    loaded = _settings(home, server_url)
    return SessionDB(
        config.record_location(home, loaded), index_directory=home.root, user_index_mb=loaded.recall.user_index_mb
    )


def checkpoints_of(home: Home, server_url: str = "") -> LazyDatabase:
    """The checkpoints of a home, wherever they are; the caller closes them."""
    return open_checkpoints(home.root, config.record_location(home, _settings(home, server_url)))


def memories_of(home: Home, server_url: str = "") -> CuratedMemories:
    """The curated memories of a home, wherever they are; the caller closes them."""
    return CuratedMemories(home, _settings(home, server_url))


def _settings(home: Home, server_url: str) -> config.Config:
    loaded = config.load(home)
    return replace(loaded, store=replace(loaded.store, url=server_url, servers=())) if server_url else loaded
