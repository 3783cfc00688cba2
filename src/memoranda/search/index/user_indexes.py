"""One index file per user, in a directory of limited size: for a server with more users than one node can index.

The first search of a user builds the file from that user's feed. Every use updates the time of the file; when the
directory is larger than its limit, the files that were used least recently are deleted. Threads and processes that have
one of them open finish their search, notice that it is gone, and build it again (see `generations`).

`UserIndexUpkeep` removes what other nodes have deleted, without waiting for a search. It reads the record's feed of
changes as everyone, from a position that is stored beside the files. The files of users with changes are updated, and
those of users who have no sessions in this store any more are deleted. The position is stored after that: a process
that is killed in between leaves the old one, and the next one repeats the work.
"""

import json
import logging
import os
import re
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memoranda.errors import LockTimeoutError, StorageError
from memoranda.memory.record.feed import ChangedSession, ChangedSessions, ChangeHeads, UserFeed, user_name
from memoranda.memory.record.scope import Scope
from memoranda.search.index import generations
from memoranda.search.index.follower import Followed, Follower, FollowingIndex
from memoranda.search.index.generations import is_damage
from memoranda.search.index.search_index import SearchIndex
from memoranda.storage.engine import Engine
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.position import Position
from memoranda.support.durable_files import make_private_directory, write_private

_log = logging.getLogger(__name__)

MAX_BUILD = 20_000
"""A search builds the index of a user with up to so many messages before it answers."""
_MAX_OPEN = 64
# How often the time of a file is updated, and the size of the directory is compared with its limit.
_TOUCH_SECONDS = 60.0
_EVICT_SECONDS = 30.0
# Below the limit, so that the next user does not exceed it at once.
_EVICT_TO = 0.9
# A build that takes longer was abandoned by a process that was killed.
_MAX_BUILD_SECONDS = 3600.0
_FILE = re.compile(r"[0-9a-f]{40}\.index\.db\.\d{1,19}(\.building)?(-wal|-shm|-journal)?")


class UserIndexes:
    """The indexes of the users that were searched for on this node."""

    def __init__(
        self,
        directory: Path,
        engine: Engine,
        max_bytes: int | None = None,
        on_upkeep: Callable[[], object] = lambda: None,
    ) -> None:
        """Without `max_bytes` nothing is evicted, for a process that does not know the limit.

        While users are searched for, `on_upkeep` is called once in a while.
        """
        self._directory = directory
        self._on_upkeep = on_upkeep
        self._engine = engine
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._opened: OrderedDict[str | None, SearchIndex] = OrderedDict()
        self._touched: dict[str | None, float] = {}
        self._evict_at = 0.0
        self._queue = _QueuedUsers(self)
        self.follower = Follower(lambda: self._queue)

    def open(self, user: str | None) -> SearchIndex:
        """The index of a user; the caller asks for it again before each use, so that those in use are known."""
        closing: list[SearchIndex] = []
        with self._lock:
            index = self._opened.get(user)
            if index is None:
                make_private_directory(self._directory)
                index = SearchIndex(self._path(user), UserFeed(self._engine, user), max_refresh=MAX_BUILD)
                self._opened[user] = index
            self._opened.move_to_end(user)
            while len(self._opened) > _MAX_OPEN:
                oldest, other = self._opened.popitem(last=False)
                self._touched.pop(oldest, None)
                closing.append(other)
            now = time.monotonic()
            is_due = now - self._touched.get(user, -_TOUCH_SECONDS) >= _TOUCH_SECONDS
            if is_due:
                self._touched[user] = now
        for other in closing:
            # A search that still uses it opens the file again.
            other.close()
        if is_due:
            for file in index.files[:1]:
                with suppress(OSError):
                    os.utime(file)
            self._evict(user)
        return index

    def nudge_for(self, user: str | None) -> "UserNudge":
        """What wakes the thread that indexes new messages of a user in the background."""
        return UserNudge(self, user)

    def nudge(self, user: str | None, *, hurry: bool, doubtful: bool) -> None:
        """Let the thread update the index of a user who was searched for lately, or is being searched for."""
        if hurry or doubtful or user in self._opened:
            self._queue.add(user, doubtful)
            self.follower.nudge(hurry=hurry or doubtful)

    def exists(self, user: str | None) -> bool:
        return bool(generations.generations(self._path(user)))

    def purge(self, user: str | None) -> None:
        """Remove every word of deleted messages from the file of a user, if there is one."""
        if self.exists(user):
            self.open(user).purge()
        self.sweep()

    def names(self) -> set[str]:
        """The names under which users have files, see `user_name`."""
        return {file.name[:40] for file in self._files()}

    def forget_deleted(self, user: str | None, change: Position) -> bool:
        """Remove the words of what was deleted up to a change from the file of a user; False if they may remain.

        This is no use of the file: it is evicted as if nothing had happened.
        """
        path = self._path(user)
        times = [found.stat() for found in generations.generations(path)[:1]]
        with self._lock:
            opened = self._opened.get(user)
        index = opened or SearchIndex(path, UserFeed(self._engine, user))
        try:
            is_done = index.forget_deleted(change)
        except StorageError as error:
            _log.warning("Words of deleted messages remain in an index: %s", error)
            is_done = False
        finally:
            if opened is None:
                index.close()
        for file, found in zip(index.files, times, strict=False):
            with suppress(OSError):
                os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
        return is_done

    def remove(self, name: str) -> None:
        """Delete the files of a user; the next search builds a new one."""
        self._close_named(name)
        # The database first: without it no process uses the rest.
        for file in sorted(self._files(), key=lambda file: len(file.name)):
            if file.name.startswith(name):
                file.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Delete the files of all users; the next search of a user builds a new one."""
        with self._lock:
            opened, self._opened = list(self._opened.values()), OrderedDict()
            self._touched = {}
        for index in opened:
            index.close()
        for file in self._files():
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self.follower.close()
        with self._lock:
            opened, self._opened = list(self._opened.values()), OrderedDict()
        for index in opened:
            index.close()

    def evict(self, keep: str | None = None, *, keep_one: bool = False) -> int:
        """Delete the files that were used least recently until the directory is within its limit; returns how many.

        With `keep_one`, the file of the user `keep` stays.
        """
        groups: dict[str, list[tuple[Path, int, float]]] = {}
        for file in self._files():
            with suppress(OSError):
                found = file.stat()
                groups.setdefault(file.name[:40], []).append((file, found.st_size, found.st_mtime))
        total = sum(size for files in groups.values() for _, size, _ in files)
        if self._max_bytes is None or total <= self._max_bytes:
            return 0
        # A log is written later than the time of the last use; both count as use.
        oldest_first = sorted(groups, key=lambda name: max(used for _, _, used in groups[name]))
        removed = 0
        for name in oldest_first:
            if total <= _EVICT_TO * self._max_bytes:
                break
            if keep_one and name == user_name(keep):
                continue
            self._close_named(name)
            # The database first: without it no process uses the rest.
            for file, size, _ in sorted(groups[name], key=lambda row: len(row[0].name)):
                file.unlink(missing_ok=True)
                total -= size
            removed += 1
        return removed

    def sweep(self) -> None:
        """Delete logs whose database is gone, which a process that had it open may leave, and abandoned builds."""
        for file in self._files():
            match = _FILE.fullmatch(file.name)
            is_building, companion = match.groups() if match else (None, None)
            with suppress(FileNotFoundError):
                if companion:
                    is_left = not file.with_name(file.name.removesuffix(companion)).exists()
                else:
                    is_left = bool(is_building) and time.time() - file.stat().st_mtime > _MAX_BUILD_SECONDS
                if is_left:
                    file.unlink()

    def _evict(self, user: str | None) -> None:
        """Evict others, and remove what killed processes left; at most once in a while."""
        now = time.monotonic()
        if now < self._evict_at:
            return
        self._evict_at = now + _EVICT_SECONDS
        try:
            self.evict(user, keep_one=True)
            self.sweep()
        except OSError as error:
            _log.warning("The indexes of users could not be limited to their size: %s", error)
        self._on_upkeep()

    def _close_named(self, name: str) -> None:
        with self._lock:
            index = next((self._opened.pop(user) for user in list(self._opened) if user_name(user) == name), None)
        if index is not None:
            index.close()

    def _files(self) -> list[Path]:
        with suppress(FileNotFoundError):
            return [file for file in self._directory.iterdir() if _FILE.fullmatch(file.name)]
        return []

    def _path(self, user: str | None) -> Path:
        return self._directory / f"{user_name(user)}.index.db"


class UserNudge:
    """Wakes the thread of all user indexes for one of them."""

    def __init__(self, indexes: UserIndexes, user: str | None) -> None:
        self._indexes = indexes
        self._user = user

    def nudge(self, *, hurry: bool = False, doubtful: bool = False) -> None:
        self._indexes.nudge(self._user, hurry=hurry, doubtful=doubtful)


class _QueuedUsers(FollowingIndex):
    """The users whose indexes a thread updates, one after the other, as one index that a follower keeps up to date.

    Each user's index is checked and purged when its turn comes. One without sessions is deleted: those of its user may
    have been deleted since the search that asked for the update.
    """

    def __init__(self, indexes: UserIndexes) -> None:
        self._indexes = indexes
        self._lock = threading.Lock()
        self._users: OrderedDict[str | None, bool] = OrderedDict()

    def add(self, user: str | None, doubtful: bool) -> None:
        with self._lock:
            self._users[user] = doubtful or self._users.get(user, False)

    def catch_up(self, *, limit: int | None = None) -> Followed:
        """Index a batch of the first user; complete when no user is left."""
        with self._lock:
            if not self._users:
                return Followed(complete=True)
            user = next(iter(self._users))
            is_doubtful, self._users[user] = self._users[user], False
        index = self._indexes.open(user)
        if is_doubtful:
            index.check()
        progress = index.catch_up(limit=limit)
        if progress.complete or progress.problem is not None:
            self._finish(user, index)
        with self._lock:
            is_last = not self._users
        return Followed(is_last, progress.problem)

    def _finish(self, user: str | None, index: SearchIndex) -> None:
        with self._lock:
            self._users.pop(user, None)
        if index.is_empty():
            self._indexes.remove(user_name(user))
        elif index.needs_purge():
            try:
                index.purge()
            except StorageError as error:
                _log.warning("Words of deleted messages remain in an index: %s", error)


POSITION_FILE = "followed.json"
_LOCK_FILE = "followed.lock"
_BATCH = 10_000
_WAIT = 1.0
# A build that takes longer was abandoned: that of one user takes seconds.
_MAX_USER_BUILD_SECONDS = 600.0


class UserIndexUpkeep(FollowingIndex):
    """Follows the changes of all users, as an index that a `Follower` keeps up to date.

    A file is purged when it is updated, and checked when it is searched.
    """

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

    def catch_up(self, *, limit: int | None = None) -> Followed:
        """Follow all changes; one statement if there are none."""
        heads = self._changes.heads()
        if heads != self._known:
            self._on_change(self._known, heads)
            # Without success the last changes stay unknown, so that the next call repeats them.
            if not self._directory.is_dir() or self._follow_alone(heads.session):
                self._known = heads
        return Followed(complete=True)

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
            # The position was lost: any of the files may have deleted words.
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
                if time.time() - file.stat().st_mtime > _MAX_USER_BUILD_SECONDS:
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
    with closing(generations.connect(file, _WAIT)) as connection:
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
