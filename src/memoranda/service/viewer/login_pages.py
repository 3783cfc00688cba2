"""The pages of the login: the form or the link, the link's exchange for a cookie, and the end of a login."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memoranda.service.http.endpoint import STATE
from memoranda.service.http.problems import Problem
from memoranda.service.http.workers import Workers
from memoranda.service.viewer.gate import Gate
from memoranda.service.viewer.logins import LOGIN, LOGOUT
from memoranda.service.viewer.page import PREFIX, View, page_url, read_parameters
from memoranda.service.viewer.renderer import Renderer

_WRONG_LINK = (
    "This login link was already used, or it is older than a minute. Press Enter in the terminal in which "
    "'memoranda view' runs: it prints a new link."
)


class LoginPages:
    """Answers `/view/login` and `/view/logout`."""

    PATHS = frozenset({LOGIN, LOGOUT})

    def __init__(self, gate: Gate, renderer: Renderer, workers: Workers) -> None:
        self._gate = gate
        self._renderer = renderer
        self._workers = workers

    async def respond(self, path: str, request: Request, form: Mapping[str, str]) -> Response:
        if path == LOGOUT:
            return await self._log_out(request, form)
        if request.method == "POST":
            return await self._log_in(request, form)
        query = read_parameters(request.scope["query_string"])
        if self._gate.links is not None and "token" in query and request.method == "GET":
            cookie = self._gate.log_in_with_link(query["token"])
            if cookie is None:
                return self._show_login(_WRONG_LINK, status=403)
            return self._continue_logged_in(request, cookie, "")
        return self._show_login(next_path=query.get("next", ""))

    def refuse(self, request: Request, path: str) -> Response:
        """What a browser without a login gets instead of a page."""
        if request.method == "POST":
            raise Problem(401, "no_login", "You are not logged in, and nothing was changed.")
        query = request.scope["query_string"].decode("ascii", "replace")
        address = f"{PREFIX}{path}" + (f"?{query}" if query else "")
        if request.scope[STATE].headers.get("sec-fetch-site") == "cross-site":
            # Browsers withhold a strict cookie when a link of another site was followed, but not the second time.
            return self._renderer.render_plain(View("continue.html", "Opening the page", {"url": address}))
        return RedirectResponse(page_url(LOGIN, next="" if path == "/" else address), 303)

    async def _log_in(self, request: Request, form: Mapping[str, str]) -> Response:
        key, user = form.get("key", "").strip(), form.get("user", "").strip()
        try:
            cookie = await self._workers.run(lambda: self._gate.log_in_with_key(key, user or None))
        except Problem as problem:
            return self._show_login(problem.detail, problem.status, form.get("next", ""), user)
        return self._continue_logged_in(request, cookie, form.get("next", ""))

    async def _log_out(self, request: Request, form: Mapping[str, str]) -> Response:
        if request.method != "POST":
            raise Problem(405, "wrong_method", "Use the button to log out.", {"Allow": "POST"})
        visitor = await self._gate.identify(request, request.scope[STATE].headers)
        if visitor is not None:
            self._gate.check_form(visitor, form)
            await self._gate.log_out(visitor)
        response = self._renderer.render_plain(View("logged_out.html", "Logged out", self._gate.links is not None))
        self._gate.set_cookie(response, request, "")
        return response

    def _continue_logged_in(self, request: Request, cookie: str, next_path: str) -> Response:
        # Not a redirect: after one, a browser that came from another site withholds the new cookie.
        url = next_path if _is_own_path(next_path) else page_url("/")
        response = self._renderer.render_plain(View("continue.html", "Logged in", {"url": url}))
        self._gate.set_cookie(response, request, cookie)
        return response

    def _show_login(self, error: str = "", status: int = 200, next_path: str = "", user: str = "") -> Response:
        # Where only links are accepted, there is no form.
        takes_links = self._gate.links is not None
        data = {"takes_links": takes_links, "error": error, "next": next_path, "user": user}
        return self._renderer.render_plain(View("login.html", "Log in", data, status))


def _is_own_path(path: str) -> bool:
    """Whether an address is a page of the viewer: no host, and nothing that a browser would take for one."""
    return path.startswith(f"{PREFIX}/") and "\\" not in path and path.isascii() and path.isprintable()
