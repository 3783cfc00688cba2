"""Writes a home into one zip file, and reads every byte of it again before it counts as written.

A backup contains everything but locks, running processes and what can be rebuilt. A database that other processes use
is copied as it is at one point in time. The manifest lists the files with their sizes and checksums. The home keeps a
list of the backups that were written, so that `forget` can say where a text may still be.
"""

import hashlib
import json
import os
import re
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import IO, Any

from memoranda.errors import BackupError
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.sqlite.database import find_damage
from memoranda.support.durable_files import (
    PRIVATE_FILE,
    append_private,
    discard_staged,
    make_private_directory,
    publish,
    staged_path,
    sync,
)
from memoranda.support.home import DEFAULT_PROFILE
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.processes import has_ended, process_identity
from memoranda.upkeep.backup.encryption import encrypt

DIRECTORY = "backups"
# Where a running backup puts copies of databases.
WORK_PREFIX = ".backup-"
# Copies of the home, and what belongs to running processes.
_EXCLUDED_FOLDERS = (DIRECTORY, "run", "cache", ".forgetting")
_TEMPORARY = ("-wal", "-shm", "-journal", ".tmp", ".lock")
# Caches: the search index, vectors, words of facts, and what models suggested.
_REBUILT = re.compile(r"state\.(?:index|vectors)\..*|server-\w+\.index\..*|holographic\.cache|expansions\.json")
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


NAME = "memoranda-backup.json"
FORMAT = 1
MAX_BYTES = 64_000_000
_DIGEST_LENGTH = 64


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup contains, and of what it is."""

    created_at: str
    version: str
    profile: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def active_names(self) -> tuple[str, ...]:
        """What acts by itself in a restored home: plugins, whose code runs, and settings of the environment."""
        found = set()
        for file in self.files:
            before, plugins, below = f"/{file.name}".partition("/plugins/")
            if plugins:
                found.add(f"{before}{plugins}{below.partition('/')[0]}"[1:])
            elif file.name.rpartition("/")[2] == SECRETS:
                found.add(file.name)
        return tuple(sorted(found))

    def to_json(self) -> str:
        data = {"format": FORMAT} | asdict(self)
        return json.dumps(data, ensure_ascii=False, indent=1)

    @classmethod
    def parse(cls, text: str) -> "Manifest":
        """Read a manifest; raises BackupError if this version cannot use it, or if a name leads out of the home."""
        try:
            data: dict[str, Any] = json.loads(text)
            if data["format"] != FORMAT:
                raise BackupError(
                    f"This backup has format {data['format']!r}, and this version reads format {FORMAT}. Upgrade "
                    "Memoranda."
                )
            files = tuple(
                StoredFile(str(each["name"]), int(each["bytes"]), str(each["sha256"])) for each in data["files"]
            )
            manifest = cls(str(data["created_at"]), str(data["version"]), str(data["profile"]), files)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BackupError(f"The manifest of the backup cannot be read: {error}.") from error
        manifest._check()
        return manifest

    def refreshed(self, directory: Path) -> "Manifest":
        """The manifest after files of the unpacked backup in `directory` were changed or removed."""
        files = []
        for file in self.files:
            path = directory / file.name
            if path.is_file():
                with open(path, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").hexdigest()
                files.append(StoredFile(file.name, path.stat().st_size, digest))
        return replace(self, files=tuple(files))

    def _check(self) -> None:
        names = set()
        for file in self.files:
            path = PurePosixPath(file.name)
            is_inside = path.parts and not path.is_absolute() and ".." not in path.parts and str(path) == file.name
            if not is_inside or any(char in file.name for char in "\\:\0") or file.name.lower() in names:
                raise BackupError(f"The backup contains a file with the name {file.name!r}, which no home has.")
            if file.bytes < 0 or len(file.sha256) != _DIGEST_LENGTH:
                raise BackupError(f"The manifest of the backup says nothing usable about {file.name!r}.")
            names.add(file.name.lower())


_PAGES_PER_STEP = 2_000
_BUSY_SECONDS = 30.0


def copy_database(source: Path, target: Path, advance: Callable[[int], None] = lambda _: None) -> None:
    """Copy a database to a new file and check the copy; `advance` gets the bytes of each step.

    Writers of a database with a write-ahead log do not wait. Raises BackupError when it cannot be read, or is damaged.
    """
    try:
        with (
            closing(sqlite3.connect(source, timeout=_BUSY_SECONDS, isolation_level=None)) as reading,
            closing(sqlite3.connect(target, isolation_level=None)) as writing,
        ):
            # One read transaction for all steps: without it SQLite starts again whenever another process writes.
            reading.execute("BEGIN")
            (page_size,) = reading.execute("PRAGMA page_size").fetchone()
            reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
            writing.execute("PRAGMA synchronous=OFF")
            left = 0

            def report(_status: int, remaining: int, total: int) -> None:
                nonlocal left
                advance(((left or total) - remaining) * page_size)
                left = remaining

            reading.backup(writing, pages=_PAGES_PER_STEP, progress=report)
            problems = find_damage(writing, thorough=False)
    except sqlite3.Error as error:
        raise BackupError(f"{source} cannot be copied: {error}.") from error
    if problems:
        raise BackupError(
            f"{source} is damaged ({problems[0]}). 'memoranda doctor --fix' saves what is in it and keeps the damaged "
            "file; back up after that."
        )


_CHUNK = 1 << 20
_LOCK_TIMEOUT = 30.0
_LOCK_NAME = ".lock"
# Text shrinks to a third; more effort gains little and takes several times as long.
_COMPRESSION = 1


@dataclass(slots=True)
class Progress:
    """How far a backup or a restore is, in bytes; `report` is called after each step and may raise to stop it."""

    report: Callable[["Progress"], None] = lambda _: None
    step: str = ""
    done: int = 0
    total: int = 0

    def start(self, step: str, total: int) -> None:
        self.step, self.done, self.total = step, 0, total
        self.report(self)

    def advance(self, count: int) -> None:
        self.done += count
        self.report(self)


@dataclass(frozen=True, slots=True)
class BackupOptions:
    """What a backup contains and how it is written."""

    profile: str = DEFAULT_PROFILE
    exclude: Collection[str] = ()
    without_secrets: bool = False
    passphrase: str | None = None
    progress: Progress = field(default_factory=Progress)


def write_backup(root: Path, target: Path, options: BackupOptions) -> Manifest:
    """Write everything below `root` that cannot be rebuilt into a new file, durably, and verify it.

    Other processes may use the home meanwhile: each database is copied as of one point in time, and the files of a
    directory with a lock are copied under it. Raises BackupError when there is nothing to back up. If it fails or is
    interrupted, no file is left.
    """
    files = list_files(root, options.exclude)
    if options.without_secrets:
        files = [file for file in files if file.path.name != SECRETS]
    if not files:
        raise BackupError(f"{root} contains nothing to back up.")
    try:
        with _work_directory(root) as work:
            staged = Path(staged_path(target))
            plain = staged if options.passphrase is None else work / "backup.zip"
            with _create(plain) as stream:
                written = _write(stream, files, work, options)
            verify(plain, options.progress)
            if options.passphrase is not None:
                with open(plain, "rb") as source, _create(staged) as stream:
                    encrypt(source, stream, options.passphrase)
            publish(target)
    except BaseException:
        discard_staged(target)
        raise
    return written


def verify(archive: Path, progress: Progress | None = None) -> Manifest:
    """Read every byte of a backup; raises BackupError unless all files have the content that the manifest names."""
    progress = progress or Progress()
    try:
        with zipfile.ZipFile(archive) as opened:
            listed = read_manifest(opened)
            progress.start("verify", listed.bytes)
            for file in listed.files:
                for part in read_member(opened, file):
                    progress.advance(len(part))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise BackupError(f"{archive} is not a backup, or is damaged: {error}.") from error
    return listed


def read_manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        size = archive.getinfo(NAME).file_size
        if size > MAX_BYTES:
            raise BackupError(f"The manifest of the backup has {size:,} bytes, which is too much.")
        return Manifest.parse(archive.read(NAME).decode("utf-8"))
    except KeyError as error:
        raise BackupError(f"It is not a backup of Memoranda: it contains no {NAME}.") from error


def read_member(archive: zipfile.ZipFile, file: StoredFile) -> Iterator[bytes]:
    """The content of a file in parts; raises BackupError before more bytes than named, and at the end if it differs."""
    digest, count = hashlib.sha256(), 0
    try:
        member = archive.open(file.name)
    except KeyError as error:
        raise BackupError(f"{file.name!r} is missing in the backup.") from error
    with member:
        while part := member.read(_CHUNK):
            count += len(part)
            if count > file.bytes:
                break
            digest.update(part)
            yield part
    if count != file.bytes or digest.hexdigest() != file.sha256:
        raise BackupError(f"{file.name!r} in the backup is damaged.")


def _write(stream: IO[bytes], files: list[HomeFile], work: Path, options: BackupOptions) -> Manifest:
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    options.progress.start("copy", sum(file.path.stat().st_size for file in files))
    stored: list[StoredFile] = []
    with zipfile.ZipFile(
        stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION, strict_timestamps=False
    ) as archive:
        for directory, plain in _by_lock([file for file in files if not file.is_database]).items():
            with FileLock(directory / _LOCK_NAME, _LOCK_TIMEOUT) if directory else nullcontext():
                # Another process may have deleted a file since it was listed: a rotated log, a proposal.
                added = [_add(archive, file.path, file.name) for file in plain if file.path.exists()]
            stored += added
            options.progress.advance(sum(file.bytes for file in added))
        for file in files:
            if file.is_database:
                copy = work / "database"
                copy_database(file.path, copy, options.progress.advance)
                stored.append(_add(archive, copy, file.name))
                copy.unlink()
        listed = Manifest(created_at, version("memoranda"), options.profile, tuple(stored))
        archive.writestr(NAME, listed.to_json())
    return listed


def _by_lock(files: list[HomeFile]) -> dict[Path | None, list[HomeFile]]:
    """The files, by the nearest directory above them whose writers lock it; None for those without."""
    groups: dict[Path | None, list[HomeFile]] = {}
    locked: dict[Path, bool] = {}
    for file in files:
        depth = len(Path(file.name).parts)
        parents = list(file.path.parents)[:depth]
        for parent in parents:
            locked.setdefault(parent, (parent / _LOCK_NAME).exists())
        groups.setdefault(next((parent for parent in parents if locked[parent]), None), []).append(file)
    return groups


def _add(archive: zipfile.ZipFile, path: Path, name: str) -> StoredFile:
    digest, count = hashlib.sha256(), 0
    info = zipfile.ZipInfo.from_file(path, name, strict_timestamps=False)
    info.compress_type = zipfile.ZIP_DEFLATED
    with open(path, "rb") as source, archive.open(info, "w", force_zip64=True) as target:
        while part := source.read(_CHUNK):
            digest.update(part)
            count += len(part)
            target.write(part)
    return StoredFile(name, count, digest.hexdigest())


@contextmanager
def _create(path: Path) -> Iterator[IO[bytes]]:
    """A new file that only its owner can read, synced at the end."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    with open(descriptor, "w+b") as stream:
        yield stream
        stream.flush()
        sync(stream.fileno())


@contextmanager
def _work_directory(root: Path) -> Iterator[Path]:
    """A directory in the home for copies of databases; those of killed backups are removed."""
    for leftover in root.glob(f"{WORK_PREFIX}*"):
        if has_ended(leftover.name.removeprefix(WORK_PREFIX)):
            shutil.rmtree(leftover)
    work = root / f"{WORK_PREFIX}{process_identity()}"
    work.mkdir(mode=0o700)
    try:
        yield work
    finally:
        shutil.rmtree(work)


_PREFIX = "before-import-"
_MAX_BACKUPS = 5
# Reports and logs; and other profiles, which a migration does not change.
_EXCLUDED = ("migration", "imports", "profiles", "logs")


def back_up(root: Path) -> Path | None:
    """Back up everything that is not derived, and keep the newest five backups; None when the home is empty."""
    if not list_files(root, _EXCLUDED):
        return None
    directory = root / DIRECTORY
    make_private_directory(directory)
    for leftover in directory.glob(f".{_PREFIX}*.tmp"):
        leftover.unlink()
    target = directory / f"{_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%S%f}.zip"
    write_backup(root, target, BackupOptions(exclude=_EXCLUDED))
    for old in sorted(directory.glob(f"{_PREFIX}*.zip"))[:-_MAX_BACKUPS]:
        old.unlink()
    return target


_FILE = "written.jsonl"


@dataclass(frozen=True, slots=True)
class WrittenBackup:
    """A file that a backup was written to. It may have been moved or deleted since."""

    path: str
    created_at: str


def note_backup(root: Path, backup: WrittenBackup) -> None:
    """Add a backup to the list of a home."""
    make_private_directory(root / DIRECTORY)
    append_private(root / DIRECTORY / _FILE, json.dumps(asdict(backup), ensure_ascii=False).encode() + b"\n")


def written_backups(root: Path) -> list[WrittenBackup]:
    """The backups of a home that are still where they were written, each once, with the time of the last one."""
    try:
        lines = (root / DIRECTORY / _FILE).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    latest: dict[str, WrittenBackup] = {}
    for line in lines:
        try:
            data = json.loads(line)
            backup = WrittenBackup(str(data["path"]), str(data["created_at"]))
        except (ValueError, KeyError, TypeError):
            # A line that a power cut tore; the list only informs.
            continue
        if Path(backup.path).exists():
            latest[backup.path] = backup
    return list(latest.values())
