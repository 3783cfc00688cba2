"""The spool: notifications in files next to the outbox, while the outbox cannot be written.

Each job has its own file, which is renamed into place when it is complete and on the disk, and never changed. So no
lock is needed, and a file that was read can be removed. A process that is killed in between loads its files again, and
the jobs' keys prevent duplicates.
"""

import hashlib
import itertools
import json
import logging
import os
import time
from pathlib import Path

from memoranda.external.outbox.jobs import JobRow
from memoranda.storage.position import Position
from memoranda.support.durable_files import make_private_directory, write_private

DIRECTORY = "outbox.spool"
UNREADABLE = ".unreadable"
_log = logging.getLogger(__name__)


class Spool:
    """The spool of one home."""

    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY
        self._count = itertools.count()

    def write(self, row: JobRow) -> None:
        """Write a job; it is durable when this returns. Raises OSError when the disk refuses it."""
        make_private_directory(self._directory)
        # Sorted by recipient, then by age, then by writer.
        order = f"{time.time_ns():020d}-{os.getpid()}-{id(self):x}-{next(self._count):06d}"
        name = f"{_recipient(row.provider)}{_recipient(row.scope)}{order}.json"
        write_private(self._directory / name, json.dumps(row._asdict()).encode())

    def write_position(self, provider: str, scope: str, position: Position) -> None:
        """Store the position from which the record is read for a provider that has none in the outbox."""
        make_private_directory(self._directory)
        write_private(self._position_file(provider, scope), str(position).encode())

    def position(self, provider: str, scope: str) -> Position | None:
        """The position that `write_position` stored; None when the spool has none."""
        try:
            return Position.parse(self._position_file(provider, scope).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def delete_position(self, provider: str, scope: str) -> None:
        """Delete the position, which is in the outbox now."""
        self._position_file(provider, scope).unlink(missing_ok=True)

    def files(self, provider: str | None = None, scope: str | None = None) -> list[Path]:
        """The files of one provider and scope, or of all, the oldest of each first."""
        prefix = "" if provider is None else _recipient(provider) + ("" if scope is None else _recipient(scope))
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        return [self._directory / name for name in sorted(names) if name.startswith(prefix) and name.endswith(".json")]

    def read(self, file: Path) -> JobRow | None:
        """The job in a file; None when another process has loaded it, or it is unreadable and gets another name."""
        try:
            return JobRow(**json.loads(file.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            _log.error("%s cannot be read and is skipped: %s", file, error)
            file.rename(f"{file}{UNREADABLE}")
            return None

    def _position_file(self, provider: str, scope: str) -> Path:
        return self._directory / f"{_recipient(provider)}{_recipient(scope)}place"


def _recipient(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12] + "-"
