"""What the outbox could not take, in files beside it, until somebody who can write it takes them in.

Each thing has a file of its own, which is renamed into place when it is whole and on the disk, and never changed: so no
lock is needed, and a file that was read can be removed. Whoever is killed in between takes it in once more, with the
same key.
"""

import hashlib
import itertools
import json
import logging
import os
import time
from pathlib import Path

from memoranda.db.position import Position
from memoranda.providers.jobs import JobRow
from memoranda.support.durable_files import make_private_directory, write_private

DIRECTORY = "outbox.spool"
UNREADABLE = ".unreadable"
_log = logging.getLogger(__name__)


class Spool:
    """The files of one home."""

    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY
        self._count = itertools.count()

    def keep(self, row: JobRow) -> None:
        """Write one down; it is durable when this returns. Raises OSError when the disk does not take it."""
        make_private_directory(self._directory)
        # By whom it is for, then by age, then by whoever wrote it.
        order = f"{time.time_ns():020d}-{os.getpid()}-{id(self):x}-{next(self._count):06d}"
        name = f"{_whom(row.provider)}{_whom(row.scope)}{order}.json"
        write_private(self._directory / name, json.dumps(row._asdict()).encode())

    def write_position(self, provider: str, scope: str, place: Position) -> None:
        """Write down from where on the record is to be looked through, where nobody has yet."""
        make_private_directory(self._directory)
        write_private(self._place_file(provider, scope), str(place).encode())

    def place(self, provider: str, scope: str) -> Position | None:
        """That place; None when it is not here."""
        try:
            return Position.parse(self._place_file(provider, scope).read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def delete_position(self, provider: str, scope: str) -> None:
        """It is in the outbox now."""
        self._place_file(provider, scope).unlink(missing_ok=True)

    def files(self, provider: str | None = None, scope: str | None = None) -> list[Path]:
        """What waits: of one provider and scope, or of everybody, the oldest of each first."""
        begin = "" if provider is None else _whom(provider) + ("" if scope is None else _whom(scope))
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        return [self._directory / name for name in sorted(names) if name.startswith(begin) and name.endswith(".json")]

    def read(self, file: Path) -> JobRow | None:
        """What a file holds; None when somebody else has taken it in, or it cannot be read, which is kept apart."""
        try:
            return JobRow(**json.loads(file.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            _log.error("%s cannot be read and is left out: %s", file, error)
            file.rename(f"{file}{UNREADABLE}")
            return None

    def _place_file(self, provider: str, scope: str) -> Path:
        return self._directory / f"{_whom(provider)}{_whom(scope)}place"


def _whom(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12] + "-"
