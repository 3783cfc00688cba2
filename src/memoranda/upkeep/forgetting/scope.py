"""Whose data a request to forget covers: the home's owner, one user, or each of them in turn."""

import re
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from memoranda.external.holographic.user_facts import CACHE
from memoranda.home import config
from memoranda.memory.checkpoints.passages import users_with_checkpoints
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
from memoranda.support.home import Home, decode_user_id, encode_user_id
from memoranda.upkeep.forgetting.home_stores import checkpoints_of, existing_record, memories_of
from memoranda.upkeep.home_tables import component_schemas


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
    folders += [path.stem.removeprefix("holographic-") for path in home.root.glob("holographic-*.db")]
    return {name for name in map(decode_user_id, folders) if name}


def _users_in_store(home: Home, server_url: str) -> set[str]:
    found: set[str | None] = set()
    location = existing_record(home, server_url)
    if location is not None:
        with closing(open_store(location)) as store, closing(memories_of(home, server_url)) as memories:
            found |= {*store.passages.users(), *store.item_passages.users(), *memories.users()}
    with closing(checkpoints_of(home, server_url)) as checkpoints:
        if checkpoints.exists():
            found |= {*users_with_checkpoints(checkpoints.open().acting_for(None, everyone=True))}
    return {name for name in found if name}


def _user_folder(path: Path) -> str | None:
    """The encoded id of the user whose folder or database a path is in; None for the home's own files."""
    parts = path.parts
    if len(parts) > 2 and parts[:2] in (("memories", "users"), ("skills", ".users")):
        return parts[2]
    if len(parts) > 1 and parts[0] == "byterover-users":
        return parts[1]
    if len(parts) > 2 and parts[:2] == ("logs", "users"):
        return parts[2].partition(".")[0]
    name = parts[-1] if parts and (len(parts) == 1 or parts[0] == CACHE) else ""
    if name.startswith("holographic-"):
        return re.split(r"\.(?:db|lock)", name.removeprefix("holographic-"))[0]
    return None
