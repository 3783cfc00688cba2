"""Writes a home into one zip file, and reads every byte of it again before it counts as written."""

import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO

from memoranda.errors import BackupError
from memoranda.storage.files.file_lock import FileLock
from memoranda.support.durable_files import PRIVATE_FILE, discard_staged, publish, staged_path, sync
from memoranda.support.home import DEFAULT_PROFILE
from memoranda.support.processes import has_ended, process_identity
from memoranda.upkeep.backup import manifest
from memoranda.upkeep.backup.contents import SECRETS, WORK_PREFIX, HomeFile, list_files
from memoranda.upkeep.backup.database_copy import copy_database
from memoranda.upkeep.backup.encryption import encrypt
from memoranda.upkeep.backup.manifest import Manifest, StoredFile

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
        size = archive.getinfo(manifest.NAME).file_size
        if size > manifest.MAX_BYTES:
            raise BackupError(f"The manifest of the backup has {size:,} bytes, which is too much.")
        return Manifest.parse(archive.read(manifest.NAME).decode("utf-8"))
    except KeyError as error:
        raise BackupError(f"It is not a backup of Memoranda: it contains no {manifest.NAME}.") from error


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
        archive.writestr(manifest.NAME, listed.to_json())
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
