"""Whose data a request to forget covers (the owner, one user, or each of them in turn), and which stores have it.

The stores are in the files of the home, or on a server. A server URL names one store of a fleet; without one, it is the
store that the settings of the home name.
"""

import re
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path

from memoranda.external.holographic.shared_facts import CACHE
from memoranda.home import config
from memoranda.home.memory_store import CuratedMemories
from memoranda.home.session_db import SessionDB
from memoranda.memory.checkpoints.store import open_checkpoints
from memoranda.memory.record.schema import ITEMS, SESSIONS
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
from memoranda.storage.lazy_database import LazyDatabase, users_of
from memoranda.storage.orphaned_wal import database_exists
from memoranda.support.home import Home, decode_user_id, encode_user_id
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.home_tables import component_schemas, users_with_rows

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


@dataclass(frozen=True, slots=True)
class ForgetScope:
    """One profile of a home, for one user of it. One user's request never touches what belongs to another."""

    home: Home
    user: str | None = None
    server_url: str = field(default="", repr=False)
    """The server that has the record and the tables of other parts, with the password; "" if the home has them."""
    shared_url: str = field(default="", repr=False)
    """The server of a fleet that has what its users share, such as keys and spending; "" if that is `server_url`."""

    @classmethod
    def at(cls, root: Path) -> "ForgetScope":
        """The owner's files in a directory."""
        return cls(Home(root))

    @property
    def sessions(self) -> Scope:
        return Scope.of(self.user)

    @property
    def queue(self) -> str:
        """The scope of deliveries in the outbox."""
        return self.user or ""

    def owns(self, path: Path) -> bool:
        """Whether a file of the home belongs to this scope; logs and reports belong to the home's owner."""
        folder = _user_folder(path.relative_to(self.home.root))
        return folder == (None if self.user is None else encode_user_id(self.user))


def scopes_of(home: Home, user: str | None, *, all_users: bool = False) -> list[ForgetScope]:
    """The profiles of a home (all of them for the default one), each for one user or for everyone."""
    names = home.profiles() if home.base == home.root else [home.profile]
    homes = [Home.at(home.base, name) for name in names]
    return [scope for each in homes for scope in _scopes_in(each, user, all_users=all_users)]


def known_users(home: Home) -> list[str]:
    """Every user of a gateway that has something in a home, or in a store of its fleet."""
    urls = config.store_urls(home, config.load(home)) or [config.server_url(home)]
    return sorted(_users_with_files(home).union(*(_users_in_store(home, url) for url in urls)))


def _scopes_in(home: Home, user: str | None, *, all_users: bool) -> list[ForgetScope]:
    urls = config.store_urls(home, config.load(home))
    if not urls:
        url = config.server_url(home)
        return [ForgetScope(home, one, url) for one in ([None, *known_users(home)] if all_users else [user])]
    # Only a fleet needs the client of PostgreSQL.
    from memoranda.home.shards.directory import Directory  # noqa: PLC0415

    with closing(Directory(urls, component_schemas())) as fleet:

        def in_current_store(one: str | None) -> ForgetScope:
            return ForgetScope(home, one, urls[fleet.store_of(one)], urls[0])

        if not all_users:
            return [in_current_store(user)]
        stored = [(one, url) for url in urls for one in sorted(_users_in_store(home, url))]
        others = sorted(_users_with_files(home) - {one for one, _ in stored})
        return [
            in_current_store(None),
            *(ForgetScope(home, one, url, urls[0]) for one, url in stored),
            *map(in_current_store, others),
        ]


def _users_with_files(home: Home) -> set[str]:
    folders = [path.name for path in home.user_memories()]
    folders += [path.name for path in (home.root / "skills" / ".users").glob("*")]
    return {name for name in map(decode_user_id, folders) if name}


def _users_in_store(home: Home, server_url: str) -> set[str]:
    found = users_with_rows(home.root, server_url)
    location = existing_record(home, server_url)
    if location is not None:
        with closing(open_store(location)) as store, closing(memories_of(home, server_url)) as memories:
            found |= {*users_of(store.engine, {SESSIONS.name: "user_id", ITEMS.name: "user_id"}), *memories.users()}
    return found


def _user_folder(path: Path) -> str | None:
    """The encoded id of the user whose folder or database a path is in; None for the home's own files."""
    parts = path.parts
    if len(parts) > 2 and parts[:2] in (("memories", "users"), ("skills", ".users")):
        return parts[2]
    if len(parts) > 1 and parts[0] == "byterover-users":
        return parts[1]
    if len(parts) > 2 and parts[:2] == ("logs", "users"):
        return parts[2].partition(".")[0]
    if len(parts) > 1 and parts[0] == CACHE and parts[1].startswith("holographic-"):
        return re.split(r"\.(?:db|lock)", parts[1].removeprefix("holographic-"))[0]
    return None
