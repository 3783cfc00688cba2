"""Removes what other nodes have deleted from the index files of users on this node, without waiting for a search.

The record's feed of changes is read as everyone, from a position that is stored beside the files. The files of users
with changes are updated, and those of users who have no sessions in this store any more are deleted. The position is
stored after that: a process that is killed in between leaves the old one, and the next one repeats the work.
"""

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memoranda.errors import LockTimeoutError
from memoranda.memory.record.feed import ChangedSession, ChangedSessions, ChangeHeads, UserFeed, user_name
from memoranda.memory.record.scope import Scope
from memoranda.search.index import generations
from memoranda.search.index.sqlite_errors import is_damage
from memoranda.search.index.user_indexes import UserIndexes
from memoranda.storage import fork_safety
from memoranda.storage.engine import Engine
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.position import Position
from memoranda.support.durable_files import write_private

_log = logging.getLogger(__name__)

POSITION_FILE = "followed.json"
_LOCK_FILE = "followed.lock"
_BATCH = 10_000
_WAIT = 1.0
# A build that takes longer was abandoned: that of one user takes seconds.
_MAX_BUILD_SECONDS = 600.0


class UpkeepProgress(NamedTuple):
    """Whether everything that can be done now is done."""

    complete: bool
    problem: str | None = None


class UserIndexUpkeep:
    """Follows the changes of all users, as an index that a `Follower` keeps up to date."""

    def __init__(
        self,
        directory: Path,
        engine: Engine,
        indexes: Callable[[], UserIndexes],
        on_change: Callable[[ChangeHeads | None, ChangeHeads], None] = lambda before, now: None,
    ) -> None:
        """`on_change` is called with the last changes that were known (None at first), and those that are known now."""
        self._directory = directory
        self._engine = engine
        self._indexes = indexes
        self._on_change = on_change
        self._changes = ChangedSessions(engine, Scope.everyone(), None)
        self._known: ChangeHeads | None = None
        self._stopping = threading.Event()

    def catch_up(self, *, limit: int | None = None) -> UpkeepProgress:
        """Follow all changes; one statement if there are none."""
        heads = self._changes.heads()
        if heads != self._known:
            self._on_change(self._known, heads)
            # Without success the last changes stay unknown, so that the next call repeats them.
            if not self._directory.is_dir() or self._follow_alone(heads.session):
                self._known = heads
        return UpkeepProgress(True)

    def check(self) -> None:
        """The files are checked when they are searched."""

    def needs_purge(self) -> bool:
        return False

    def purge(self) -> None:
        """Every file is purged when it is updated."""

    def stop(self) -> None:
        """End after the current file; the position stays where it is."""
        self._stopping.set()

    def _follow_alone(self, head: Position) -> bool:
        """Follow the changes unless another process of this node does; returns whether nothing is left to do."""
        try:
            with FileLock(self._directory / _LOCK_FILE, timeout=0):
                return self._follow(head)
        except LockTimeoutError:
            return False

    def _follow(self, head: Position) -> bool:
        store = self._changes.store_id()
        stored_for, position = self._read_position()
        if position is None:
            # Files of an earlier version, or a position that was lost: any of them may have deleted words.
            if not self._update(self._containing(None, self._indexes().names()), head):
                return False
            self._write_position(store, position := head)
        elif stored_for != store or position > head:
            _log.warning("The indexes of users in %s belong to another state of the record.", self._directory)
            self._indexes().remove_all()
            self._write_position(store, position := head)
        while changed := self._changes.changed_after(position, _BATCH):
            if not self._update(self._affected(changed), changed[-1].position):
                return False
            position = changed[-1].position
            self._write_position(store, position)
        return True

    def _affected(self, changed: Collection[ChangedSession]) -> dict[str, "_Owner | None"]:
        """The names of the files that the changes may affect, with their users; None if only the file says whose it is.

        A deleted session does not say whose it was, so it is looked for in the files.
        """
        names = self._indexes().names()
        found: dict[str, _Owner | None] = {}
        for change in changed:
            if change.exists and (name := user_name(change.user)) in names:
                found[name] = _Owner(change.user)
        deleted = {change.session_id for change in changed if change.was_deleted}
        return found | self._containing(deleted, names.difference(found)) if deleted else found

    def _containing(self, sessions: Set[str] | None, names: Collection[str]) -> dict[str, "_Owner | None"]:
        """Those of the files that have any of these sessions, or any session at all (None)."""
        found: dict[str, _Owner | None] = {}
        for name in names:
            if self._stopping.is_set():
                break
            if any(_may_contain(file, sessions) for file in self._generations(name)):
                found[name] = None
        return found

    def _update(self, affected: dict[str, "_Owner | None"], change: Position) -> bool:
        """Remove from each file what the changes up to a position deleted; False if this must be repeated."""
        indexes = self._indexes()
        for name, known in affected.items():
            if self._stopping.is_set():
                return False
            owner = known or self._owner_in_file(name)
            if owner is None or not UserFeed(self._engine, owner.user).session_ids():
                indexes.remove(name)
            elif not indexes.forget_deleted(owner.user, change):
                _log.info("The index %s could not be updated, and will be built again.", name)
                indexes.remove(name)
        indexes.sweep()
        return not self._stopping.is_set() and not self._has_builds()

    def _has_builds(self) -> bool:
        """Whether a file is being built, perhaps from the record before the changes; abandoned ones are deleted."""
        has_recent = False
        for file in self._directory.glob("*.building"):
            with suppress(FileNotFoundError):
                if time.time() - file.stat().st_mtime > _MAX_BUILD_SECONDS:
                    generations.remove(file)
                else:
                    has_recent = True
        return has_recent

    def _owner_in_file(self, name: str) -> "_Owner | None":
        """The user whose index a file is; None if it has no sessions, or is not that of the user whom it names."""
        for file in self._generations(name)[:1]:
            with suppress(sqlite3.DatabaseError), _reading(file) as connection:
                row = connection.execute("SELECT user FROM sessions LIMIT 1").fetchone()
                if row is not None and user_name(row[0]) == name:
                    return _Owner(row[0])
        return None

    def _generations(self, name: str) -> list[Path]:
        return generations.generations(self._directory / f"{name}.index.db")

    def _read_position(self) -> tuple[str, Position | None]:
        """The store and the position that were followed last; without a position if there is no readable file."""
        try:
            stored = json.loads((self._directory / POSITION_FILE).read_text(encoding="utf-8"))
            return str(stored["store"]), Position.parse(stored["change"])
        except (OSError, ValueError, KeyError, TypeError):
            return "", None

    def _write_position(self, store: str, position: Position) -> None:
        content = json.dumps({"store": store, "change": str(position)})
        write_private(self._directory / POSITION_FILE, content.encode())


class _Owner(NamedTuple):
    user: str | None


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    with fork_safety.gate, closing(generations.connect(file, _WAIT)) as connection:
        yield connection


def _may_contain(file: Path, sessions: Set[str] | None) -> bool:
    """Whether a file has one of the sessions, or words of messages that were deleted earlier.

    One that a search has just created has neither.
    """
    try:
        with _reading(file) as connection:
            if connection.execute("SELECT 1 FROM dead LIMIT 1").fetchone():
                return True
            rows = connection.execute("SELECT id FROM sessions")
            return any(sessions is None or session_id in sessions for (session_id,) in rows)
    except sqlite3.DatabaseError as error:
        # It may have been evicted since, and a damaged one is deleted like one whose user is unknown.
        if is_damage(error) or not file.exists():
            return file.exists()
        raise
