"""Backups of a host's settings files: one copy of each file, from before the last change.

Settings contain account data and keys, so older copies are removed with each change, and the last one when Memoranda is
uninstalled. Only the owner can read a copy.
"""

import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from memoranda.integrations.hosts.created_files import remove_empty
from memoranda.support.canonical_text import digest
from memoranda.support.durable_files import make_private_directory, write_private

_log = logging.getLogger(__name__)
_STAMP = r"\d{8}T\d{6}\.\d{6}"


class SettingsBackups:
    """The copies of one host's settings files, in a directory of the home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def add(self, file: Path, content: bytes) -> Path:
        """Stores a copy of a file, deletes its earlier copies, and returns the path of the new one."""
        earlier = self.copies(file)
        make_private_directory(self._directory)
        stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        copy = self._directory / f"{stamp}-{_file_id(file)}-{file.name.lstrip('.')}"
        write_private(copy, content)
        _delete(earlier)
        return copy

    def remove(self, files: Iterable[Path]) -> None:
        """Removes the copies of these files, and then the directory if it is empty."""
        for file in files:
            _delete(self.copies(file))
        remove_empty([self._directory])

    def copies(self, file: Path) -> list[Path]:
        """Returns the copies of a file, the oldest first; earlier versions of Memoranda kept several."""
        # Earlier versions of Memoranda put no file id into the names of copies.
        name = re.compile(rf"{_STAMP}-(?:{_file_id(file)}-)?{re.escape(file.name.lstrip('.'))}")
        return sorted(path for path in self._directory.glob("*") if name.fullmatch(path.name))


def _delete(copies: Iterable[Path]) -> None:
    for path in copies:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("the settings backup %s cannot be removed: %s", path, error)


def _file_id(file: Path) -> str:
    """Returns an id for a path, because two projects may have settings files of the same name."""
    return digest(str(file))[:8]
