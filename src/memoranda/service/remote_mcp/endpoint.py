"""The endpoint `/mcp` of the service: MCP over streamable HTTP for clients on other machines.

The service authenticates a request and passes on its `McpCaller`. A POST is answered with JSON, or with a stream of
one event if the client accepts nothing else or if the answer takes long: proxies close connections that stay silent.
Clients of the versions with a handshake get a session; those of later versions send requests that stand alone.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from memoranda.errors import MemorandaError
from memoranda.integrations.mcp.protocol import INTERNAL_ERROR, INVALID_REQUEST, ProtocolError, decode, encode, failure
from memoranda.integrations.mcp.server import McpServer
from memoranda.service.http.request_checks import check_headers, is_own_host, is_own_origin, read_body
from memoranda.service.remote_mcp.sessions import RemoteSessions, SessionOwner
from memoranda.service.remote_mcp.streamable_http import MAX_BODY_BYTES, answer_message, is_json, try_to_read
from memoranda.support.lazy_dataclass import dataclass

SESSION_HEADER: Final = "Mcp-Session-Id"
_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
_MAX_THREADS = 16
_MAX_STREAMS = 1_000
_MAX_STREAMS_OF_ONE = 20
_BODY_SECONDS = 30.0
# After this time an answer becomes a stream, in which comments keep the connection open.
_SLOW_SECONDS = 5.0
_PING_SECONDS = 15.0
_WATCH_SECONDS = 1.0
_PING = b": ping\n\n"
# A proxy must not collect the events of a stream, and a browser must not store answers.
_STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass(frozen=True, slots=True)
class McpCaller:
    """An authenticated client: who owns its sessions, and the server that answers with its rights.

    `create_server(one_client)` makes a server for a session, or for requests without one.
    """

    owner: SessionOwner
    create_server: Callable[[bool], McpServer]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a message; `body` is None for notifications, `session_id` that of a session which it started."""

    status: int
    body: Any
    session_id: str = ""


class RemoteMcpEndpoint:
    """Answers the requests at `/mcp`. `origins` are the web origins whose pages may send requests, such as our own.

    `hide_home` removes the path of the home from the texts of errors.
    """

    def __init__(self, origins: frozenset[str] = frozenset(), *, hide_home: Callable[[str], str] = str) -> None:
        self.sessions = RemoteSessions()
        self._origins = origins
        self._hide_home = hide_home
        # Of its own, because tool calls must not use up the threads of other routes.
        self._limiter = CapacityLimiter(_MAX_THREADS)
        # How many streams are open, by owner.
        self._streams: Counter[str] = Counter()
        self._stopped = False

    def check_origin(self, request: Request) -> Response | None:
        """Refuses a request that a page of another site sent; other programs send no Origin header."""
        origin = request.headers.get("Origin")
        if origin is None or origin in self._origins:
            return None
        # Pages that this machine serves, if the request was sent to this machine under its own name.
        if is_own_origin(origin) and is_own_host(request.headers.get("Host")):
            return None
        return _refusal(403, "Pages of other sites may not send requests here.")

    async def answer(self, request: Request, caller: McpCaller) -> Response:
        """Answers a request of a client that the service has authenticated."""
        if request.method == "POST":
            return await self._answer_post(request, caller)
        if request.method == "GET":
            return await self._open_stream(request, caller)
        if request.method == "DELETE":
            ended = self.sessions.end(caller.owner, request.headers.get(SESSION_HEADER, ""))
            return Response(status_code=204) if ended else _refusal(404, "There is no such session.")
        response = _refusal(405, "Send messages with POST.")
        response.headers["Allow"] = "GET, POST, DELETE"
        return response

    def stop(self) -> None:
        """Ends all streams, so that the service can stop."""
        self._stopped = True

    async def _answer_post(self, request: Request, caller: McpCaller) -> Response:
        if not is_json(request.headers.get("Content-Type")):
            return _refusal(415, "The body must be application/json.")
        headers = check_headers(request.scope["headers"])
        body = await read_body(request.receive, headers, limit=MAX_BODY_BYTES, seconds=_BODY_SECONDS)
        try:
            message = decode(body)
        except ProtocolError as error:
            return _json_response(400, failure(None, error))
        work = asyncio.ensure_future(
            to_thread.run_sync(self._answer_message, request, caller, message, limiter=self._limiter)
        )
        accepted = request.headers.get("Accept", "")
        if _EVENT_STREAM not in accepted:
            return _response_to_post(await work)
        # The headers of a response to `initialize` name the session, so they cannot be sent before its answer is known.
        timeout = None if _starts_session(message) else _SLOW_SECONDS
        if _JSON in accepted or "*/*" in accepted or timeout is None:
            await asyncio.wait([work], timeout=timeout)
        if not work.done():
            return StreamingResponse(_stream_answer(work), media_type=_EVENT_STREAM, headers=_STREAM_HEADERS)
        return _response_to_post(work.result(), as_stream=not (_JSON in accepted or "*/*" in accepted))

    def _answer_message(self, request: Request, caller: McpCaller, message: Any) -> "_Answer":
        try:
            return self._dispatch(request, caller, message)
        except MemorandaError as error:
            # The home cannot be opened, for example because its database is down.
            return _Answer(503, failure(None, ProtocolError(INTERNAL_ERROR, self._hide_home(str(error)))))

    def _dispatch(self, request: Request, caller: McpCaller, message: Any) -> "_Answer":
        if _starts_session(message):
            new_server = caller.create_server(True)
            status, answer = answer_message(new_server, request.headers, message)
            started = isinstance(answer, dict) and "result" in answer
            return _Answer(status, answer, self.sessions.start(caller.owner, new_server) if started else "")
        session_id = request.headers.get(SESSION_HEADER)
        server = caller.create_server(False) if session_id is None else self._find_session(caller, session_id)
        if server is None:
            error = ProtocolError(INVALID_REQUEST, "There is no such session; initialize again.")
            return _Answer(404, failure(None, error))
        return _Answer(*answer_message(server, request.headers, message))

    def _find_session(self, caller: McpCaller, session_id: str) -> McpServer | None:
        return self.sessions.find(caller.owner, session_id, lambda: caller.create_server(True))

    async def _open_stream(self, request: Request, caller: McpCaller) -> Response:
        """Opens the stream of a session, on which the server sends notifications."""
        if _EVENT_STREAM not in request.headers.get("Accept", ""):
            return _refusal(406, f"A GET request opens a stream: accept {_EVENT_STREAM}.")
        session_id = request.headers.get(SESSION_HEADER)
        if session_id is None:
            return _refusal(400, f"The header {SESSION_HEADER} is missing.")
        server = await to_thread.run_sync(self._find_session, caller, session_id)
        if server is None:
            return _refusal(404, "There is no such session.")
        if self._streams.total() >= _MAX_STREAMS or self._streams[caller.owner.name] >= _MAX_STREAMS_OF_ONE:
            response = _refusal(429, "Too many streams are open.")
            response.headers["Retry-After"] = "30"
            return response
        events = self._watch(server, caller.owner, session_id)
        return StreamingResponse(events, media_type=_EVENT_STREAM, headers=_STREAM_HEADERS)

    async def _watch(self, server: McpServer, owner: SessionOwner, session_id: str) -> AsyncIterator[bytes]:
        """Sends notifications of the server until the session or the service ends, or the client leaves."""
        self._streams[owner.name] += 1
        try:
            yield _PING
            silent_seconds = 0.0
            while not self._stopped and self.sessions.is_open(owner, session_id):
                await asyncio.sleep(_WATCH_SECONDS)
                silent_seconds += _WATCH_SECONDS
                messages = await to_thread.run_sync(server.notifications) if server.may_notify else []
                for message in messages:
                    yield _event(message)
                if messages or silent_seconds >= _PING_SECONDS:
                    silent_seconds = 0.0
                    yield _PING
        finally:
            self._streams -= Counter({owner.name: 1})


async def _stream_answer(work: "asyncio.Future[_Answer]") -> AsyncIterator[bytes]:
    """Sends comments until the answer is there, then the answer as one event."""
    while not work.done():
        await asyncio.wait([work], timeout=_PING_SECONDS)
        if not work.done():
            yield _PING
    if (body := work.result().body) is not None:
        yield _event(body)


def _starts_session(message: Any) -> bool:
    request = try_to_read(message)
    return request is not None and request.method == "initialize" and request.wants_answer


def _response_to_post(answer: _Answer, *, as_stream: bool = False) -> Response:
    if answer.body is None:
        response = Response(status_code=202)
    elif as_stream:
        response = Response(_event(answer.body), media_type=_EVENT_STREAM, headers=_STREAM_HEADERS)
    else:
        response = _json_response(answer.status, answer.body)
    if answer.session_id:
        response.headers[SESSION_HEADER] = answer.session_id
    return response


def _json_response(status: int, answer: Any) -> Response:
    return Response(encode(answer), status, media_type=_JSON, headers={"Cache-Control": "no-store"})


def _refusal(status: int, reason: str) -> Response:
    return _json_response(status, failure(None, ProtocolError(INTERNAL_ERROR, reason)))


def _event(message: Any) -> bytes:
    # JSON escapes line breaks, so one line of data holds the message.
    return b"event: message\ndata: " + encode(message) + b"\n\n"
