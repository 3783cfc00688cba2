"""The ASGI application of the service, made from the table of routes and from mounts."""

import logging
import time
from collections.abc import Sequence
from functools import partial

from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.routing import Mount as PrefixRoute
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.service.http.endpoint import (
    MIN_COMPRESSED_BYTES,
    STATE,
    Endpoint,
    RenderProblem,
    RequestState,
    authenticate,
    problem_response,
)
from memoranda.service.http.mount import Mount, MountContext
from memoranda.service.http.path_table import PathTable
from memoranda.service.http.problems import Problem
from memoranda.service.http.request_checks import check_request, request_id_of
from memoranda.service.http.route import Route
from memoranda.service.http.routes import ROUTES
from memoranda.service.http.service import Service
from memoranda.service.http.telemetry import with_telemetry

_log = logging.getLogger(__name__)

_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


def create_app(service: Service, mounts: Sequence[Mount] = (), *, own_routes: Sequence[Route] = ROUTES) -> ASGIApp:
    """The application: our own routes, then those of the mounts."""
    table: PathTable[Endpoint] = PathTable()
    _add_endpoints(table, service, own_routes, None)
    mounted: list[BaseRoute] = []
    for mount in mounts:
        _add_endpoints(table, service, mount.routes, mount.render_problem)
        if mount.create_app is not None:
            context = MountContext(service, service.workers, partial(authenticate, service, service.workers))
            app = _DecodedPath(mount.create_app(context))
            mounted += [PrefixRoute(prefix, app=app, name=mount.name) for prefix in mount.prefixes]
            mounted += [PathRoute(path, app, name=mount.name) for path in mount.paths]
    others = Router(mounted, redirect_slashes=False, default=_answer_unknown_path)
    paths = _Paths(table, GZipMiddleware(others, minimum_size=MIN_COMPRESSED_BYTES))
    return _Entrance(with_telemetry(ServerErrorMiddleware(paths, handler=_answer_fault)), service)


def _add_endpoints(
    table: PathTable[Endpoint], service: Service, routes: Sequence[Route], render: RenderProblem | None
) -> None:
    """One endpoint per path, which answers 405 with all methods of the path."""
    paths: dict[str, dict[str, Route]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = route
    for path, methods in paths.items():
        table.add(path, Endpoint(service, service.workers, methods, render))


class _Paths:
    """Finds the endpoint of a path itself: starlette tries one route after the other, through five layers."""

    def __init__(self, table: PathTable[Endpoint], others: ASGIApp) -> None:
        self._table = table
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._table.find(scope["path"])
        if found is None:
            await self._others(scope, receive, send)
            return
        endpoint, scope["path_params"] = found
        await endpoint(scope, receive, send)


async def _answer_unknown_path(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(404, "not_found", "There is nothing at this path.")
    await problem_response(problem, scope[STATE].request_id)(scope, receive, send)


def _answer_fault(request: Request, error: Exception) -> Response:
    """A fault of the service; the server logs the traceback under the same id."""
    state: RequestState = request.scope[STATE]
    _log.error("request %s failed: %s: %s", state.request_id, type(error).__name__, error)
    problem = Problem(500, "internal", "The service failed. Its log has the details under this request id.")
    return problem_response(problem, state.request_id)


class _Entrance:
    """The outermost layer: gives every request an id, keeps its path as it was sent, and counts it."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._metrics = service.metrics
        self._max_header_bytes = service.settings.max_header_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started, status = time.monotonic(), 500
        state = RequestState(request_id_of(scope["headers"]))
        raw = scope.get("raw_path", b"").decode("ascii", "replace") or scope["path"]
        # Routes are matched with the path as it was sent: an encoded slash belongs to the id that contains it.
        scope = {**scope, STATE: state, "path": raw, "memoranda.path": scope["path"]}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", state.request_id.encode())]
                names = {name for name, _ in headers}
                message = {**message, "headers": headers + [pair for pair in _HEADERS if pair[0] not in names]}
            await send(message)

        try:
            state.headers = check_request(scope, self._max_header_bytes)
            await self._app(scope, receive, send_with_headers)
        except Problem as problem:
            # What follows on this connection may not be a request.
            problem.headers["Connection"] = "close"
            await problem_response(problem, state.request_id)(scope, receive, send_with_headers)
        finally:
            self._metrics.count_request(scope["method"], state.route or "other", status, time.monotonic() - started)


class _DecodedPath:
    """Gives a mounted application the path as other ASGI servers do, decoded."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": scope.get("memoranda.path", scope["path"])}, receive, send)
