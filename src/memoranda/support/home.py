"""The directory layout of a home: which paths it has, who owns it, and where the files of profiles and users are.

    <home>/config.yaml  .env  memories/MEMORY.md  memories/USER.md      the default profile
    <home>/profiles/<name>/…                                            the same layout for a named profile
    <home>/projects/<project>/MEMORY.md                                 the memory of a project
    <home>/memories/users/<encoded id>/MEMORY.md …                      the memory of one user of a gateway

A `Home` is created once and passed on; no other code derives paths from the environment.
"""

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote

from memoranda.errors import ForeignHomeError, HomeError
from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass

DEFAULT_PROFILE = "default"
PENDING = "pending"
"""The directory, below that of a memory, with the changes that wait for a person."""

# The application id that SQLite stores in a file ("Memo" for Memoranda, zero for most other programs).
APPLICATION_ID = b"Memo"
_APPLICATION_ID_BYTES = slice(68, 72)

# Expressions are compiled when they are first used: most commands need none of these.
_PROFILE_NAME = r"[a-z0-9][a-z0-9_-]{0,63}"
_PLAIN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_MAX_ENCODED_ID = 120
# How the names of what a home contains begin: any of them makes a directory a home, even if most of it is lost.
_HOME_ENTRY = (
    r"config\.yaml|\.env|\.lock|\.backup-|\.turns|state\.|holographic|byterover|providers|plugins|chat_history"
    r"|logs|home\.db|prices\.yaml|\.forgetting|expansions\.json|imports|migration|backups|host-|server-"
    r"|outbox\.|sync\.|checkpoints\.|SOUL\.md|skills|memories|projects|profiles"
)
_NO_ENTRIES = r"\.|lost\+found"
_MAX_FOREIGN_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Home:
    """The directory of one profile, as an absolute path."""

    root: Path
    profile: str = DEFAULT_PROFILE

    @classmethod
    def at(cls, base: Path, profile: str | None = None) -> "Home":
        """The home of a profile below `base`; links in the path are resolved once, here."""
        try:
            base = base.expanduser().resolve()
            base.exists()
        except (OSError, RuntimeError) as error:
            raise HomeError(f"{str(base)[:200]!r} cannot be a home: {error}.") from error
        if profile is None or profile == DEFAULT_PROFILE:
            return cls(base)
        if not re.fullmatch(_PROFILE_NAME, profile):
            raise HomeError(
                f"{profile!r} is not a profile name: use 1 to 64 of a-z, 0-9, '-' and '_', "
                "starting with a letter or digit."
            )
        return cls(base / "profiles" / profile, profile)

    @property
    def base(self) -> Path:
        """The home below which a named profile is; opening it with the profile finds this home again."""
        return self.root if self.profile == DEFAULT_PROFILE else self.root.parent.parent

    @property
    def config_file(self) -> Path:
        return self.root / "config.yaml"

    @property
    def secrets_file(self) -> Path:
        return self.root / ".env"

    @property
    def lock_file(self) -> Path:
        return self.root / ".lock"

    @property
    def state_db(self) -> Path:
        return self.root / "state.db"

    def skills(self, user: str | None = None) -> Path:
        """The skills of the home itself, or those of one user of a gateway."""
        directory = self.root / "skills"
        return directory if user is None else directory / ".users" / encode_user_id(user)

    def memories(self, user: str | None = None) -> Path:
        """The memory directory of the home itself, or of one user in it; raises HomeError if a link leads there.

        A link could lead out of the home, or to another user. The home itself may be a link: `at` resolves it.
        """
        directory = self.root / "memories"
        parts = [directory]
        if user is not None:
            parts += [directory / "users", directory / "users" / encode_user_id(user)]
        for part in parts:
            if os.path.islink(part):
                raise HomeError(
                    f"{part} is a link to {os.path.realpath(part)}, and links to memories are not followed. Put the "
                    "directory itself there; to keep a home elsewhere, link the whole home or set MEMORANDA_HOME."
                )
        return parts[-1]

    def user_memories(self) -> list[Path]:
        """The memory directories of all users that have one, without links."""
        users = self.root / "memories" / "users"
        if not users.is_dir() or users.is_symlink() or users.parent.is_symlink():
            return []
        return sorted(path for path in users.iterdir() if path.is_dir() and not path.is_symlink())

    def linked_memories(self) -> list[Path]:
        """The memory directories that are links, which nothing follows."""
        directory = self.root / "memories"
        users = directory / "users"
        inner = sorted(users.iterdir()) if users.is_dir() and not users.is_symlink() else []
        return [path for path in (directory, users, *inner) if path.is_symlink()]

    def profiles(self) -> list[str]:
        """The names of the profiles below this home, the default one first."""
        directory = self.root / "profiles"
        named = [path.name for path in directory.iterdir() if path.is_dir()] if directory.is_dir() else []
        return [DEFAULT_PROFILE, *sorted(name for name in named if re.fullmatch(_PROFILE_NAME, name))]

    def refuse_if_foreign(self) -> None:
        """Raise when the directory is another program's: its session database, or whatever else it contains."""
        _refuse_unusable(self.root)
        _refuse_other_directory(self.root if self.profile == DEFAULT_PROFILE else self.root.parent.parent)
        _refuse_foreign_database(self.state_db)
        if self.profile != DEFAULT_PROFILE:
            _refuse_foreign_database(self.base / "state.db")


def _refuse_unusable(root: Path) -> None:
    """Raise where no directory can be: at a file or below one, or below a directory that cannot be written to."""
    found = next((path for path in (root, *root.parents) if os.path.exists(path)), root)
    if os.path.isfile(found):
        problem = f"{found} is not a directory"
    elif found != root and not _can_create_in(found):
        problem = f"there is no home at {root}, and {found} cannot be written to"
    else:
        return
    raise HomeError(f"{root} cannot be opened: {problem}. Name another home with --home or MEMORANDA_HOME.")


def _can_create_in(directory: Path) -> bool:
    if not os.access(directory, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        return False
    if os.stat(directory).st_mode & 0o222:
        return True
    # The superuser may write everywhere, except in a file system such as /proc: only an attempt says so.
    attempt = directory / f".memoranda-{os.getpid()}"
    try:
        os.mkdir(attempt)
        os.rmdir(attempt)
    except OSError:
        return False
    return True


def _refuse_other_directory(root: Path) -> None:
    """Raise for a directory with files in it, none of which a home has; hidden files do not count."""
    if os.path.lexists(root / "state.db") or os.path.lexists(root / "memories"):
        return
    try:
        names = sorted(os.listdir(root))
    except OSError:
        # It does not exist yet, or whatever uses it next says why it cannot be read.
        return
    others = [name for name in names if not re.match(_NO_ENTRIES, name)]
    if others and not any(re.match(_HOME_ENTRY, name) for name in names):
        shown = ", ".join(others[:_MAX_FOREIGN_SHOWN]) + (" …" if len(others) > _MAX_FOREIGN_SHOWN else "")
        raise HomeError(
            f"{root} is not a home of Memoranda: it contains other files ({shown}). "
            f"Name a new or empty directory with --home or MEMORANDA_HOME, such as {root / 'memoranda'}."
        )


def _refuse_foreign_database(path: Path) -> None:
    if os.path.exists(marker_path(path)):
        # The file is ours, whatever its first page says; the store compares it with the marker before it writes.
        return
    try:
        owner = _read_application_id(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise HomeError(
            f"{path} cannot be read ({error.strerror}), so it is unknown who owns {path.parent}. "
            "Repair its permissions or name another home with --home or MEMORANDA_HOME."
        ) from error
    if owner not in (None, APPLICATION_ID) and not _has_index(path):
        raise ForeignHomeError(
            f"{path.parent} belongs to another program: its state.db was not written by Memoranda "
            "(a Hermes home looks like this). Memoranda never writes there. Name a home of your own with "
            "--home or MEMORANDA_HOME. To import from this one, run "
            f"'memoranda import hermes --source {path.parent}'."
        )


def _read_application_id(path: Path) -> bytes | None:
    """The application id of a database; None for an empty file, and for one in which nothing has been created yet.

    It is None for a file that is no database beside a history of memories, too: only Memoranda keeps one there.

    SQLite reads it, because opening and closing the file here would release the locks that this process may hold on
    it. In immutable mode SQLite writes nothing, replays no log and waits for no lock.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    if not status.st_size:
        return None
    # Imported late: a home that is opened only for its memories has no such file.
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as connection:
            (owner,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            # A power cut or a full disk may leave this of a new store. What another program has in its log is found
            # when the file is opened.
            return int(owner).to_bytes(4, "big", signed=True) if owner or tables else None
    except sqlite3.OperationalError as error:
        raise OSError(errno.EACCES, str(error), str(path)) from error
    except sqlite3.DatabaseError:
        # A damaged database is open nowhere, and its application id may still be readable.
        header = read_file(path, _APPLICATION_ID_BYTES.stop)
        has_history = os.path.exists(path.parent / "memories" / "journal.jsonl")
        return None if has_history and not header.startswith(b"SQLite") else header[_APPLICATION_ID_BYTES]


def decode_user_id(name: str) -> str | None:
    """The user id that a directory name encodes; None for one that was too long to be encoded."""
    if not name.startswith("u-"):
        return None
    raw = re.sub(rb"=([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), name[2:].encode())
    return raw.decode("utf-8", "surrogatepass")


def encode_user_id(user: str) -> str:
    """A directory name for any user id: different ids get different names, and none can leave the home.

    Lower-case letters, digits, '-' and '_' stay readable; every other byte becomes '=xx'. Capitals are encoded
    too, because some file systems ignore case. The prefix avoids reserved names.
    """
    if not user:
        raise HomeError("A user id must not be empty.")
    raw = user.encode("utf-8", "surrogatepass")
    encoded = "".join(chr(byte) if byte in _PLAIN_BYTES else f"={byte:02x}" for byte in raw)
    if len(encoded) > _MAX_ENCODED_ID:
        import hashlib

        return "h-" + hashlib.sha256(raw).hexdigest()
    return "u-" + encoded


def is_server_url(location: Path | str) -> TypeGuard[str]:
    """Whether the location of a record is the URL of a PostgreSQL server, and not the path of a file."""
    return isinstance(location, str) and location.startswith(("postgresql://", "postgres://"))


def index_path(db_path: Path) -> Path:
    """The path of the index of a store, in the same directory: the common prefix of its files."""
    return db_path.with_name(f"{db_path.stem}.index.db")


def server_index_path(root: Path, url: str) -> Path:
    """The path of this node's index of a record on a server; one for every server and schema, with any login."""
    import hashlib

    address = re.sub(r"(?<=://)[^/@]*@", "", url)
    return root / f"server-{hashlib.sha256(address.encode()).hexdigest()[:12]}.index.db"


def items_index_path(path: Path) -> Path:
    """The path of the index of items, given that of the index of messages."""
    return path.with_name(f"{path.stem}.items.db")


def user_indexes_path(path: Path) -> Path:
    """The directory with the indexes of single users, given the path of the index of all users."""
    return path.with_name(f"{path.stem}.users")


def marker_path(described: Path) -> Path:
    """The path of the marker of a file, by which a home notices that it lost the file; it is in the same directory."""
    return described.with_name(f"{described.stem}.marker.json")


def had_store(db_path: Path) -> bool:
    """Whether there was a store at a path: it left a marker or an index."""
    return os.path.exists(marker_path(db_path)) or _has_index(db_path)


def _has_index(db_path: Path) -> bool:
    """Whether an index exists; no other program has files of that name."""
    index_name = re.compile(rf"{re.escape(index_path(db_path).name)}\.\d+")
    try:
        return any(index_name.fullmatch(name) for name in os.listdir(db_path.parent))
    except OSError:
        # The directory does not exist, or whatever uses it next says why it cannot be read.
        return False


COMPANIONS = ("", "-wal", "-shm", "-journal")


def vectors_path(db_path: Path, model: str) -> Path:
    """The file of one embedder, beside the store."""
    plain = "".join(character if character.isalnum() else "-" for character in model.lower())
    return db_path.with_name(f"{db_path.stem}.vectors.{plain[-60:].strip('-')}.db")


def vector_files(db_path: Path) -> list[Path]:
    """The files of all embedders of a store."""
    return sorted(db_path.parent.glob(f"{db_path.stem}.vectors.*.db"))


def remove_vectors(db_path: Path, keep: Sequence[Path] = ()) -> int:
    """Delete the vectors of embedders that are not in use: nothing would remove deleted messages from them."""
    unused = [file for file in vector_files(db_path) if file not in keep]
    for file in unused:
        remove_file(file)
    return len(unused)


def remove_file(path: Path) -> None:
    for companion in COMPANIONS:
        Path(f"{path}{companion}").unlink(missing_ok=True)


def projects_beside(memories: Path) -> Path:
    """The directory with the memories of projects: beside `memories` of a home, and inside that of a user."""
    return (memories.parent if memories.name == "memories" else memories) / "projects"
