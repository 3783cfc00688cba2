"""A marker: a small file that says how far another file has got, so that the loss of that file is noticed.

It is written after what it describes is on the disk, and not synced itself: after a crash it may lag behind, but is
never ahead. One short write overwrites it in place, so no writer needs a lock and a killed one leaves nothing. A marker
that is damaged is ignored, and written again. Its checksum finds accidental damage; it does not stop a forger.
"""

import json
import os
from binascii import crc32
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memoranda.support.durable_files import open_without_following, read_file

# Without vowels and digits: no word and no number that a person wants to forget is found in a checksum by chance.
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"bcdfghjklmnpqrst")
CHECKSUM_PATTERN = "[bcdfghjklmnpqrst]{8}"

# Always the same length, so that one write replaces all of it.
_BYTES = 256


class MarkerFile:
    """A marker at a path, with some numbers and names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any] | None:
        """The values of the marker; None if there is none, or if it is damaged."""
        try:
            values = json.loads(read_file(self.path, _BYTES))
            written = values.pop("checksum")
            return dict(values) if written == _checksum(values) else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def write(self, values: Mapping[str, Any]) -> None:
        content = json.dumps({**values, "checksum": _checksum(values)}).encode()
        descriptor = open_without_following(self.path)
        try:
            os.write(descriptor, content.ljust(_BYTES - 1) + b"\n")
        finally:
            os.close(descriptor)


def _checksum(values: Mapping[str, Any]) -> str:
    return checksum(json.dumps(values, sort_keys=True).encode())


def checksum(content: bytes) -> str:
    """The CRC-32 of some bytes as eight letters: it differs after any change of up to 32 bits in a row."""
    return (b"%08x" % crc32(content)).translate(_LETTERS).decode()
