"""Answers a request according to its route: who asks, may they, is the request well-formed; then the handler.

A request that repeats an Idempotency-Key gets the first answer again; another one with the key is refused. A killed
service may have done the work without storing the answer. So the handlers of such routes derive ids from the token of
the request: repeated, the work finds what it did before.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memoranda.errors import MemorandaError, MovedUserError, StorageError
from memoranda.home.access.request_log import Answers, StoredAnswer
from memoranda.service.http.callers import OWNER, Caller, read_token
from memoranda.service.http.json_text import read_json, write_json
from memoranda.service.http.problems import MEDIA_TYPE, Problem, problem_of
from memoranda.service.http.request_checks import check_body_type, check_loopback, read_body
from memoranda.service.http.route import JSON, Answer, Call, LiveAnswer, Result, Route, Stream, WaitingAnswer
from memoranda.service.http.service import Service
from memoranda.service.http.shapes import read_query
from memoranda.service.http.workers import CHECK_SECONDS
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import InvalidArgumentsError, JsonObject

_KEY = re.compile(r"[\x21-\x7e]{1,255}")
_REPLAYED = {"Idempotent-Replayed": "true"}
RenderProblem = Callable[[Problem, str], Any]
"""The JSON body of a problem, given the problem and the id of the request."""
STATE = "memoranda"
_MAX_PARAMETERS = 50
MIN_COMPRESSED_BYTES = 1_024


def _answer_once(answers: Answers, call: Call, key: str, work: Callable[[], Answer], target: str) -> Answer:
    """Do the work of a request with this Idempotency-Key, unless its answer is stored. `target` is method and path."""
    if not _KEY.fullmatch(key):
        raise Problem(400, "invalid", "Idempotency-Key must have 1 to 255 visible ASCII characters.")
    owner = write_json([call.caller.key_id, call.user])
    token = _digest(owner, target.encode(), key.encode())
    fingerprint = _digest(write_json(call.query), write_json(call.body))
    stored = answers.find(token)
    if stored is None:
        # The fingerprint is a part of it: two different requests at the same time never share an id.
        call.token = _digest(token.encode(), fingerprint.encode())
        answer = work()
        if answer.status >= 500:
            return answer
        # A text of memory is not kept beside memory, where forgetting would not find it.
        kept = (
            answer.body | {"similar": []} if isinstance(answer.body, dict) and "similar" in answer.body else answer.body
        )
        if answers.store(token, StoredAnswer(fingerprint, answer.status, write_json(kept).decode())):
            return answer
        stored = answers.find(token)
        if stored is None or stored.fingerprint == fingerprint:
            return answer
    if stored.fingerprint != fingerprint:
        raise Problem(422, "key_reused", "This Idempotency-Key was used for another request. Use a new one.")
    return Answer(stored.body.encode(), stored.status, _REPLAYED)


def _digest(*parts: bytes) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


@dataclass(slots=True)
class RequestState:
    """What is known about a request while it is answered, for the log and the counters."""

    request_id: str
    route: str = ""
    key_id: str = ""
    headers: dict[str, str] = field(default_factory=dict)


class Endpoint:
    """Answers the routes of one path."""

    def __init__(
        self, service: Service, routes: Mapping[str, Route], render_problem: RenderProblem | None = None
    ) -> None:
        self._service = service
        self._workers = service.workers
        self._routes = routes
        self._render_problem = render_problem
        self._allowed = ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._respond(scope, receive)
        await compressed(response)(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        state: RequestState = scope[STATE]
        method = scope["method"]
        route = self._routes.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = {"Allow": self._allowed}
            refusal = Problem(405, "wrong_method", "This path does not take this method.", allowed)
            return problem_response(refusal, state.request_id)
        state.route = route.path
        try:
            return await self._answer(scope, receive, route, state)
        except (Problem, MemorandaError, InvalidArgumentsError) as error:
            problem = problem_of(error)
            assert problem is not None
            problem.detail = self._service.hide_home(problem.detail)
            return problem_response(problem, state.request_id, self._render_problem)

    async def _answer(self, scope: Scope, receive: Receive, route: Route, state: RequestState) -> Response:
        headers = state.headers
        caller = OWNER
        if route.scope is not None:
            caller = await authenticate(self._service, headers, during_outage=route.during_outage)
            state.key_id = caller.key_id
            self._spend(caller)
            caller.require(route.scope)
        path = {name: _decode(value) for name, value in scope["path_params"].items()}
        pairs = _read_pairs(scope["query_string"])
        query: JsonObject = dict(pairs) if route.open_query else read_query(route.parameters, pairs)
        body = await self._read_body(receive, route, headers)
        call = Call(
            self._service, caller, path=path, query=query, body=body, headers=headers, request_id=state.request_id
        )
        if route.pool is None:
            result = self._handle(route, call)
        else:
            result = await self._workers.run(lambda: self._handle(route, call), pool_name=route.pool)
        if route.method != "GET":
            # Something may have changed that clients of the feed wait for.
            self._service.feed.notify()
        if isinstance(result, WaitingAnswer):
            result = await result.wait()
        if isinstance(result, LiveAnswer):
            return StreamingResponse(result.parts(), media_type=result.media_type)
        if isinstance(result, Stream):
            parts = self._workers.iterate(result.parts)
            return StreamingResponse(parts, media_type=result.media_type, headers=dict(result.headers))
        return _response(result)

    def _spend(self, caller: Caller) -> None:
        try:
            self._service.rate_limit.spend(caller.key_id)
        except Problem:
            self._service.metrics.add("memoranda_rate_limited_total")
            raise

    async def _read_body(self, receive: Receive, route: Route, headers: dict[str, str]) -> Any:
        settings = self._service.settings
        limit = settings.max_import_bytes if route.large_body else settings.max_body_bytes
        raw = await read_body(receive, headers, limit=limit, seconds=settings.body_seconds)
        if route.body is None:
            if raw:
                raise Problem(400, "unexpected_body", "This request takes no body.")
            return None
        check_body_type(headers, route.body_type)
        return route.body.read(read_json(raw), "body") if route.body_type == JSON else raw

    def _handle(self, route: Route, call: Call) -> Result:
        if route.for_user:
            # Refused before the handler does anything.
            _ = call.user
        key = call.headers.get("idempotency-key")
        if key is None or not route.idempotent:
            return self._handle_where_user_is(route, call)

        def work() -> Answer:
            result = self._handle_where_user_is(route, call)
            assert isinstance(result, Answer)
            return result

        target = f"{route.method} {route.path} {write_json(dict(call.path)).decode()}"
        return _answer_once(self._service.answers, call, key, work, target)

    def _handle_where_user_is(self, route: Route, call: Call) -> Result:
        """Call the handler; once more if the user has just moved to another store, which has written nothing then."""
        try:
            return route.handler(call)
        except MovedUserError:
            self._service.memory.services.refresh_users()
            call.__dict__.pop("memory", None)
            return route.handler(call)


async def authenticate(service: Service, headers: dict[str, str], *, during_outage: bool = False) -> Caller:
    """The caller of a request with these headers; raises Problem 401, and 403 or 421 for pages of other sites.

    With `during_outage`, a caller who was recognised lately is known while the database cannot be reached.
    """
    token = read_token(headers)
    authenticator, workers = service.authenticator, service.workers
    caller = authenticator.cached(token)
    if caller is None and during_outage:
        try:
            caller = await workers.run(lambda: authenticator.identify(token), pool_name="check", seconds=CHECK_SECONDS)
        except (Problem, StorageError) as error:
            if isinstance(error, Problem) and error.status != 503:
                raise
            caller = authenticator.known(token)
            if caller is None:
                raise
    elif caller is None:
        caller = await workers.run(lambda: authenticator.identify(token))
    if not caller.key_id:
        if not service.loopback_only:
            raise Problem(401, "no_key", "Send an API key: 'Authorization: Bearer mk_…'.")
        check_loopback(headers)
    return caller


def compressed(response: Response) -> ASGIApp:
    """The response, which compresses itself for clients that accept it; short answers are not worth it."""
    if isinstance(response, StreamingResponse) or len(response.body) >= MIN_COMPRESSED_BYTES:
        return GZipMiddleware(response, minimum_size=MIN_COMPRESSED_BYTES)
    return response


def problem_response(problem: Problem, request_id: str, render: RenderProblem | None = None) -> Response:
    """A problem as a response; `render` gives it the form of another API."""
    if render is not None:
        return Response(write_json(render(problem, request_id)), problem.status, problem.headers, JSON)
    return Response(write_json(problem.body(request_id)), problem.status, problem.headers, MEDIA_TYPE)


def _response(answer: Answer) -> Response:
    if answer.status == 204:
        return Response(status_code=204, headers=dict(answer.headers))
    body = answer.body if isinstance(answer.body, bytes) else write_json(answer.body)
    return Response(body, answer.status, dict(answer.headers), answer.media_type)


def _decode(value: str) -> str:
    """A part of the path; raises Problem 400 if it is not UTF-8."""
    if "%" not in value:
        return value
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        raise Problem(400, "invalid", "The path is not UTF-8.") from None


def _read_pairs(query: bytes) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise Problem(400, "invalid", "The query is not UTF-8, or has too many parameters.") from None
