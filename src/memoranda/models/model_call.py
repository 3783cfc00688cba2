"""One model call with retries, streamed text, and a deadline that covers the whole call.

The SDKs' own timeouts restart with every byte, so a service that sends slowly, or a host name that does not resolve,
outlasts them. So the attempts run in a separate thread, and the caller waits for that thread no longer than the
deadline. An abandoned thread stops with its next piece of text, or when its socket times out.
"""

import contextvars
import queue
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from memoranda.models.model import OnText, Reply
from memoranda.models.vendor_errors import CallFailure, deadline_error
from memoranda.support.interrupts import interruptible

_FIRST_WAIT = 0.5
_MAX_WAIT = 20.0

Attempt = Callable[[OnText, float], Reply]
"""Asks the model once; receives a function for streamed text and the seconds left; raises FailedAttemptError."""


class FailedAttemptError(Exception):
    """One attempt failed; `failure` says whether to retry."""

    def __init__(self, failure: CallFailure) -> None:
        super().__init__(str(failure.error))
        self.failure = failure


class _AbandonedError(Exception):
    """The caller no longer waits for the answer."""


@dataclass(frozen=True, slots=True)
class _Result:
    """The end of the call: a reply or an error."""

    reply: Reply | None = None
    error: BaseException | None = None


class ModelCall:
    """One call: as many attempts as `tries` and the deadline allow."""

    def __init__(self, label: str, attempt: Attempt, *, deadline: float, tries: int) -> None:
        self._label = label
        self._attempt = attempt
        self._tries = tries
        self._seconds = deadline
        self._ends_at = time.monotonic() + deadline
        self._abandoned = threading.Event()
        self._events: queue.SimpleQueue[str | _Result] = queue.SimpleQueue()
        self._has_streamed = False

    def reply(self, on_text: OnText | None) -> Reply:
        """Runs the attempts in a thread and returns the answer; `on_text` is called in the caller's thread."""
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._run,), name=f"model call to {self._label}", daemon=True
        )
        thread.start()
        try:
            return self._wait_for_result(on_text or _ignore)
        finally:
            self._abandoned.set()

    def _wait_for_result(self, on_text: OnText) -> Reply:
        while True:
            try:
                with interruptible:
                    event = self._events.get(timeout=max(0.0, self._seconds_left()))
            except queue.Empty:
                raise deadline_error(self._label, self._seconds) from None
            if isinstance(event, str):
                on_text(event)
            elif event.reply is not None:
                return event.reply
            elif event.error is not None:
                raise event.error

    def _run(self) -> None:
        """Runs in the thread; passes the result, or any exception, to the waiting caller."""
        try:
            result = _Result(reply=self._try_repeatedly())
        except BaseException as error:
            result = _Result(error=error)
        self._events.put(result)

    def _try_repeatedly(self) -> Reply:
        for number in range(1, self._tries + 1):
            try:
                return self._attempt(self._stream, max(0.001, self._seconds_left()))
            except FailedAttemptError as error:
                failure = error.failure
                wait = _wait_before_retry(number, failure.retry_after)
                # The user has seen streamed text, so an interrupted answer is not started again.
                if not failure.retry or self._has_streamed or number == self._tries or wait >= self._seconds_left():
                    raise failure.error from error
            if self._abandoned.wait(wait):
                break
        raise _AbandonedError

    def _stream(self, text: str) -> None:
        if self._abandoned.is_set():
            raise _AbandonedError
        if text:
            self._has_streamed = True
            self._events.put(text)

    def _seconds_left(self) -> float:
        return self._ends_at - time.monotonic()


def _wait_before_retry(number: int, retry_after: float | None) -> float:
    """The seconds to wait: more each time, with some randomness so that clients do not retry in step."""
    wait = min(_MAX_WAIT, _FIRST_WAIT * 2.0 ** (number - 1)) * random.uniform(0.75, 1.0)
    return wait if retry_after is None else max(wait, retry_after)


def _ignore(_: str) -> None:
    """The `on_text` of a caller that does not want a stream."""
