"""`Mount`: an API beside our own on the same server, such as one that is compatible with another product's clients.

Routes of a mount are values like ours and are answered in the same way: the same keys, scopes, limits, threads and
counters; only the form of problems may differ. What is no list of routes comes as an ASGI application, which calls
`MountContext.authenticate` itself.
"""

from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp

from memoranda.service.http.callers import Caller
from memoranda.service.http.endpoint import RenderProblem
from memoranda.service.http.route import Route
from memoranda.service.http.service import Service
from memoranda.service.http.workers import Workers
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MountContext:
    """What a mounted ASGI application may use."""

    service: Service
    workers: Workers
    authenticate: Callable[[dict[str, str]], Awaitable[Caller]]
    """Takes the headers of a request by lower-case name; returns the caller or raises Problem."""


@dataclass(frozen=True, slots=True)
class Mount:
    """An API beside our own. Every path must differ from ours; `prefixes` are paths that an application answers."""

    name: str
    routes: tuple[Route, ...] = ()
    render_problem: RenderProblem | None = None
    prefixes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths that the application answers, without those below them."""
    create_app: Callable[[MountContext], ASGIApp] | None = None
