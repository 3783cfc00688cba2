"""Problems as RFC 9457 describes them: every error of the service is `application/problem+json`."""

from collections.abc import Mapping
from http import HTTPStatus

from memoranda.errors import (
    AccessError,
    ConfigError,
    ContinuedError,
    HomeError,
    ItemConflictError,
    LockTimeoutError,
    MemorandaError,
    SessionBusyError,
    SessionError,
    StorageError,
    TakenSessionError,
    UnknownSessionError,
)
from memoranda.support.tool import InvalidArgumentsError, JsonObject

MEDIA_TYPE = "application/problem+json"
# The errors of the library, the more special ones first: status and word. The texts are those of the library.
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (UnknownSessionError, 404, "not_found"),
    (TakenSessionError, 403, "forbidden"),
    (ContinuedError, 409, "continued"),
    (SessionBusyError, 409, "busy"),
    (ItemConflictError, 409, "conflict"),
    (SessionError, 422, "invalid"),
    (InvalidArgumentsError, 422, "invalid"),
    (AccessError, 422, "invalid"),
    (LockTimeoutError, 503, "locked"),
    (StorageError, 503, "storage"),
    (ConfigError, 503, "configuration"),
    (HomeError, 503, "home"),
    (MemorandaError, 503, "unavailable"),
)
_RETRY_SECONDS = "1"


class Problem(Exception):
    """A request that is refused: the status, one word for programs, and a sentence for people."""

    def __init__(
        self, status: int, reason: str, detail: str, headers: Mapping[str, str] | None = None, **more: object
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def body(self, request_id: str) -> JsonObject:
        """The problem as JSON; `reason` is stable, `detail` may change."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "reason": self.reason,
            "detail": self.detail,
            "request_id": request_id,
            **self.more,
        }


def problem_of(error: Exception) -> Problem | None:
    """The problem for an error of the library; None for an error that is a fault of the service."""
    if isinstance(error, Problem):
        return error
    for kind, status, reason in _STATUS:
        if isinstance(error, kind):
            more = {"successor": error.successor} if isinstance(error, ContinuedError) else {}
            headers = {"Retry-After": _RETRY_SECONDS} if status == 503 or reason == "busy" else {}
            return Problem(status, reason, str(error), headers, **more)
    return None
