"""How requests reach a service: what is sent, how answers are read, and two transports over httpx2.

One transport is for threads and one for asyncio. They share everything that needs no network. A request is repeated
only if it cannot do anything twice: it reads, or it carries an Idempotency-Key, for which the service does the work
once and answers the same again.
"""

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, cast
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

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
P = ParamSpec("P")
MAX_ATTEMPTS = 5
_FIRST_PAUSE, _MAX_PAUSE = 0.2, 8.0
_RETRIED = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_EXCERPT = 200
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


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the service, as a transport received it."""

    status: int
    headers: Mapping[str, str]
    content: bytes


Operation = Generator[Request, Any, T]
"""A call of the interface: yields requests, is sent their JSON answers, and returns its result."""


def reading(method: str, path: str, body: Any = None, **query: Any) -> Request:
    """A request that changes nothing; parameters that are None are left out."""
    return Request(method, path, body, {name: value for name, value in query.items() if value is not None}, safe=True)


def writing(method: str, path: str, body: Any = None) -> Request:
    """A request that changes something once, however often it has to be sent."""
    return Request(method, path, body, headers={"Idempotency-Key": secrets.token_urlsafe(18)}, safe=True)


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


def read_answer(request: Request, response: Response) -> Any:
    """The JSON of an answer, a list for lines, None for an empty one; raises the library's error for a problem."""
    if 200 <= response.status < 300:
        try:
            if response.headers.get("content-type", "").startswith(JSON_LINES):
                return [json.loads(line) for line in response.content.split(b"\n") if line.strip()]
            return json.loads(response.content) if response.content else None
        except (ValueError, RecursionError):
            excerpt = response.content[:_MAX_EXCERPT].decode("utf-8", "replace")
            raise ServiceError(f"The answer of the service is not JSON: {excerpt!r}.", status=response.status) from None
    raise _error_of(request, response)


def pause_before_retry(request: Request, response: Response | None, attempt: int) -> float | None:
    """How many seconds to wait before a request is sent again; None if it must not be.

    `response` is None when the connection failed; `attempt` counts from 1.
    """
    if not request.safe or attempt >= MAX_ATTEMPTS:
        return None
    if response is not None and response.status not in _RETRIED:
        return None
    backoff: float = min(_MAX_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
    asked = "" if response is None else response.headers.get("retry-after", "")
    # A service that asks for a longer pause gets its error reported instead.
    return None if asked.isdigit() and int(asked) > 30 else max(backoff, float(asked) if asked.isdigit() else 0.0)


def unreachable(url: str, error: Exception) -> ServiceError:
    """The error for a service that gave no answer."""
    reason = str(error) or type(error).__name__
    return ServiceError(f"The service at {url} cannot be reached ({reason}). Is it running, and is the address right?")


def _error_of(request: Request, response: Response) -> MemorandaError:
    problem = parse_object(response.content) or {}
    detail = str(problem.get("detail") or f"The service answered with the status {response.status}.")
    reason, status = problem.get("reason"), response.status
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


class _Connection:
    """What both colours share: a client of httpx2 for one user, and what to send or await for an operation."""

    _client_class: ClassVar[str]

    def __init__(self, url: str, key: str | None, user: str | None, *, timeout: float, allow_http: bool) -> None:
        self.url = check_address(url, allow_http=allow_http)
        self._user = user
        self._timeout = timeout or _TIMEOUT
        self._client = getattr(_load_httpx(), self._client_class)(**_options(self.url, key, self._timeout))

    def for_user(self, user: str | None) -> Self:
        """The same connections and the same key, for another user."""
        other = copy(self)
        other._user = user
        return other

    def _steps(self, operation: Operation[T]) -> Generator[Request | float, Any, T]:
        """The requests of an operation, each as often as it is worth it, and the seconds to pause between them.

        A request is answered with what httpx2 returned, or with the error that it raised.
        """
        try:
            request = next(operation)
            while True:
                try:
                    answer = yield from self._attempts(request)
                except MemorandaError as error:
                    # The operation may know what an error means.
                    request = operation.throw(error)
                else:
                    request = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _attempts(self, request: Request) -> Generator[Request | float, Any, Any]:
        attempt = 1
        while True:
            sent = yield request
            response = None if isinstance(sent, Exception) else _response(sent)
            pause = pause_before_retry(request, response, attempt)
            if pause is None:
                if response is None:
                    raise unreachable(self.url, sent)
                return read_answer(request, response)
            yield pause
            attempt += 1

    def _arguments(self, request: Request) -> dict[str, Any]:
        content = _content(request, self._user, self._timeout)
        return {"method": request.method, "url": request.path, **content}


class Transport(_Connection):
    """Sends requests to one service with one key. Thread-safe."""

    _client_class = "Client"

    def run(self, operation: Operation[T]) -> T:
        """Carries out an operation."""
        steps = self._steps(operation)
        transport_error = _load_httpx().TransportError
        result: Any = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, float):
                    time.sleep(step)
                    continue
                try:
                    result = self._client.request(**self._arguments(step))
                except transport_error as error:
                    result = error
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    def close(self) -> None:
        self._client.close()


class AsyncTransport(_Connection):
    """The same for asyncio; a cancelled call may still take effect at the service."""

    _client_class = "AsyncClient"

    async def run(self, operation: Operation[T]) -> T:
        """Carries out an operation."""
        steps = self._steps(operation)
        transport_error = _load_httpx().TransportError
        result: Any = None
        try:
            while True:
                step = steps.send(result)
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    continue
                try:
                    result = await self._client.request(**self._arguments(step))
                except transport_error as error:
                    result = error
        except StopIteration as stop:
            answer: T = stop.value
            return answer

    async def close(self) -> None:
        await self._client.aclose()


def awaitable(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A method of a synchronous client for the one of asyncio, whose transport returns a coroutine for the result."""
    return cast("Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]", method)


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


def _response(received: "httpx2.Response") -> Response:
    return Response(received.status_code, {k.lower(): v for k, v in received.headers.items()}, received.content)
