"""Schedules reviews, and runs them in a background thread, so that no user waits for them.

The schedule counts user turns durably. A review has a row as soon as it is due, and stays due until it is done. The
process that runs it holds the review lock of the home, or of the user if a server has the tables, which is released
when the process ends; a row in state "running" while the lock is free belongs to a process that died, and is due again.
A failed review is retried after one of the next turns, a few times.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memoranda.agent.review.report import MEMORY_TOOL, SKILL_TOOL, ReviewReport, ReviewSnapshot, take_snapshot
from memoranda.agent.review.reviewer import Reviewer, ReviewFocus
from memoranda.agent.review.schema import SCHEMA
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.session_views import ReviewableSession
from memoranda.errors import LockTimeoutError
from memoranda.models.model import ChatModel
from memoranda.storage.connection import Connection
from memoranda.storage.engine import Engine
from memoranda.storage.files.file_lock import FileLock
from memoranda.storage.home_database import HomeDatabase
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import Tool

_log = logging.getLogger(__name__)

LOCK_NAME = ".review.lock"
_MAX_KEPT = 500
_BUSY_TIMEOUT = 2.0
_FIELDS = "id, user_id, session_id, memory, skills, tries"


@dataclass(frozen=True, slots=True)
class DueReview:
    """A review that is due."""

    id: int
    user: str | None
    session_id: str
    focus: ReviewFocus
    tries: int = 0


@dataclass(frozen=True, slots=True)
class PastReview:
    """A review in the history of the schedule."""

    session_id: str
    user: str | None
    state: str
    created: float
    result: str


class ReviewSchedule:
    """The schedule of one home, shared by any number of processes."""

    def __init__(
        self,
        home: Path,
        settings: ReviewSettings | None = None,
        *,
        server_url: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`server_url` names the server that has the tables for all nodes, instead of `home.db`."""
        self._lock_path = home / LOCK_NAME
        self._settings = settings or ReviewSettings()
        self._clock = clock
        self._file = HomeDatabase(home, SCHEMA, server_url=server_url, wait=_BUSY_TIMEOUT)

    def record_turn(
        self, user: str | None, session_id: str, *, used: Collection[str], offered: Collection[str]
    ) -> None:
        """Counts a completed turn of a user; at the end of an interval, a review of this session becomes due.

        `used` are the tools called in the turn: using a tool resets its count. Only tools that are `offered` count.
        """
        interval = self._settings.nudge_interval
        if not interval:
            return
        engine = self._engine_for(user)
        with engine.writing() as connection:
            engine.lock_session(connection, _lock_name(user))
            memory, skills = _count_turn(connection, user or "", used, offered)
            focus = ReviewFocus(memory >= interval, skills >= interval)
            if (focus.memory or focus.skills) and _make_due(connection, user or "", session_id, focus, self._clock()):
                memory, skills = 0 if focus.memory else memory, 0 if focus.skills else skills
            connection.execute(
                "INSERT INTO counters (user_id, memory_turns, skill_turns) VALUES (?, ?, ?) ON CONFLICT (user_id)"
                " DO UPDATE SET memory_turns = excluded.memory_turns, skill_turns = excluded.skill_turns",
                (user or "", memory, skills),
            )

    def open_reviews(self, user: str | None) -> list[DueReview]:
        """The unfinished reviews of a user, oldest first; another process may be running one of them."""
        if not self._file.exists():
            return []
        with self._engine_for(user).reading() as connection:
            rows = connection.execute(
                f"SELECT {_FIELDS} FROM reviews WHERE state IN ('due', 'running') AND user_id = ? ORDER BY id",
                (user or "",),
            ).fetchall()
        return [_due_review(row) for row in rows]

    @contextmanager
    def exclusive(self, user: str | None = None) -> Iterator[None]:
        """Hold the lock for running a review of a user; raises LockTimeoutError if another process holds it.

        A home in files has one lock for all users. A server has one for each, because many nodes share it.
        """
        if not self._file.server_url:
            with FileLock(self._lock_path, 0.0):
                yield
            return
        lock = self._file.open().lock_turn(_lock_name(user), 0.0)
        try:
            yield
        finally:
            lock.release()

    def begin(self, due: DueReview) -> DueReview | None:
        """Starts a review while holding the lock; None if it is done already, or has crashed too many processes."""
        with self._engine_for(due.user).writing() as connection:
            row = connection.execute(
                f"UPDATE reviews SET state = 'running', tries = tries + 1, ended = ?"
                f" WHERE id = ? AND state IN ('due', 'running') RETURNING {_FIELDS}",
                (self._clock(), due.id),
            ).fetchone()
        if row is None:
            return None
        started = _due_review(row)
        if started.tries > self._settings.tries:
            self.drop(started, f"it was interrupted {self._settings.tries} times")
            return None
        return started

    def end(self, due: DueReview, report: ReviewReport) -> bool:
        """Records the result of a review; True if it will be retried. A postponed review does not count as a try."""
        retry = bool(report.failed) and (report.postponed or due.tries < self._settings.tries)
        if report.failed and not retry:
            _log.error("Gave up the review of session %s: %s.", due.session_id, report.failed)
        state = "due" if retry else "given up" if report.failed else "done"
        tries = due.tries - 1 if report.postponed else due.tries
        with self._engine_for(due.user).writing() as connection:
            connection.execute(
                "UPDATE reviews SET state = ?, tries = ?, ended = ?, result = ? WHERE id = ?",
                (state, tries, self._clock(), report.summary() or "nothing to save", due.id),
            )
        return retry

    def drop(self, due: DueReview, why: str) -> None:
        """Gives up a review that can no longer run."""
        _log.error("Gave up the review of session %s: %s.", due.session_id, why)
        with self._engine_for(due.user).writing() as connection:
            connection.execute(
                "UPDATE reviews SET state = 'given up', ended = ?, result = ? WHERE id = ?",
                (self._clock(), why, due.id),
            )

    def history(self, limit: int = 20) -> list[PastReview]:
        """The latest reviews, newest first."""
        rows = self._file.fetch_all(
            "SELECT session_id, user_id, state, created, result FROM reviews ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [PastReview(session_id, user or None, state, at, result) for session_id, user, state, at, result in rows]

    def close(self) -> None:
        self._file.close()

    def _engine_for(self, user: str | None) -> Engine:
        return self._file.open().acting_for(user)


def _lock_name(user: str | None) -> str:
    return f"review:{user or ''}"


def _count_turn(connection: Connection, user: str, used: Collection[str], offered: Collection[str]) -> tuple[int, int]:
    row = connection.execute("SELECT memory_turns, skill_turns FROM counters WHERE user_id = ?", (user,)).fetchone()
    memory, skills = row or (0, 0)
    return (
        0 if MEMORY_TOOL in used else memory + (MEMORY_TOOL in offered),
        0 if SKILL_TOOL in used else skills + (SKILL_TOOL in offered),
    )


def _make_due(connection: Connection, user: str, session_id: str, focus: ReviewFocus, now: float) -> bool:
    """Makes a review due; False while one of this session is running, because it does not cover the latest turns."""
    changed = connection.execute(
        "INSERT INTO reviews (created, user_id, session_id, memory, skills) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (user_id, session_id) WHERE state IN ('due', 'running') DO UPDATE SET"
        " memory = CASE WHEN reviews.memory > excluded.memory THEN reviews.memory ELSE excluded.memory END,"
        " skills = CASE WHEN reviews.skills > excluded.skills THEN reviews.skills ELSE excluded.skills END"
        " WHERE reviews.state = 'due'",
        (now, user, session_id, int(focus.memory), int(focus.skills)),
    ).rowcount
    connection.execute(
        "DELETE FROM reviews WHERE user_id = ? AND state NOT IN ('due', 'running')"
        " AND id <= (SELECT id FROM reviews WHERE user_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
        (user, user, _MAX_KEPT),
    )
    return changed > 0


def _due_review(row: tuple[int, str, str, int, int, int]) -> DueReview:
    number, user, session_id, memory, skills, tries = row
    return DueReview(number, user or None, session_id, ReviewFocus(bool(memory), bool(skills)), tries)


class BackgroundReview:
    """Reviews the conversations of one home.

    `model_for` returns the model for a review, metered as background work. `find` opens a session by id and user, for a
    review that another process did not finish; without `find`, that review uses the current session. The thread calls
    `on_report` with each report. `server_url` names the server that has the schedule, if it is not in the home.
    """

    def __init__(
        self,
        home: Path,
        model_for: Callable[[ReviewSnapshot], ChatModel],
        settings: ReviewSettings | None = None,
        *,
        server_url: str = "",
        find: Callable[[str, str | None], ReviewableSession | None] | None = None,
        on_report: Callable[[ReviewReport], None] = lambda report: None,
    ) -> None:
        self.schedule = ReviewSchedule(home, settings, server_url=server_url)
        self._settings = settings or ReviewSettings()
        self._model_for = model_for
        self._find = find
        self._on_report = on_report
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def after_turn(
        self, session: ReviewableSession, *, used: Collection[str] = (), tools: Sequence[Tool] | None = None
    ) -> None:
        """Counts a completed turn of a user in which the tools `used` were called; returns at once and never raises.

        `tools` are the tools that were sent, if they are more than the session's own; a review sends the same ones.
        """
        if not self._settings.nudge_interval or self._stopped:
            return
        try:
            sent = tuple(session.tools if tools is None else tools)
            self.schedule.record_turn(session.user, session.id, used=used, offered=[tool.name for tool in sent])
            self._start_open_review(session, sent)
        except Exception:
            # The conversation must continue, whatever fails here.
            _log.exception("The review of session %s could not be scheduled", session.id)

    def wait(self, timeout: float) -> bool:
        """Waits at most `timeout` seconds until no review runs in this process; returns whether none does."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy(), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Starts no more reviews and waits briefly; False if one is still running, which then stays due."""
        with self._changed:
            self._stopped = True
        done = self.wait(self._settings.shutdown_seconds if timeout is None else timeout)
        if done:
            self.schedule.close()
        return done

    def _start_open_review(self, session: ReviewableSession, sent: tuple[Tool, ...]) -> None:
        """Starts the oldest open review of this user in the thread, unless the thread is busy."""
        with self._changed:
            if self._is_busy():
                return
        for due in self.schedule.open_reviews(session.user):
            subject = self._subject(due, session)
            if subject is None:
                self.schedule.drop(due, "the session is gone")
                continue
            self._start(due, replace(take_snapshot(subject), tools=sent))
            return

    def _subject(self, due: DueReview, session: ReviewableSession) -> ReviewableSession | None:
        if due.session_id == session.id or self._find is None:
            return session
        return self._find(due.session_id, due.user)

    def _start(self, due: DueReview, snapshot: ReviewSnapshot) -> None:
        with self._changed:
            if self._stopped or self._is_busy():
                return
            self._thread = threading.Thread(
                target=self._run, args=(due, snapshot), name="memoranda-review", daemon=True
            )
            self._thread.start()

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, due: DueReview, snapshot: ReviewSnapshot) -> None:
        try:
            report = self._review(due, snapshot)
            if report is not None:
                self._on_report(report)
        except LockTimeoutError as error:
            # Another process is reviewing; this review stays due.
            _log.debug("No review of session %s now: %s", due.session_id, error)
        except Exception:
            # The review stays due; the schedule gives it up after a few tries.
            _log.exception("The review of session %s failed unexpectedly", due.session_id)
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _review(self, due: DueReview, snapshot: ReviewSnapshot) -> ReviewReport | None:
        with self.schedule.exclusive(due.user):
            started = self.schedule.begin(due)
            if started is None:
                return None
            reviewer = Reviewer(self._model_for(snapshot), self._settings)
            report = reviewer.review(snapshot, started.focus, is_stopped=lambda: self._stopped)
            self.schedule.end(started, report)
            return report
