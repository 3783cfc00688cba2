"""Runs reviews in a background thread, so that no user waits for them."""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from memoranda.agent.review.report import ReviewReport
from memoranda.agent.review.reviewer import Reviewer
from memoranda.agent.review.schedule import DueReview, ReviewSchedule
from memoranda.agent.review.session_snapshot import ReviewSnapshot, take_snapshot
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.session_views import ReviewableSession
from memoranda.errors import LockTimeoutError
from memoranda.models.model import ChatModel
from memoranda.storage.files.fork_lock import fork_condition
from memoranda.support.tool import Tool

_log = logging.getLogger(__name__)


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
        self._changed = fork_condition()
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
        # After a fork the thread is not alive in the child.
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
