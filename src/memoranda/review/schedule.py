"""When a conversation is reviewed: user turns counted durably, and reviews that stay due until they are done.

A review is a row from the moment it is due. Whoever runs it holds the home's review lock, which falls with the
process; a row that says "running" while the lock is free belongs to a process that died, and is due again. A review
that fails is tried again after one of the next turns, a few times.
"""

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from memoranda.db.lazy_database import LazyDatabase
from memoranda.db.sqlite import Connection
from memoranda.review.report import ReviewReport
from memoranda.review.reviewable_session import MEMORY_TOOL, SKILL_TOOL
from memoranda.review.reviewer import ReviewFocus
from memoranda.review.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.review.settings import ReviewSettings
from memoranda.support.file_lock import FileLock

_log = logging.getLogger(__name__)

LOCK_NAME = ".review.lock"
_MOST_KEPT = 500
_WAIT = 2.0
_FIELDS = "id, user_id, session_id, memory, skills, tries"


@dataclass(frozen=True, slots=True)
class DueReview:
    """A review that is to be made."""

    id: int
    user: str | None
    session_id: str
    wanted: ReviewFocus
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PastReview:
    """A review as the schedule remembers it."""

    session_id: str
    user: str | None
    state: str
    created: float
    result: str


class ReviewSchedule:
    """The schedule of one home, shared by any number of processes. The file is made with the first turn."""

    def __init__(
        self, home: Path, settings: ReviewSettings | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = home / FILE_NAME
        self._lock_path = home / LOCK_NAME
        self._settings = settings or ReviewSettings()
        self._clock = clock
        self._file = LazyDatabase(self.path, SCHEMA, APPLICATION_ID, wait=_WAIT)

    def turn_done(self, user: str | None, session_id: str, *, used: Collection[str], offered: Collection[str]) -> None:
        """Count a completed turn of a real user; when the interval is full, a review of this session is due.

        `used` are the tools that were called in the turn: whoever just saved something needs no reminder. Only what is
        `offered` is counted for.
        """
        interval = self._settings.nudge_interval
        if not interval:
            return
        with self._file.open().writing() as connection:
            memory, skills = _counted(connection, user or "", used, offered)
            wanted = ReviewFocus(memory >= interval, skills >= interval)
            if (wanted.memory or wanted.skills) and _arm(connection, user or "", session_id, wanted, self._clock()):
                memory, skills = 0 if wanted.memory else memory, 0 if wanted.skills else skills
            connection.execute(
                "INSERT INTO counters (user_id, memory_turns, skill_turns) VALUES (?, ?, ?) ON CONFLICT (user_id)"
                " DO UPDATE SET memory_turns = excluded.memory_turns, skill_turns = excluded.skill_turns",
                (user or "", memory, skills),
            )

    def open_reviews(self, user: str | None) -> list[DueReview]:
        """The reviews of a user that are not done, the oldest first; somebody may be at one of them."""
        if not self._file.exists():
            return []
        with self._file.open().reading() as connection:
            rows = connection.execute(
                f"SELECT {_FIELDS} FROM reviews WHERE state IN ('due', 'running') AND user_id = ? ORDER BY id",
                (user or "",),
            ).fetchall()
        return [_due(row) for row in rows]

    def exclusive(self) -> FileLock:
        """The right to review, one at a time in a home; LockTimeoutError when somebody has it."""
        return FileLock(self._lock_path, 0.0)

    def begin(self, due: DueReview) -> DueReview | None:
        """Take a review up, holding the lock; None when it has been done meanwhile, or has taken processes with it."""
        with self._file.open().writing() as connection:
            row = connection.execute(
                f"UPDATE reviews SET state = 'running', tries = tries + 1, ended = ?"
                f" WHERE id = ? AND state IN ('due', 'running') RETURNING {_FIELDS}",
                (self._clock(), due.id),
            ).fetchone()
        if row is None:
            return None
        begun = _due(row)
        if begun.tries > self._settings.tries:
            self.drop(begun, f"broke off {self._settings.tries} times")
            return None
        return begun

    def end(self, due: DueReview, report: ReviewReport) -> bool:
        """Note what came of a review; True when it is to be tried again. What was postponed does not count as a try."""
        again = bool(report.failed) and (report.postponed or due.tries < self._settings.tries)
        if report.failed and not again:
            _log.error("The review of session %s is given up: %s.", due.session_id, report.failed)
        state = "due" if again else "given up" if report.failed else "done"
        tries = due.tries - 1 if report.postponed else due.tries
        with self._file.open().writing() as connection:
            connection.execute(
                "UPDATE reviews SET state = ?, tries = ?, ended = ?, result = ? WHERE id = ?",
                (state, tries, self._clock(), report.summary() or "nothing to save", due.id),
            )
        return again

    def drop(self, due: DueReview, why: str) -> None:
        """Give a review up that cannot be made any more."""
        _log.error("The review of session %s is given up: %s.", due.session_id, why)
        with self._file.open().writing() as connection:
            connection.execute(
                "UPDATE reviews SET state = 'given up', ended = ?, result = ? WHERE id = ?",
                (self._clock(), why, due.id),
            )

    def history(self, limit: int = 20) -> list[PastReview]:
        """The latest reviews, the newest first."""
        if not self._file.exists():
            return []
        with self._file.open().reading() as connection:
            rows = connection.execute(
                "SELECT session_id, user_id, state, created, result FROM reviews ORDER BY id DESC LIMIT ?", (limit,)
            ).fetchall()
        return [PastReview(session_id, user or None, state, at, result) for session_id, user, state, at, result in rows]

    def close(self) -> None:
        self._file.close()


def _counted(connection: Connection, user: str, used: Collection[str], offered: Collection[str]) -> tuple[int, int]:
    row = connection.execute("SELECT memory_turns, skill_turns FROM counters WHERE user_id = ?", (user,)).fetchone()
    memory, skills = row or (0, 0)
    return (
        0 if MEMORY_TOOL in used else memory + (MEMORY_TOOL in offered),
        0 if SKILL_TOOL in used else skills + (SKILL_TOOL in offered),
    )


def _arm(connection: Connection, user: str, session_id: str, wanted: ReviewFocus, now: float) -> bool:
    """Make a review due; False while one of this session is under way, which is too late for what was said since."""
    connection.execute(
        "INSERT INTO reviews (created, user_id, session_id, memory, skills) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (user_id, session_id) WHERE state IN ('due', 'running')"
        " DO UPDATE SET memory = max(memory, excluded.memory), skills = max(skills, excluded.skills)"
        " WHERE state = 'due'",
        (now, user, session_id, wanted.memory, wanted.skills),
    )
    (armed,) = connection.execute("SELECT changes()").fetchone()
    connection.execute(
        "DELETE FROM reviews WHERE state NOT IN ('due', 'running')"
        " AND id <= (SELECT max(id) FROM reviews) - ?", (_MOST_KEPT,)
    )  # fmt: skip
    return bool(armed)


def _due(row: tuple[int, str, str, int, int, int]) -> DueReview:
    number, user, session_id, memory, skills, tries = row
    return DueReview(number, user or None, session_id, ReviewFocus(bool(memory), bool(skills)), tries)
