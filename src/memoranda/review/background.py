"""Reviews in the background: a thread per process while there is something to do, and nobody who waits for it."""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from memoranda.agent.session_views import ReviewableSession
from memoranda.errors import LockTimeoutError
from memoranda.llm.model import ChatModel
from memoranda.review.report import ReviewReport
from memoranda.review.reviewable_session import ReviewSnapshot, take_snapshot
from memoranda.review.reviewer import Reviewer
from memoranda.review.schedule import DueReview, ReviewSchedule
from memoranda.review.settings import ReviewSettings
from memoranda.tools import Tool

_log = logging.getLogger(__name__)


class BackgroundReview:
    """Reviews the conversations of one home.

    `model_for` gives the model for a review, metered as background work. `find` opens a session by its id and user, for
    a review that another process left undone; without it such a review is made of the session that is at hand.
    `tell` is called with each report, from the thread.
    """

    def __init__(
        self,
        home: Path,
        model_for: Callable[[ReviewSnapshot], ChatModel],
        settings: ReviewSettings | None = None,
        *,
        find: Callable[[str, str | None], ReviewableSession | None] | None = None,
        tell: Callable[[ReviewReport], None] = lambda report: None,
    ) -> None:
        self.schedule = ReviewSchedule(home, settings)
        self._settings = settings or ReviewSettings()
        self._model_for = model_for
        self._find = find
        self._tell = tell
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def after_turn(
        self, session: ReviewableSession, *, used: Collection[str] = (), tools: Sequence[Tool] | None = None
    ) -> None:
        """A turn of a real user is done, and the tools `used` were called in it. Returns at once and never raises.

        `tools` are those that were sent, when they are more than the session's own: a review sends the same ones.
        """
        if not self._settings.nudge_interval or self._stopped:
            return
        try:
            sent = tuple(session.tools if tools is None else tools)
            self.schedule.turn_done(session.user, session.id, used=used, offered=[tool.name for tool in sent])
            self._take_up(session, sent)
        except Exception:
            # The conversation goes on, whatever happens here.
            _log.exception("The review of session %s could not be scheduled", session.id)

    def wait(self, timeout: float) -> bool:
        """Wait until no review is under way in this process, at most so long; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_busy(), timeout)

    def close(self, timeout: float | None = None) -> bool:
        """Begin nothing more and wait briefly; False when a review is still under way. It is due again then."""
        with self._changed:
            self._stopped = True
        done = self.wait(self._settings.shutdown_seconds if timeout is None else timeout)
        if done:
            self.schedule.close()
        return done

    def _take_up(self, session: ReviewableSession, sent: tuple[Tool, ...]) -> None:
        """Hand the oldest review of this user that is open to the thread, unless it is busy."""
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

    def _start(self, due: DueReview, taken: ReviewSnapshot) -> None:
        with self._changed:
            if self._stopped or self._is_busy():
                return
            self._thread = threading.Thread(target=self._run, args=(due, taken), name="memoranda-review", daemon=True)
            self._thread.start()

    def _is_busy(self) -> bool:
        # Not alive after a fork: the thread stayed with the parent.
        return self._thread is not None and self._thread.is_alive()

    def _run(self, due: DueReview, taken: ReviewSnapshot) -> None:
        try:
            report = self._review(due, taken)
            if report is not None:
                self._tell(report)
        except LockTimeoutError as error:
            # Somebody else reviews; this one stays due.
            _log.debug("No review of session %s now: %s", due.session_id, error)
        except Exception:
            # It stays due, and is given up after a few tries.
            _log.exception("The review of session %s broke off", due.session_id)
        finally:
            with self._changed:
                self._thread = None
                self._changed.notify_all()

    def _review(self, due: DueReview, taken: ReviewSnapshot) -> ReviewReport | None:
        with self.schedule.exclusive():
            begun = self.schedule.begin(due)
            if begun is None:
                return None
            reviewer = Reviewer(self._model_for(taken), self._settings)
            report = reviewer.review(taken, begun.wanted, stopped=lambda: self._stopped)
            self.schedule.end(begun, report)
            return report
