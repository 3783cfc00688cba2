"""The protocol of what an application may give its providers to compare texts by meaning."""

from collections.abc import Sequence
from typing import Protocol


class TextEmbedder(Protocol):
    """Turns texts into vectors on this machine. Several threads may call it."""

    @property
    def name(self) -> str:
        """Identifies the model; vectors of different names cannot be compared. Raises MemorandaError."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """One vector of length 1 per text, as little-endian floats of 32 bits. Raises MemorandaError."""
