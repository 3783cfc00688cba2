"""The files in a shared folder: a directory for each machine, and in it bundles that never change.

The name of a bundle has its number, how far it goes, and the SHA-256 checksum of its bytes. So a program that copies
folders may copy in any order and stop at any time: a file whose bytes do not have the checksum is not there yet.
A bundle is lines of JSON, compressed; with a passphrase the compressed file is encrypted in the format of `age`.

Each machine has a key of its own, which is encrypted with the passphrase in `key.age`; its bundles are encrypted for
that key. The passphrase is expensive to use, and so it is used once per machine and not once per bundle.
"""

import gzip
import hashlib
import json
import os
import platform
import re
import zlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from memoranda.errors import SyncError
from memoranda.support.durable_files import make_private_directory, read_file, sync_directory, write_private
from memoranda.support.lazy_dataclass import dataclass
from memoranda.upkeep.backup.encryption import load_library

ENCRYPTED = ".age"
KEY = "key.age"
_MAX_KEY_BYTES = 100_000


class FolderKey:
    """The keys of all machines in a shared folder; without a passphrase everything is plain."""

    def __init__(self, root: Path, passphrase: str | None) -> None:
        self._root = root
        self._passphrase = passphrase
        self._identities: dict[str, Any] = {}

    @property
    def is_set(self) -> bool:
        return self._passphrase is not None

    def verify(self, machines: Iterable[str]) -> None:
        """Raise SyncError unless the passphrase is that of a key in the folder; any will do if there is no key yet."""
        if self._passphrase is None:
            if any(any((self._root / machine).glob(f"*{ENCRYPTED}")) for machine in machines):
                raise SyncError(f"The bundles in {self._root} are encrypted: name the passphrase.")
            return
        errors = []
        for machine in machines:
            if (self._root / machine / KEY).is_file():
                try:
                    self._identity(machine)
                    return
                except SyncError as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    def encrypt(self, machine: str, content: bytes) -> bytes:
        """Encrypt for a machine's own key, which is created at the first use."""
        if self._passphrase is None:
            return content
        encrypted: bytes = load_library().encrypt(content, [self._identity(machine, create=True).to_public()])
        return encrypted

    def decrypt(self, machine: str, content: bytes, path: Path) -> bytes:
        if self._passphrase is None:
            return content
        pyrage = load_library()
        try:
            decrypted: bytes = pyrage.decrypt(content, [self._identity(machine)])
        except pyrage.DecryptError as error:
            raise SyncError(f"{path} cannot be decrypted: it is damaged, or not from this machine.") from error
        return decrypted

    def _identity(self, machine: str, *, create: bool = False) -> Any:
        if machine not in self._identities:
            self._identities[machine] = self._load(self._root / machine / KEY, create)
        return self._identities[machine]

    def _load(self, path: Path, create: bool) -> Any:
        pyrage = load_library()
        try:
            content = read_file(path, _MAX_KEY_BYTES)
        except FileNotFoundError:
            if not create:
                raise SyncError(
                    f"{path} has not arrived yet, without which nothing of this machine is readable."
                ) from None
            identity = pyrage.x25519.Identity.generate()
            make_private_directory(path.parent)
            write_private(path, pyrage.passphrase.encrypt(str(identity).encode(), self._passphrase))
            return identity
        try:
            return pyrage.x25519.Identity.from_str(pyrage.passphrase.decrypt(content, self._passphrase).decode())
        except (pyrage.DecryptError, ValueError) as error:
            raise SyncError(
                f"{path} cannot be decrypted: the passphrase is wrong, or the file is damaged. If it is damaged, "
                "delete it and run 'memoranda sync' on the machine that wrote it, which writes everything again."
            ) from error


FORMAT = 1
MAX_PART_BYTES = 16_000_000
"""How much text a bundle has at most, unless a single record is longer."""
_MAX_FILE_BYTES = 256_000_000
_MAX_TEXT_BYTES = 512_000_000
_MACHINE = re.compile(r"[0-9a-f]{12}")
_NAME = re.compile(r"([0-9]{6})-([0-9]{6,12})-([0-9]{6})-([0-9a-f]{64})\.jsonl\.gz(\.age)?")
# A program that copies folders adds its own words to the name of a copy.
_NAME_OF_COPY = re.compile(r"([0-9]{6})-[0-9]{6,12}-[0-9]{6}-[0-9a-f]{64}")
_CHUNK = 1 << 20
_as_json = json.JSONEncoder(separators=(",", ":")).encode
_decode_json = json.JSONDecoder().decode


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A bundle by its name: the number, the run up to which it and those before it go, and what it replaces."""

    machine: str
    number: int
    through: int
    replaces: int
    """All bundles of the machine up to this number are contained in it; 0 for none."""
    checksum: str
    path: Path

    @property
    def name(self) -> str:
        return f"{self.machine}/{self.path.name}"

    @property
    def is_encrypted(self) -> bool:
        return self.path.name.endswith(ENCRYPTED)


def parse_name(root: Path, name: str) -> BundleFile | None:
    """The bundle with a name (machine and file name) in a folder; None for any other file."""
    machine, _, file_name = name.partition("/")
    match = _NAME.fullmatch(file_name)
    if match is None:
        return None
    number, through, replaces = int(match[1]), int(match[2]), int(match[3])
    return BundleFile(machine, number, through, replaces, match[4], root / name)


class SharedFolder:
    """The bundles of all machines in one directory."""

    def __init__(self, root: Path, key: FolderKey) -> None:
        self.root = root
        self._key = key

    def verify_key(self) -> None:
        """Raise SyncError if the folder is encrypted, and not with this passphrase."""
        self._key.verify(self.machines())

    def machines(self) -> list[str]:
        """The machines that have a directory; a link to a directory is not followed."""
        return sorted(
            entry.name
            for entry in os.scandir(self.root)
            if _MACHINE.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        )

    def bundles(self, machine: str) -> list[BundleFile]:
        """The bundles of a machine in their order, without those that a later one replaces."""
        directory = self.root / machine
        if not directory.is_dir():
            return []
        parsed = (parse_name(self.root, f"{machine}/{entry.name}") for entry in os.scandir(directory))
        found = [bundle for bundle in parsed if bundle is not None]
        found.sort(key=lambda bundle: (bundle.number, bundle.checksum))
        replaced = max((bundle.replaces for bundle in found), default=0)
        return [bundle for bundle in found if bundle.number > replaced]

    def prepare(
        self, machine: str, numbers: tuple[int, int, int], lines: Iterable[bytes], at: int
    ) -> tuple[BundleFile, bytes]:
        """A bundle and its bytes; `numbers` are its number, how far it goes, and what it replaces."""
        number, through, replaces = numbers
        head = {"memoranda_sync": FORMAT, "machine": machine, "number": number, "at": at, "name": platform.node()}
        content = self._key.encrypt(machine, _compress([encode_record(head), *lines]))
        checksum = hashlib.sha256(content).hexdigest()
        name = f"{number:06d}-{through:06d}-{replaces:06d}-{checksum}.jsonl.gz{ENCRYPTED if self._key.is_set else ''}"
        return BundleFile(machine, number, through, replaces, checksum, self.root / machine / name), content

    def store(self, bundle: BundleFile, content: bytes) -> None:
        """Write a bundle durably under its name."""
        try:
            make_private_directory(bundle.path.parent)
            write_private(bundle.path, content)
        except OSError as error:
            raise SyncError(
                f"{bundle.path} cannot be written: {error.strerror}. Nothing is lost; run 'memoranda sync' again when "
                "that is solved."
            ) from error

    def remove_replaced(self, machine: str) -> None:
        """Delete the bundles of a machine that a later one replaces, and copies of them under other names."""
        directory = self.root / machine
        replaced = max((bundle.replaces for bundle in self.bundles(machine)), default=0)
        if not replaced:
            return
        for entry in list(os.scandir(directory)):
            match = _NAME_OF_COPY.search(entry.name)
            if match and int(match[1]) <= replaced and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
        sync_directory(directory)

    def has_key(self, machine: str, bundle: str) -> bool:
        """Whether the key of a machine is there, if a bundle with that name needs one."""
        return not bundle.endswith(ENCRYPTED) or (self.root / machine / KEY).exists()

    def is_complete(self, bundle: BundleFile) -> bool:
        """Whether all bytes of a bundle have arrived. Raises SyncError for what is no file of ours."""
        if bundle.path.is_symlink():
            raise SyncError(f"{bundle.path} is a link; links are not followed.")
        try:
            if bundle.path.stat().st_size > _MAX_FILE_BYTES:
                raise SyncError(f"{bundle.path} is larger than any bundle.")
            digest = hashlib.sha256()
            digest.update(read_file(bundle.path))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SyncError(f"{bundle.path} cannot be read: {error.strerror}.") from error
        return digest.hexdigest() == bundle.checksum

    def read(self, bundle: BundleFile) -> Iterator[dict[str, Any]]:
        """The records of a complete bundle; raises SyncError when it is not a bundle of its machine."""
        if bundle.is_encrypted != self._key.is_set:
            problem = (
                "encrypted: name the passphrase" if bundle.is_encrypted else "not encrypted, but there is a passphrase"
            )
            raise SyncError(f"{bundle.path} is {problem}.")
        content = self._key.decrypt(bundle.machine, read_file(bundle.path), bundle.path)
        lines = _lines(content, bundle.path)
        head = _parse(next(lines, b"null"), bundle.path)
        expected = {"machine": bundle.machine, "number": bundle.number}
        version = head.get("memoranda_sync")
        if not isinstance(version, int) or version < 1 or {name: head.get(name) for name in expected} != expected:
            raise SyncError(f"{bundle.path} is not a bundle of its machine.")
        if version > FORMAT:
            raise SyncError(f"{bundle.path} was written by a later version of Memoranda; update this one.")
        yield head
        for line in lines:
            yield _parse(line, bundle.path)


def encode_record(record: dict[str, Any]) -> bytes:
    return _as_json(record).encode() + b"\n"


def _compress(lines: Iterable[bytes]) -> bytes:
    target = BytesIO()
    # Without a time, so that the same records give the same bytes. Level 6 takes twice the CPU for 4 % less.
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=4, mtime=0, filename="") as stream:
        for line in lines:
            stream.write(line)
    return target.getvalue()


def _lines(content: bytes, path: Path) -> Iterator[bytes]:
    """The lines of compressed content; raises SyncError before a small file becomes too much text."""
    total, rest = 0, b""
    try:
        with gzip.GzipFile(fileobj=BytesIO(content)) as stream:
            while part := stream.read(_CHUNK):
                total += len(part)
                if total > _MAX_TEXT_BYTES:
                    raise SyncError(f"{path} contains more text than any bundle.")
                *complete, rest = (rest + part).split(b"\n")
                yield from complete
    except (OSError, EOFError, zlib.error) as error:
        raise SyncError(f"{path} is damaged: {error}.") from error
    if rest:
        raise SyncError(f"{path} is damaged: its last line is not complete.")


def _parse(line: bytes, path: Path) -> dict[str, Any]:
    try:
        record = _decode_json(line.decode())
    except (ValueError, RecursionError) as error:
        raise SyncError(f"{path} is damaged: a line is not JSON.") from error
    if not isinstance(record, dict):
        raise SyncError(f"{path} is damaged: a record is not an object.")
    return record
