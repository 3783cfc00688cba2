"""A marker: a small file that says how far another file has got, so that the loss of that file is noticed.

It is written after what it describes is on the disk: after a crash it may lag behind, but is never ahead. No writer
needs a lock, the last one wins, and a killed one leaves a whole marker or one that is damaged. A marker that is damaged
is ignored, and written again. Its checksum finds accidental damage; it does not stop a forger.
"""

import json
import logging
import os
from binascii import crc32
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memoranda.support.durable_files import open_without_following, read_file, write_private_unlocked
from memoranda.support.home import marker_path

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_log = logging.getLogger(__name__)

# Without vowels and digits: no word and no number that a person wants to forget is found in a checksum by chance.
_LETTERS = bytes.maketrans(b"0123456789abcdef", b"bcdfghjklmnpqrst")
CHECKSUM_PATTERN = "[bcdfghjklmnpqrst]{8}"

_MAX_BYTES = 100_000
# Always the same length, so that one write replaces all of it.
_OVERWRITTEN_BYTES = 256

_Marker = TypeVar("_Marker", bound="DataclassInstance")


class MarkerFile(Generic[_Marker]):
    """The marker beside a file, as a dataclass whose fields all have defaults."""

    def __init__(self, described: Path, kind: type[_Marker]) -> None:
        self.path = marker_path(described)
        self._kind = kind

    def read(self) -> _Marker | None:
        """The marker; None if there is none, an empty one if it is damaged."""
        try:
            content = read_file(self.path, _MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.warning("The marker %s cannot be read: %s", self.path, error)
            return self._kind()
        try:
            values = json.loads(content)
            written = values.pop("checksum")
            # A later version may have more fields.
            known = {field.name: values[field.name] for field in fields(self._kind)}
        except (ValueError, TypeError, KeyError, AttributeError):
            return self._kind()
        return self._kind(**known) if written == _checksum(values) else self._kind()

    def replace(self, marker: _Marker) -> None:
        """Replace the file atomically: after a power cut it has this marker, or the one from before."""
        write_private_unlocked(self.path, _encode(marker))

    def overwrite(self, marker: _Marker) -> None:
        """Overwrite a small marker in place with one short write, which takes less time and does not wait for the disk.

        A power cut may damage it.
        """
        descriptor = open_without_following(self.path)
        try:
            os.write(descriptor, _encode(marker).ljust(_OVERWRITTEN_BYTES - 1) + b"\n")
        finally:
            os.close(descriptor)


def _encode(marker: "DataclassInstance") -> bytes:
    values = asdict(marker)
    return json.dumps({**values, "checksum": _checksum(values)}).encode()


def _checksum(values: Mapping[str, Any]) -> str:
    return checksum(json.dumps(values, sort_keys=True).encode())


def checksum(content: bytes) -> str:
    """The CRC-32 of some bytes as eight letters: it differs after any change of up to 32 bits in a row."""
    return (b"%08x" % crc32(content)).translate(_LETTERS).decode()
