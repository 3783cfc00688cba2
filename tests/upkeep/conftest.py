"""Passphrases that cost nothing, for tests of what happens around them."""

from collections import defaultdict
from typing import Any

import pytest


class QuickPassphrases:
    """Stands in for `pyrage.passphrase` without the second of work by which guessing is made expensive.

    The key of a passphrase is random, and the same for the whole test.
    """

    def __init__(self, pyrage: Any) -> None:
        self._pyrage = pyrage
        self._keys: defaultdict[str, Any] = defaultdict(pyrage.x25519.Identity.generate)

    def encrypt(self, content: bytes, passphrase: str) -> bytes:
        encrypted: bytes = self._pyrage.encrypt(content, [self._keys[passphrase].to_public()])
        return encrypted

    def decrypt(self, content: bytes, passphrase: str) -> bytes:
        """Raise what the library raises for a wrong passphrase and for damaged content."""
        decrypted: bytes = self._pyrage.decrypt(content, [self._keys[passphrase]])
        return decrypted


@pytest.fixture
def quick_passphrases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tests use the real ones: of a backup that is restored, and of the command."""
    pyrage = pytest.importorskip("pyrage", reason="the extra 'encryption'")
    monkeypatch.setattr(pyrage, "passphrase", QuickPassphrases(pyrage))
