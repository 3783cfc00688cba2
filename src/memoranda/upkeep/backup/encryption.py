"""Encrypts a backup with a passphrase, in the format of `age`, which other programs can decrypt as well.

The file is a zip without compression: `key.age` is a key of this backup, encrypted with the passphrase, and
`backup.zip.age` is the backup, encrypted for that key. Encrypting with the passphrase itself would need the whole
backup in memory.
"""

import zipfile
from pathlib import Path
from types import ModuleType
from typing import IO

from memoranda.errors import BackupError

KEY, CONTENT = "key.age", "backup.zip.age"
_MAX_KEY_BYTES = 100_000


def encrypt(source: IO[bytes], target: IO[bytes], passphrase: str) -> None:
    """Encrypt a stream of any size; raises BackupError when the library for it is not installed."""
    pyrage = load_library()
    identity = pyrage.x25519.Identity.generate()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(KEY, pyrage.passphrase.encrypt(str(identity).encode(), passphrase))
        with archive.open(CONTENT, "w", force_zip64=True) as stream:
            pyrage.encrypt_io(source, stream, [identity.to_public()])


def is_encrypted(archive: Path) -> bool:
    """Whether a file is an encrypted backup; False for any other file."""
    if not zipfile.is_zipfile(archive):
        return False
    with zipfile.ZipFile(archive) as opened:
        return {KEY, CONTENT} <= set(opened.namelist())


def decrypt(archive: Path, target: IO[bytes], passphrase: str) -> None:
    """Decrypt a backup of any size; raises BackupError for a wrong passphrase and for a damaged file."""
    pyrage = load_library()
    try:
        with zipfile.ZipFile(archive) as opened:
            if opened.getinfo(KEY).file_size > _MAX_KEY_BYTES:
                raise BackupError(f"{archive} is damaged: its key is too large.")
            key = pyrage.passphrase.decrypt(opened.read(KEY), passphrase)
            identity = pyrage.x25519.Identity.from_str(key.decode())
            with opened.open(CONTENT) as stream:
                pyrage.decrypt_io(stream, target, [identity])
    except (pyrage.DecryptError, zipfile.BadZipFile, OSError) as error:
        # An error of the system, such as a full disk, has a number; the library raises others without one.
        if isinstance(error, OSError) and error.errno:
            raise
        raise BackupError(f"{archive} cannot be decrypted: the passphrase is wrong, or the file is damaged.") from error


def load_library() -> ModuleType:
    try:
        import pyrage  # noqa: PLC0415
    except ImportError as error:
        raise BackupError("Encryption needs the package pyrage: pip install 'memoranda[encryption]'.") from error
    module: ModuleType = pyrage
    return module
