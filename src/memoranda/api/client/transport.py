"""How requests reach a service: what is sent, how answers are read, and the transport over httpx2.

A request is repeated only if it cannot do anything twice: it reads, or it carries an Idempotency-Key, for which the
service does the work once and answers the same again.
"""

import json
import random
import secrets
import time
from collections.abc import Mapping
from copy import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memoranda.errors import (
    AccessError,
    ContinuedError,
    ItemConflictError,
    MemorandaError,
    ServiceError,
    SessionBusyError,
    SessionError,
    StorageError,
    UnknownSessionError,
)
from memoranda.support.json_object import parse_object
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import httpx2

MAX_ATTEMPTS = 5
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 8.0
_RETRIED = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_EXCERPT = 200
_PAGE = 100
JSON_LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the service; `path` begins with a slash. `safe` says that it may be sent again.

    `lines` is a body of JSON lines instead of `body`, and `wait` how long the service may wait before it answers.
    """

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    safe: bool = False
    lines: bytes | None = None
    wait: float = 0.0


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of optional fields."""
    return {name: value for name, value in fields.items() if value is not None}


def check_address(url: str, *, allow_http: bool) -> str:
    """The address of a service without a slash at its end; raises AccessError if keys must not be sent there."""
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise AccessError(f"{url!r} is not an address. It looks like https://memory.example.com.") from None
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        raise AccessError(f"{url!r} is not the address of a service. It looks like https://memory.example.com.")
    if parts.scheme == "http" and host not in _LOOPBACK and not allow_http:
        raise AccessError(
            f"{url!r} would send the key without encryption. Use https://, or pass allow_http=True on a network that "
            "you trust."
        )
    return url.strip().rstrip("/")


def write_body(body: Any) -> bytes:
    """A body as JSON; raises SessionError for a value that JSON does not have."""
    try:
        return json.dumps(body, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise SessionError(f"This cannot be sent as JSON: {error}. Nothing was recorded.") from error


def read_answer(request: Request, response: "httpx2.Response") -> Any:
    """The JSON of an answer, a list for lines, None for an empty one; raises the library's error for a problem."""
    if 200 <= response.status_code < 300:
        try:
            if response.headers.get("content-type", "").startswith(JSON_LINES):
                return [json.loads(line) for line in response.content.split(b"\n") if line.strip()]
            return json.loads(response.content) if response.content else None
        except (ValueError, RecursionError):
            excerpt = response.content[:_MAX_EXCERPT].decode("utf-8", "replace")
            raise ServiceError(
                f"The answer of the service is not JSON: {excerpt!r}.", status=response.status_code
            ) from None
    raise _error_of(request, response)


def pause_before_retry(request: Request, response: "httpx2.Response | None", attempt: int) -> float | None:
    """How many seconds to wait before a request is sent again; None if it must not be.

    `response` is None when the connection failed; `attempt` counts from 1.
    """
    if not request.safe or attempt >= MAX_ATTEMPTS:
        return None
    if response is not None and response.status_code not in _RETRIED:
        return None
    backoff: float = min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
    asked = "" if response is None else response.headers.get("retry-after", "")
    # A service that asks for a longer pause gets its error reported instead.
    return None if asked.isdigit() and int(asked) > 30 else max(backoff, float(asked) if asked.isdigit() else 0.0)


def unreachable(url: str, error: Exception) -> ServiceError:
    """The error for a service that gave no answer."""
    reason = str(error) or type(error).__name__
    return ServiceError(f"The service at {url} cannot be reached ({reason}). Is it running, and is the address right?")


def _error_of(request: Request, response: "httpx2.Response") -> MemorandaError:
    problem = parse_object(response.content) or {}
    detail = str(problem.get("detail") or f"The service answered with the status {response.status_code}.")
    reason, status = problem.get("reason"), response.status_code
    if status in (401, 403):
        return AccessError(detail)
    if reason == "continued":
        return ContinuedError(request.path.split("/")[3], str(problem.get("successor")))
    if reason == "changed" and isinstance(problem.get("version"), int):
        return ItemConflictError(detail, problem["version"])
    if reason == "busy":
        return SessionBusyError(detail)
    if status == 404 and request.path.startswith("/v1/sessions/"):
        return UnknownSessionError(detail)
    if status in (400, 404, 409, 412, 413, 422):
        error: MemorandaError = SessionError(detail)
    elif reason in ("storage", "locked"):
        error = StorageError(detail)
    else:
        error = ServiceError(detail, status=status)
    # What the service says in addition, such as the findings of the scanner.
    error.problem = problem  # type: ignore[attr-defined]
    return error


_TIMEOUT = 30.0


class Transport:
    """Sends requests to one service with one key. Thread-safe."""

    def __init__(self, url: str, key: str | None, user: str | None, *, timeout: float, allow_http: bool) -> None:
        self.url = check_address(url, allow_http=allow_http)
        self._user = user
        self._timeout = timeout or _TIMEOUT
        self._client = _load_httpx().Client(**_options(self.url, key, self._timeout))

    def read(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Sends a request that changes nothing; parameters that are None are left out."""
        return self.send(Request(method, path, body, without_none(query), safe=True))

    def read_pages(self, path: str, name: str, limit: int, **query: Any) -> list[dict[str, Any]]:
        """Reads up to so many rows of a list, which each answer has under a name, in as many requests as it takes."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while len(found) < limit:
            answer = self.read("GET", path, limit=min(_PAGE, limit - len(found)), cursor=cursor, **query)
            found += answer[name]
            cursor = answer.get("next_cursor")
            if cursor is None:
                break
        return found

    def write(self, method: str, path: str, body: Any = None) -> Any:
        """Sends a request that changes something once, however often it has to be sent."""
        return self.send(Request(method, path, body, headers={"Idempotency-Key": secrets.token_urlsafe(18)}, safe=True))

    def for_user(self, user: str | None) -> "Transport":
        """The same connections and the same key, for another user."""
        other = copy(self)
        other._user = user
        return other

    def close(self) -> None:
        self._client.close()

    def send(self, request: Request) -> Any:
        """The JSON of the answer; raises the library's error for a problem."""
        httpx = _load_httpx()
        attempt = 1
        while True:
            response: httpx2.Response | None = None
            try:
                content = _content(request, self._user, self._timeout)
                response = self._client.request(request.method, request.path, **content)
            except httpx.TransportError as error:
                failure = unreachable(self.url, error)
            pause = pause_before_retry(request, response, attempt)
            if pause is None:
                if response is None:
                    raise failure
                return read_answer(request, response)
            time.sleep(pause)
            attempt += 1


def _load_httpx() -> Any:
    try:
        # Loaded with the first connection: only those who use the client need it.
        import httpx2
    except ImportError:
        raise ServiceError("The client needs the package httpx2: pip install 'memoranda[client]'.") from None
    return httpx2


def _options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    headers = {"Accept": "application/json", "User-Agent": "memoranda"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    # A redirect would send the key elsewhere.
    return {"base_url": url, "headers": headers, "timeout": timeout, "follow_redirects": False}


def _content(request: Request, user: str | None, timeout: float) -> dict[str, Any]:
    query = dict(request.query) | ({"user": user} if user is not None else {})
    flags = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    options: dict[str, Any] = {"params": flags, "headers": dict(request.headers)}
    if request.wait:
        options["timeout"] = timeout + request.wait
    if request.lines is not None:
        options["content"] = request.lines
        options["headers"] |= {"Content-Type": JSON_LINES}
    elif request.body is not None:
        # As ASCII, because UTF-8 cannot contain half of a surrogate pair, which people do paste.
        options["content"] = write_body(request.body)
        options["headers"] |= {"Content-Type": "application/json"}
    return options
