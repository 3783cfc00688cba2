"""Whose data a request to forget covers: the home's owner, one user, or each of them in turn."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memoranda.db.orphaned_wal import database_exists
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import open_store
from memoranda.support.home import Home, decode_user_id, encode_user_id


@dataclass(frozen=True, slots=True)
class ForgetScope:
    """One profile of a home, for one user of it. One user's request never touches what belongs to another."""

    home: Home
    user: str | None = None

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
    if not all_users:
        return [ForgetScope(each, user) for each in homes]
    return [ForgetScope(each, one) for each in homes for one in [None, *known_users(each)]]


def known_users(home: Home) -> list[str]:
    """Every user of a gateway that has something in a home."""
    folders = [path.name for path in home.user_memories()]
    folders += [path.name for path in (home.root / "skills" / ".users").glob("*")]
    folders += [path.stem.removeprefix("holographic-") for path in home.root.glob("holographic-*.db")]
    found = {decode_user_id(name) for name in folders}
    if database_exists(home.state_db):
        with closing(open_store(home.state_db)) as store:
            found |= set(store.passages.users())
    return sorted(name for name in found if name)


def _user_folder(path: Path) -> str | None:
    """The encoded id of the user whose folder or database a path is in; None for the home's own files."""
    parts = path.parts
    if len(parts) > 2 and parts[:2] in (("memories", "users"), ("skills", ".users")):
        return parts[2]
    if len(parts) > 1 and parts[0] == "byterover-users":
        return parts[1]
    if parts and parts[0].startswith("holographic-"):
        return parts[0].removeprefix("holographic-").partition(".db")[0]
    return None
