"""Maps the errors of model services to one kind of ModelError each, and decides whether a retry makes sense."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
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


def deadline_error(label: str, seconds: float) -> ModelUnreachableError:
    return ModelUnreachableError(f"{label} did not answer within {seconds:g} seconds.")


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
