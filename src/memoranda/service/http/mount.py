"""`Mount`: an API beside our own on the same server, such as one that is compatible with another product's clients.

Routes of a mount are values like ours and are answered in the same way: the same keys, scopes, limits, threads and
counters; only the form of problems may differ. What is no list of routes comes as an ASGI application, which calls
`authenticate` itself.
"""

from collections.abc import Callable

from starlette.types import ASGIApp

from memoranda.service.http.endpoint import RenderProblem
from memoranda.service.http.route import Route
from memoranda.service.http.service import Service
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Mount:
    """An API beside our own. Every path must differ from ours; `prefixes` are paths that an application answers."""

    name: str
    routes: tuple[Route, ...] = ()
    render_problem: RenderProblem | None = None
    prefixes: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    """Paths that the application answers, without those below them."""
    create_app: Callable[[Service], ASGIApp] | None = None
