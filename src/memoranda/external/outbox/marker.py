"""The marker of the outbox: a small file that notices when `outbox.db` was deleted, emptied or replaced.

SQLite would create a new file, and nothing would say that jobs were waiting in the old one. The marker has the id of
the queue, the highest number that a job ever had, and how many waited. A loss never keeps the queue from working: it is
noted in the marker, until the doctor has shown it and a person accepts it.
"""

import logging
import sqlite3
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from memoranda.storage.connection import Connection
from memoranda.storage.files.marker_file import MarkerFile
from memoranda.storage.orphaned_wal import file_size, main_file_missing

_log = logging.getLogger(__name__)

_ID = "outbox_id"
_POSITION = (
    f"SELECT (SELECT value FROM state_meta WHERE key = '{_ID}'),"
    " (SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), (SELECT count(*) FROM jobs)"
)


@dataclass(frozen=True, slots=True)
class OutboxMarker:
    """`last_job` is the highest number of a job, `waiting` how many were not delivered.

    `losses` counts the files that were lost since a person last accepted that, and `lost` the jobs that waited in them.
    """

    queue_id: str = ""
    last_job: int = 0
    waiting: int = 0
    losses: int = 0
    lost: int = 0

    def is_older_or_other(self, found: "OutboxMarker") -> bool:
        """Whether the file that was found is not the one of this marker, or an older copy of it."""
        return bool(self.queue_id) and (found.queue_id != self.queue_id or found.last_job < self.last_job)

    def after_loss(self, found: "OutboxMarker") -> "OutboxMarker":
        """The marker for a file that took the place of this one's."""
        # An older copy lacks at most the jobs that got their numbers since.
        newer = self.last_job - found.last_job if found.queue_id == self.queue_id else self.waiting
        return replace(found, losses=self.losses + 1, lost=self.lost + min(self.waiting, newer))


class OutboxGuard:
    """Compares the file of a queue with its marker whenever it is opened, and keeps the marker up to date."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = MarkerFile(path, OutboxMarker)

    def read(self) -> OutboxMarker | None:
        """The marker; None if there is none, an empty one if it is damaged."""
        return self._file.read()

    def refuse_new(self) -> None:
        """Refuses nothing: notifications must be stored somewhere."""

    def refuse_other_owner(self, connection: sqlite3.Connection) -> None:
        """Refuses nothing; the database itself refuses a file of another program."""

    def check(self, connection: sqlite3.Connection) -> None:
        """Note a loss before anything is written to the file."""
        self.update(connection)

    def start(self, connection: sqlite3.Connection) -> None:
        """Give a queue that has none an id."""
        try:
            if read_position(connection).queue_id:
                return
            connection.execute("INSERT OR IGNORE INTO state_meta (key, value) VALUES (?, ?)", (_ID, uuid.uuid4().hex))
        except sqlite3.Error as error:
            _log.info("%s gets an id later: %s", self._path, error)
        self.update(connection)

    def update(self, connection: sqlite3.Connection) -> None:
        """Write how far the queue has got, unless a transaction is open, whose changes may not become durable."""
        if not connection.in_transaction:
            self.note(connection)

    def note(self, connection: Connection) -> None:
        """Write how far the queue has got, if that has changed; a failure is logged, because nothing depends on it.

        A transaction of the connection must have begun with this call: the marker must not be newer than what is read.
        """
        try:
            known, found = self.read(), read_position(connection)
            if known is None:
                noted = found
            elif known.is_older_or_other(found):
                noted = known.after_loss(found)
            else:
                noted = replace(found, losses=known.losses, lost=known.lost)
            if noted != known and (found.queue_id or noted.losses) and (noted.last_job or noted.losses):
                self._file.overwrite(noted)
        except (OSError, sqlite3.Error) as error:
            # The tables of a new file do not exist yet.
            _log.debug("%s could not be written: %s", self._file.path, error)

    def find_loss(self, connection: Connection | None) -> OutboxMarker | None:
        """The marker with what was lost, given the present file if there is one; None if nothing was."""
        known = self.read()
        if known is None:
            return None
        found = OutboxMarker() if connection is None else read_position(connection)
        if known.is_older_or_other(found):
            known = known.after_loss(found)
        return known if known.losses else None

    def accept(self, connection: Connection | None) -> None:
        """Count the present file as the queue of the home from now on; None if there is none."""
        if connection is None:
            self._file.path.unlink(missing_ok=True)
        else:
            self._file.overwrite(read_position(connection))

    def continue_in(self, connection: Connection) -> None:
        """Let a file with the rows of a damaged one take its place: with the same id, and later numbers."""
        known = self.read()
        if known is not None and known.queue_id:
            connection.execute("INSERT OR REPLACE INTO state_meta (key, value) VALUES (?, ?)", (_ID, known.queue_id))
            connection.execute(
                "INSERT INTO sqlite_sequence (name, seq) SELECT 'jobs', 0"
                " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'jobs')"
            )
            connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'jobs'", (known.last_job,))


def read_position(connection: Connection) -> OutboxMarker:
    """The id of an open queue, and how far it has got."""
    queue_id, last_job, waiting = connection.execute(_POSITION).fetchone()
    return OutboxMarker(str(queue_id or ""), last_job or 0, waiting)


def file_is_lost(path: Path) -> bool:
    """Whether the file of a queue is missing or empty, and nothing of it is left in its log."""
    return not file_size(path) and not main_file_missing(path)
