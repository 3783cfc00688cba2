"""Mounts the viewer on the HTTP service, and makes the application of `memoranda view`.

`memoranda view` is for one person on this machine, who logs in with a link that works once.
"""

from functools import partial
from typing import TYPE_CHECKING

from memoranda.service.http.mount import Mount
from memoranda.service.http.service import Service
from memoranda.service.viewer.logins import LOGIN, LoginLinks
from memoranda.service.viewer.page import PREFIX, page_url

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def viewer_mount(links: LoginLinks | None = None, user: str | None = None, *, prepare: bool = False) -> Mount:
    """The viewer at `/view`: with `links` it takes only those, for the owner or `user`; without, the service's keys.

    `prepare` loads it when the server starts, and gets its pages ready in the background.
    """
    create_app = partial(_LazyViewer, links=links, user=user, prepare=prepare)
    return Mount("viewer", paths=("/", PREFIX), prefixes=(PREFIX,), create_app=create_app)


class _LazyViewer:
    """Loads the pages with the first request: they use most of the library, and many services show none of them."""

    def __init__(self, service: Service, *, links: LoginLinks | None, user: str | None, prepare: bool) -> None:
        self._service = service
        self._links = links
        self._user = user
        self._app: ASGIApp | None = self._load(prepare=True) if prepare else None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if self._app is None:
            made = await self._service.workers.run(self._load)
            # Two requests may load it at once; one application answers all.
            self._app = self._app or made
        await self._app(scope, receive, send)

    def _load(self, *, prepare: bool = False) -> "ASGIApp":
        from memoranda.service.viewer.app import ViewerApp  # noqa: PLC0415

        return ViewerApp(self._service, links=self._links, user=self._user, prepare=prepare)


class LocalViewer:
    """The mount of a viewer that takes only its own links."""

    def __init__(self, user: str | None = None, *, prepare: bool = False) -> None:
        self._links = LoginLinks()
        self.mount = viewer_mount(self._links, user, prepare=prepare)

    def new_login_path(self) -> str:
        """The path of a new link, which works once and for a minute."""
        return page_url(LOGIN, token=self._links.create())
