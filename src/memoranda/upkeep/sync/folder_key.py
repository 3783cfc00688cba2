"""Encrypts bundles with a passphrase, in the format of `age`, by the library that backups use.

Each machine has a key of its own, which is encrypted with the passphrase in `key.age`; its bundles are encrypted for
that key. The passphrase is expensive to use, and so it is used once per machine and not once per bundle.
"""

from pathlib import Path
from typing import Any

from memoranda.errors import SyncError
from memoranda.support.durable_files import make_private_directory, read_file, write_private
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

    def encrypt(self, machine: str, content: bytes) -> bytes:
        """Encrypt for a machine's own key, which is created at the first use."""
        if self._passphrase is None:
            if (self._root / machine / KEY).exists():
                raise SyncError(f"The bundles of this machine in {self._root} are encrypted: name the passphrase.")
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
            raise SyncError(f"{path} cannot be decrypted: the passphrase is wrong, or the file is damaged.") from error
