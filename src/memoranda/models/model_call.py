"""One model call with retries, streamed text, and a deadline that covers the whole call.

The SDKs' own timeouts restart with every byte, so a service that sends slowly, or a host name that does not resolve,
outlasts them. So the attempts run in a separate thread, and the caller waits for that thread no longer than the
deadline. An abandoned thread stops with its next piece of text, or when its socket times out.

Each error of a service becomes a `CallFailure`: one kind of ModelError, and whether a retry makes sense.
"""

import contextvars
import queue
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from memoranda.errors import (
    ContextTooLongError,
    ModelAuthError,
    ModelError,
    ModelOverloadedError,
    ModelQuotaError,
    ModelReplyError,
    ModelUnreachableError,
)
from memoranda.models.model import OnText, Reply
from memoranda.support.interrupts import interruptible
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end

_MAX_QUOTE_CHARS = 300
# Vendors and local servers word the same errors differently.
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size)[_ ]?(is |was )?exceed|exceed\w*.{0,40}(context|maximum number of tokens allowed)"
    r"|maximum context length|max(imum)? (prompt|input) (length|tokens)|(prompt|input|request) is too (long|large)"
    r"|too many (input )?tokens|reduce the length of the (messages|prompt)|context the overflows|request_too_large",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|credit|balance|funds)|exceeded your current quota|credit balance is too low"
    r"|billing_(error|hard_limit|not_active)|payment required|out of credits|requires more credits",
    re.IGNORECASE,
)
_TOO_LONG_STATUS = frozenset({0, 400, 413, 422, 500})
_RETRY_STATUS = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A failed attempt: the error for the caller, whether to retry, and the seconds that the service asks to wait."""

    error: ModelError
    retry: bool = False
    retry_after: float | None = None


def failure_from_status(
    label: str, status: int, message: str, *, code: str = "", after: float | None = None
) -> CallFailure:
    """The failure for an error response; `status` 0 is an error in the middle of a stream."""
    words = f"{code} {message}"
    report = f"{label} says: {quote(message) or f'status {status}'}"
    if status == 402 or (_NO_CREDIT.search(words) and status not in (401, 500)):
        return CallFailure(ModelQuotaError(f"The account has no credit left. {report}"))
    if status in (401, 403) or code in ("authentication_error", "permission_error", "invalid_api_key"):
        return CallFailure(ModelAuthError(f"The key was not accepted. {report}"))
    if status == 413 or (status in _TOO_LONG_STATUS and _TOO_LONG.search(words)):
        return CallFailure(ContextTooLongError(f"The conversation does not fit into the model's window. {report}"))
    if status == 429 or code == "rate_limit_error":
        return CallFailure(ModelOverloadedError(f"Too many requests for now. {report}"), retry=True, retry_after=after)
    if status in _RETRY_STATUS or status >= 500 or code in ("overloaded_error", "api_error", "server_error"):
        return CallFailure(
            ModelOverloadedError(f"The service cannot answer for now. {report}"), retry=True, retry_after=after
        )
    if status == 404:
        hint = "Check the model's name and the base URL."
        return CallFailure(ModelReplyError(f"The service does not know the model or the address. {report} {hint}"))
    return CallFailure(ModelReplyError(f"The service refused the request ({status or 'in the stream'}). {report}"))


def connection_failure(label: str, why: object) -> CallFailure:
    """The failure if there is no connection, or if it was lost."""
    reason = quote(str(why)) or type(why).__name__
    return CallFailure(
        ModelUnreachableError(f"{label} could not be reached or the connection was lost: {reason}"), retry=True
    )


def incomplete_stream(label: str) -> CallFailure:
    """The failure if a stream ended before the answer was complete."""
    return CallFailure(ModelUnreachableError(f"The answer of {label} ended before it was complete."), retry=True)


def unreadable_reply(label: str, why: object) -> CallFailure:
    """The failure for an invalid response. No retry: the call may have been billed, and would return the same."""
    return CallFailure(ModelReplyError(f"{label} sent a response that is not a reply: {quote(str(why))}"))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that the response headers ask for."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            return max(0.0, float(value) / unit)
        except ValueError:
            continue
    try:
        retry_at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, (retry_at.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def quote(text: str) -> str:
    """The text of a service on one line, shortened."""
    return shorten_end(" ".join(text.split()), _MAX_QUOTE_CHARS, " …")


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
                raise ModelUnreachableError(f"{self._label} did not answer within {self._seconds:g} seconds.") from None
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
