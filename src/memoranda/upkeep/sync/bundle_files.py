"""The files in a shared folder: one bundle for each machine, to which only that machine appends.

A bundle is a line of JSON, its head, and then parts: each a line with its size and SHA-256 checksum, and its bytes.
These are lines of JSON, compressed; with a passphrase they are encrypted in the format of `age`. Programs that copy
folders may stop at any time: what is not complete, or does not have its checksum, is not there yet, and neither is what
follows.

The head names the generation of the bundle, which is random: a machine that has to remove something from its bundle
writes it again as a new generation, and readers begin with that again. With a passphrase, the head has a key of the
machine, encrypted with the passphrase; the parts are encrypted for that key. The passphrase is expensive to use, and so
it is used once per machine and not once per part.
"""

import gzip
import hashlib
import json
import os
import platform
import re
import secrets
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from memoranda.errors import SyncError
from memoranda.support.durable_files import append_private, read_file, write_private_parts
from memoranda.upkeep.backup.encryption import load_library

FORMAT = 2
SUFFIX = ".memoranda"
MAX_PART_BYTES = 16_000_000
"""How much text a part has at most, unless a single record is longer."""
_MAX_FILE_BYTES = 256_000_000
_MAX_TEXT_BYTES = 512_000_000
_MAX_LINE_BYTES = 100_000
_NAME = re.compile(r"([0-9a-f]{12})" + re.escape(SUFFIX))
_OLD_DIRECTORY = re.compile(r"[0-9a-f]{12}")
_CHUNK = 1 << 20
_as_json = json.JSONEncoder(separators=(",", ":")).encode
_decode_json = json.JSONDecoder().decode

Record = dict[str, Any]


class IncompleteError(Exception):
    """A bundle, or its next part, has not arrived completely, or is damaged."""


class BundleHead(NamedTuple):
    """The first line of a bundle: whose it is, and the key of its parts; `end` is where the parts begin."""

    machine: str
    generation: str
    name: str
    key: str
    end: int


class BundlePart(NamedTuple):
    """A part of a bundle: when it was written, where it is, and its checksum."""

    at: int
    start: int
    end: int
    checksum: str


class SharedFolder:
    """The bundles of all machines in one directory; without a passphrase everything is plain."""

    def __init__(self, root: Path, passphrase: str | None = None) -> None:
        self.root = root
        self._passphrase = passphrase
        self._identities: dict[str, Any] = {}

    def path(self, machine: str) -> Path:
        return self.root / f"{machine}{SUFFIX}"

    def machines(self) -> list[str]:
        """Return the machines that have a bundle."""
        return sorted(match[1] for name in os.listdir(self.root) if (match := _NAME.fullmatch(name)))

    def verify(self) -> None:
        """Raise SyncError if the folder has another form, or is encrypted and not with this passphrase."""
        for path in self.root.iterdir():
            if _OLD_DIRECTORY.fullmatch(path.name) and any(path.glob("*.jsonl.gz*")):
                raise SyncError(
                    f"{self.root} has bundles of an earlier version of Memoranda, which this one does not read. Every "
                    "home has everything that it has received: create a new folder, run 'memoranda sync' with it on "
                    "each machine, and delete this one."
                )
        heads = [head for machine in self.machines() if (head := self._readable_head(machine))]
        keys = [head for head in heads if head.key]
        if keys and self._passphrase is None:
            raise SyncError(f"The bundles in {self.root} are encrypted: name the passphrase.")
        errors = []
        for head in keys:
            try:
                self._identity(head)
                return
            except SyncError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def head(self, machine: str) -> BundleHead:
        """Return the head of a bundle. Raises IncompleteError, or SyncError for what is no bundle of that machine."""
        path = self.path(machine)
        if path.is_symlink():
            raise SyncError(f"{path} is a link; links are not followed.")
        line = self._read(path, 0, _MAX_LINE_BYTES)
        content, newline, _ = line.partition(b"\n")
        if not newline:
            if len(line) == _MAX_LINE_BYTES:
                raise SyncError(f"{path} is not a bundle of its machine.")
            raise IncompleteError("has not arrived completely")
        try:
            head = _decode_json(content.decode())
            version, texts = head["memoranda_sync"], [head[name] for name in _HEAD]
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise IncompleteError("is damaged") from error
        if not isinstance(version, int) or not all(isinstance(text, str) for text in texts):
            raise SyncError(f"{path} is not a bundle of its machine.")
        if version > FORMAT:
            raise SyncError(f"{path} was written by a later version of Memoranda; update this one.")
        found, generation, name, key = texts
        if found != machine:
            raise SyncError(f"{path} is not a bundle of its machine.")
        return BundleHead(machine, generation, name[:60], key, len(content) + 1)

    def parts(self, head: BundleHead, position: int) -> Iterator[BundlePart]:
        """Yield the complete parts from a position on; raises IncompleteError at one that is not."""
        path = self.path(head.machine)
        while line := self._read(path, position, _MAX_LINE_BYTES):
            content, newline, _ = line.partition(b"\n")
            try:
                fields = _decode_json(content.decode()) if newline else {}
                at, size, checksum = (fields[name] for name in ("at", "size", "sha256"))
                start = position + len(content) + 1
                position = start + size
            except (ValueError, RecursionError, KeyError, TypeError) as error:
                raise IncompleteError("has not arrived completely, or is damaged") from error
            if size > _MAX_FILE_BYTES:
                raise SyncError(f"{path} is larger than any bundle.")
            if hashlib.sha256(self._read(path, start, size)).hexdigest() != checksum:
                raise IncompleteError("has not arrived completely, or is damaged")
            yield BundlePart(at, start, position, checksum)

    def read(self, head: BundleHead, part: BundlePart) -> Iterator[Record]:
        """Yield the records of a part; raises SyncError when it cannot be used."""
        path = self.path(head.machine)
        if bool(head.key) != (self._passphrase is not None):
            problem = "encrypted: name the passphrase" if head.key else "not encrypted, but there is a passphrase"
            raise SyncError(f"{path} is {problem}.")
        content = self._read(path, part.start, part.end - part.start)
        if head.key:
            pyrage = load_library()
            try:
                content = pyrage.decrypt(content, [self._identity(head)])
            except pyrage.DecryptError as error:
                raise SyncError(f"{path} cannot be decrypted: it is damaged, or not from this machine.") from error
        for line in _lines(content, path):
            yield _parse(line, path)

    def content(self, machine: str) -> bytes:
        """Return all bytes of a bundle; empty if there is none."""
        path = self.path(machine)
        if not path.is_file() or path.is_symlink():
            return b""
        return read_file(path)

    def new_head(self, machine: str) -> BundleHead:
        """Return the head of a new generation of a machine's bundle, with the key of the last one."""
        before, key = self._readable_head(machine), ""
        if self._passphrase is not None:
            key = before.key if before else ""
            if not key:
                identity = load_library().x25519.Identity.generate()
                key = b64encode(load_library().passphrase.encrypt(str(identity).encode(), self._passphrase)).decode()
                self._identities[key] = identity
        return BundleHead(machine, secrets.token_hex(8), platform.node()[:60], key, 0)

    def encode_part(self, head: BundleHead, lines: Iterable[bytes], at: int) -> bytes:
        """Return the bytes of a part with these lines."""
        content = _compress(lines)
        if head.key:
            content = load_library().encrypt(content, [self._identity(head).to_public()])
        checksum = hashlib.sha256(content).hexdigest()
        return encode_record({"at": at, "size": len(content), "sha256": checksum}) + content

    def append(self, machine: str, part: bytes) -> None:
        """Append a part durably."""
        with _explained(self.path(machine)):
            append_private(self.path(machine), part)

    def replace(self, head: BundleHead, parts: Iterable[bytes]) -> None:
        """Write a bundle again, durably and all at once."""
        path = self.path(head.machine)
        with _explained(path):
            if path.is_dir() and not path.is_symlink():
                # What a program has made of it; only an empty one is replaced.
                path.rmdir()
            write_private_parts(path, parts)

    def _readable_head(self, machine: str) -> BundleHead | None:
        try:
            return self.head(machine)
        except (IncompleteError, SyncError):
            return None

    def _identity(self, head: BundleHead) -> Any:
        if head.key not in self._identities:
            pyrage = load_library()
            try:
                decrypted = pyrage.passphrase.decrypt(b64decode(head.key), self._passphrase).decode()
                self._identities[head.key] = pyrage.x25519.Identity.from_str(decrypted)
            except (pyrage.DecryptError, ValueError) as error:
                raise SyncError(
                    f"{self.path(head.machine)} cannot be decrypted: the passphrase is wrong, or the file is damaged. "
                    "If it is damaged, delete it and run 'memoranda sync' on the machine that wrote it."
                ) from error
        return self._identities[head.key]

    def remove_copies(self, machine: str) -> None:
        """Delete the copies of a machine's bundle that programs have made, with what it does not contain any more."""
        for path in list(self.root.iterdir()):
            is_copy = machine in path.name and SUFFIX in path.name and path != self.path(machine)
            if is_copy and (path.is_symlink() or not path.is_dir()):
                path.unlink()

    def _read(self, path: Path, start: int, size: int) -> bytes:
        try:
            with path.open("rb") as stream:
                stream.seek(start)
                return stream.read(size)
        except FileNotFoundError:
            raise IncompleteError("has not arrived") from None
        except OSError as error:
            raise SyncError(f"{path} cannot be read: {error.strerror}.") from error


_HEAD = ("machine", "generation", "name", "key")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SyncError(
            f"{path} cannot be written: {error.strerror}. Nothing is lost; run 'memoranda sync' again when that is "
            "solved."
        ) from error


def encode_head(head: BundleHead) -> bytes:
    return encode_record({"memoranda_sync": FORMAT} | {name: getattr(head, name) for name in _HEAD})


def encode_record(record: Record) -> bytes:
    return _as_json(record).encode() + b"\n"


def _compress(lines: Iterable[bytes]) -> bytes:
    target = BytesIO()
    # Level 6 takes twice the CPU for 4 % less.
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=4, mtime=0, filename="") as stream:
        for line in lines:
            stream.write(line)
    return target.getvalue()


def _lines(content: bytes, path: Path) -> Iterator[bytes]:
    """Yield the lines of compressed content; raises SyncError before a small file becomes too much text."""
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


def _parse(line: bytes, path: Path) -> Record:
    try:
        record = _decode_json(line.decode())
    except (ValueError, RecursionError) as error:
        raise SyncError(f"{path} is damaged: a line is not JSON.") from error
    if not isinstance(record, dict):
        raise SyncError(f"{path} is damaged: a record is not an object.")
    return record
