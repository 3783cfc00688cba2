"""Which files of a home a backup contains: everything but locks, running processes and what can be rebuilt."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

DIRECTORY = "backups"
# Where a running backup puts copies of databases.
WORK_PREFIX = ".backup-"
# Copies of the home, and what belongs to running processes.
_EXCLUDED_FOLDERS = (DIRECTORY, "run", "cache", ".forgetting")
_TEMPORARY = ("-wal", "-shm", "-journal", ".tmp", ".lock")
# Caches: the search index, vectors, and what models suggested.
_REBUILT = re.compile(r"state\.(?:index|vectors)\..*|server-\w+\.index\..*|expansions\.json")
_PROFILES = "profiles"
_DATABASES = (".db", ".sqlite", ".sqlite3")
_RECORD = "state.db"
SECRETS = ".env"


@dataclass(frozen=True, slots=True)
class HomeFile:
    """A file of a home, with its name below the home."""

    path: Path
    name: str
    is_database: bool


def list_files(root: Path, exclude: Collection[str] = ()) -> list[HomeFile]:
    """The files to copy, in the order in which to copy them; `exclude` names further folders directly below `root`.

    Plain files come first, the record last. The marker beside the record may lag behind it but must not be ahead, and
    whatever another database knows of the record is then in the copy of the record, too.
    """
    files = _walk(root, root, {*_EXCLUDED_FOLDERS, *exclude})
    return sorted(files, key=lambda file: (file.is_database, file.path.name == _RECORD, file.name))


def _walk(root: Path, scope: Path, excluded: Collection[str]) -> Iterator[HomeFile]:
    """The files below `scope`, the directory of a profile; the profiles below it are scopes of their own."""
    for parent, folders, names in os.walk(scope):
        directory = Path(parent)
        folders[:] = sorted(name for name in folders if not os.path.islink(directory / name))
        if directory == scope:
            skipped = [name for name in folders if name.startswith(WORK_PREFIX) or _REBUILT.fullmatch(name)]
            folders[:] = [name for name in folders if name not in excluded and name not in skipped]
            if _PROFILES in folders:
                folders.remove(_PROFILES)
                for profile in sorted(path for path in (scope / _PROFILES).iterdir() if path.is_dir()):
                    yield from _walk(root, profile, excluded)
        for name in names:
            path = directory / name
            is_cache = directory == scope and _REBUILT.fullmatch(name)
            if not is_cache and not name.endswith(_TEMPORARY) and path.is_file() and not path.is_symlink():
                # By its name: opening and closing the file would drop the locks that this process may have on it.
                yield HomeFile(path, path.relative_to(root).as_posix(), path.suffix in _DATABASES)
