"""One model call with everything around it: a deadline that holds, tries again after failures, text as it comes.

The SDKs' own timeouts run from byte to byte, and a service that drips bytes, or a name that does not resolve, outlasts
them. So the call runs in a thread of its own and the caller waits for it, no longer than the deadline. A call that is
given up is told to stop with its next byte, and its socket times out by itself.
"""

import contextvars
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from memoranda.llm.model import OnText, Reply
from memoranda.llm.vendor_errors import CallFailure, deadline_error
from memoranda.support.interrupts import interruptible

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 20.0

Attempt = Callable[[OnText, float], Reply]
"""Ask once: gets where text goes, and how many seconds are left; raises FailedAttemptError."""


class FailedAttemptError(Exception):
    """One attempt failed, and what that means."""

    def __init__(self, failure: CallFailure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class _GivenUpError(Exception):
    """Nobody waits for this answer any more."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """What came of the call in the end."""

    reply: Reply | None = None
    error: BaseException | None = None


class ModelCall:
    """One call: as many attempts as `tries` and the deadline allow."""

    def __init__(self, who: str, attempt: Attempt, *, deadline: float, tries: int) -> None:
        self._who = who
        self._attempt = attempt
        self._tries = tries
        self._seconds = deadline
        self._ends_at = time.monotonic() + deadline
        self._given_up = threading.Event()
        self._came: queue.SimpleQueue[str | _Ended] = queue.SimpleQueue()
        self._spoke = False

    def reply(self, on_text: OnText | None) -> Reply:
        """The answer; `on_text` is called in this thread."""
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._run,), name=f"model call to {self._who}", daemon=True)
        thread.start()
        try:
            return self._listen(on_text or _ignore)
        finally:
            self._given_up.set()

    def _listen(self, on_text: OnText) -> Reply:
        while True:
            try:
                with interruptible:
                    came = self._came.get(timeout=max(0.0, self._left()))
            except queue.Empty:
                raise deadline_error(self._who, self._seconds) from None
            if isinstance(came, str):
                on_text(came)
            elif came.reply is not None:
                return came.reply
            elif came.error is not None:
                raise came.error

    def _run(self) -> None:
        """In the thread: whatever happens is handed to the one who waits."""
        try:
            ended = _Ended(reply=self._persist())
        except BaseException as error:
            ended = _Ended(error=error)
        self._came.put(ended)

    def _persist(self) -> Reply:
        for number in range(1, self._tries + 1):
            try:
                return self._attempt(self._say, max(0.001, self._left()))
            except FailedAttemptError as error:
                failure = error.failure
                wait = _wait(number, failure.after)
                # What the user has seen cannot be unsaid, so an answer that broke off is not begun anew.
                if not failure.again or self._spoke or number == self._tries or wait >= self._left():
                    raise failure.error from error
            if self._given_up.wait(wait):
                break
        raise _GivenUpError

    def _say(self, text: str) -> None:
        if self._given_up.is_set():
            raise _GivenUpError
        if text:
            self._spoke = True
            self._came.put(text)

    def _left(self) -> float:
        return self._ends_at - time.monotonic()


def _wait(number: int, asked: float | None) -> float:
    """Longer each time, and never in step with other clients."""
    own = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (number - 1)) * random.uniform(0.75, 1.0)
    return own if asked is None else max(own, asked)


def _ignore(_: str) -> None:
    """Nobody listens."""
