"""The ASGI application of the service, made from the table of routes and from mounts.

A table by the parts of paths finds what answers a path, so that the number of routes costs nothing. With OpenTelemetry
there is one span per request, sent to the collector that the environment names; without one it is off.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from starlette.middleware.errors import ServerErrorMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Router
from starlette.routing import Mount as PrefixRoute
from starlette.routing import Route as PathRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.errors import ConfigError
from memoranda.home.config.environment import is_set
from memoranda.service.http.endpoint import (
    MIN_COMPRESSED_BYTES,
    STATE,
    Endpoint,
    RenderProblem,
    RequestState,
    problem_response,
)
from memoranda.service.http.json_text import write_json
from memoranda.service.http.mount import Mount
from memoranda.service.http.problems import Problem
from memoranda.service.http.request_checks import check_request, request_id_of
from memoranda.service.http.route import Route
from memoranda.service.http.routes import ROUTES
from memoranda.service.http.service import Service

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_T = TypeVar("_T")
_log = logging.getLogger(__name__)
ACCESS_LOG = logging.getLogger(f"{__name__}.access")
"""One line of JSON per request, if it is turned on (`serve --access-log`); never an address, a user or a text."""
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class _Node(Generic[_T]):
    __slots__ = ("literal", "target", "variable")

    def __init__(self) -> None:
        self.literal: dict[str, _Node[_T]] = {}
        self.variable: _Node[_T] | None = None
        self.target: tuple[tuple[str, ...], _T] | None = None
        """The names of the variable parts, and what answers the path that ends here."""


class PathTable(Generic[_T]):
    """Paths such as `/v1/sessions/{session_id}` and what belongs to each. A literal part precedes a variable one."""

    def __init__(self) -> None:
        self._root: _Node[_T] = _Node()

    def add(self, path: str, target: _T) -> None:
        """Add a path; the first one stays if two have the same parts, whatever the names of the variable ones are."""
        node, names = self._root, []
        for part in path.split("/"):
            if part.startswith("{"):
                names.append(part[1:-1])
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.literal.setdefault(part, _Node())
        if node.target is None:
            node.target = (tuple(names), target)

    def find(self, path: str) -> tuple[_T, Mapping[str, str]] | None:
        """What belongs to a path as it was sent, and the variable parts by name; None if nothing does."""
        values: list[str] = []
        found = _find(self._root, path.split("/"), 0, values)
        if found is None or found.target is None:
            return None
        names, target = found.target
        return target, dict(zip(names, values, strict=True))


def _find(node: _Node[_T], parts: list[str], index: int, values: list[str]) -> _Node[_T] | None:
    """The node of the remaining parts; `values` are then the variable parts, in order."""
    if index == len(parts):
        return node if node.target is not None else None
    part = parts[index]
    literal = node.literal.get(part)
    if literal is not None and (found := _find(literal, parts, index + 1, values)) is not None:
        return found
    if node.variable is None or not part:
        return None
    values.append(part)
    found = _find(node.variable, parts, index + 1, values)
    if found is None:
        values.pop()
    return found


def _with_telemetry(app: ASGIApp) -> ASGIApp:
    """The application, traced if the environment names a collector; raises ConfigError without the extra."""
    if not any(map(is_set, _VARIABLES)):
        return app
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{_VARIABLES[0]} is set, and OpenTelemetry is not installed: pip install 'memoranda[telemetry]'."
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "memoranda"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return TracedApp(app, provider)


class TracedApp:
    """Starts a span for each request. Its attributes are the route and the status, never ids, names or texts."""

    def __init__(self, app: ASGIApp, provider: "TracerProvider") -> None:
        self._app = app
        self._tracer = provider.get_tracer("memoranda")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._tracer.start_as_current_span(scope["method"]) as span:

            async def send_traced(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            await self._app(scope, receive, send_traced)
            span.set_attribute("http.request.method", scope["method"])
            state = scope.get(STATE)
            if isinstance(state, RequestState) and state.route:
                span.update_name(f"{scope['method']} {state.route}")
                span.set_attribute("http.route", state.route)


def create_app(service: Service, mounts: Sequence[Mount] = (), *, own_routes: Sequence[Route] = ROUTES) -> ASGIApp:
    """The application: our own routes, then those of the mounts."""
    table: PathTable[Endpoint] = PathTable()
    _add_endpoints(table, service, own_routes, None)
    mounted: list[BaseRoute] = []
    for mount in mounts:
        _add_endpoints(table, service, mount.routes, mount.render_problem)
        if mount.create_app is not None:
            app = _DecodedPath(mount.create_app(service))
            mounted += [PrefixRoute(prefix, app=app, name=mount.name) for prefix in mount.prefixes]
            mounted += [PathRoute(path, app, name=mount.name) for path in mount.paths]
    others = Router(mounted, redirect_slashes=False, default=_answer_unknown_path)
    paths = _Paths(table, GZipMiddleware(others, minimum_size=MIN_COMPRESSED_BYTES))
    return _Entrance(_with_telemetry(ServerErrorMiddleware(paths, handler=_answer_fault)), service)


def _add_endpoints(
    table: PathTable[Endpoint], service: Service, routes: Sequence[Route], render: RenderProblem | None
) -> None:
    """One endpoint per path, which answers 405 with all methods of the path."""
    paths: dict[str, dict[str, Route]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method] = route
    for path, methods in paths.items():
        table.add(path, Endpoint(service, methods, render))


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
            seconds = time.monotonic() - started
            self._metrics.count_request(scope["method"], state.route or "other", status, seconds)
            if ACCESS_LOG.isEnabledFor(logging.INFO):
                ACCESS_LOG.info(_access_line(scope["method"], state, status, seconds))


def _access_line(method: str, state: RequestState, status: int, seconds: float) -> str:
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "request_id": state.request_id,
        "key_id": state.key_id,
        "method": method,
        "route": state.route or "other",
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
    }
    return write_json(line).decode()


class _DecodedPath:
    """Gives a mounted application the path as other ASGI servers do, decoded."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": scope.get("memoranda.path", scope["path"])}, receive, send)
