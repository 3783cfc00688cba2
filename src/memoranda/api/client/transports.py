"""The two transports over httpx2: one for threads, one for asyncio. Everything else is shared in `exchange`."""

import asyncio
import time
from copy import copy
from typing import TYPE_CHECKING, Any

from memoranda.api.client.exchange import (
    JSON_LINES,
    Operation,
    Request,
    Response,
    T,
    check_address,
    pause_before_retry,
    read_answer,
    unreachable,
    write_body,
)
from memoranda.errors import MemorandaError, ServiceError

if TYPE_CHECKING:
    import httpx2

_TIMEOUT = 30.0


class Transport:
    """Sends requests to one service with one key. Thread-safe."""

    def __init__(self, url: str, key: str | None, user: str | None, *, timeout: float, allow_http: bool) -> None:
        self.url = check_address(url, allow_http=allow_http)
        self._user = user
        self._timeout = timeout or _TIMEOUT
        self._client = _load_httpx().Client(**_options(self.url, key, self._timeout))

    def run(self, operation: Operation[T]) -> T:
        """Carries out an operation."""
        try:
            request = next(operation)
            while True:
                try:
                    answer = self._send(request)
                except MemorandaError as error:
                    # The operation may know what an error means.
                    request = operation.throw(error)
                else:
                    request = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def for_user(self, user: str | None) -> "Transport":
        """The same connections and the same key, for another user."""
        other = copy(self)
        other._user = user
        return other

    def close(self) -> None:
        self._client.close()

    def _send(self, request: Request) -> Any:
        httpx = _load_httpx()
        attempt = 1
        while True:
            response: Response | None = None
            try:
                sent = self._client.request(
                    request.method, request.path, **_content(request, self._user, self._timeout)
                )
                response = _response(sent)
            except httpx.TransportError as error:
                failure = unreachable(self.url, error)
            pause = pause_before_retry(request, response, attempt)
            if pause is None:
                if response is None:
                    raise failure
                return read_answer(request, response)
            time.sleep(pause)
            attempt += 1


class AsyncTransport:
    """The same for asyncio; a cancelled call may still take effect at the service."""

    def __init__(self, url: str, key: str | None, user: str | None, *, timeout: float, allow_http: bool) -> None:
        self.url = check_address(url, allow_http=allow_http)
        self._user = user
        self._timeout = timeout or _TIMEOUT
        self._client = _load_httpx().AsyncClient(**_options(self.url, key, self._timeout))

    async def run(self, operation: Operation[T]) -> T:
        """Carries out an operation."""
        try:
            request = next(operation)
            while True:
                try:
                    answer = await self._send(request)
                except MemorandaError as error:
                    # The operation may know what an error means.
                    request = operation.throw(error)
                else:
                    request = operation.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def for_user(self, user: str | None) -> "AsyncTransport":
        """The same connections and the same key, for another user."""
        other = copy(self)
        other._user = user
        return other

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, request: Request) -> Any:
        httpx = _load_httpx()
        attempt = 1
        while True:
            response: Response | None = None
            try:
                sent = await self._client.request(
                    request.method, request.path, **_content(request, self._user, self._timeout)
                )
                response = _response(sent)
            except httpx.TransportError as error:
                failure = unreachable(self.url, error)
            pause = pause_before_retry(request, response, attempt)
            if pause is None:
                if response is None:
                    raise failure
                return read_answer(request, response)
            await asyncio.sleep(pause)
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


def _response(received: "httpx2.Response") -> Response:
    return Response(received.status_code, {k.lower(): v for k, v in received.headers.items()}, received.content)
