"""The ASGI application of the viewer: finds the page, checks who asks, calls the page in a thread, and renders it.

After a form, the next page shows a sentence once: it travels in a cookie, so that no address contains it. The viewer is
prepared in the background, so that the first page of a browser is as quick as the following ones.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from memoranda.errors import MemorandaError, MovedUserError
from memoranda.service.http.callers import OWNER
from memoranda.service.http.endpoint import STATE, RequestState
from memoranda.service.http.problems import Problem, problem_of
from memoranda.service.http.request_checks import check_body_type, read_body
from memoranda.service.http.service import Service
from memoranda.service.viewer.gate import Gate, Visitor
from memoranda.service.viewer.login_pages import LoginPages
from memoranda.service.viewer.logins import LoginLinks
from memoranda.service.viewer.page import (
    PREFIX,
    Download,
    Page,
    PageRequest,
    PageTable,
    Redirect,
    Reply,
    View,
    read_parameters,
)
from memoranda.service.viewer.pages import PAGES
from memoranda.service.viewer.renderer import Renderer, StaticFiles
from memoranda.support.tool import InvalidArgumentsError

_COOKIE = "memoranda_notice"
_MAX_NOTICE_CHARS = 600
_NOTICE_SECONDS = 60
_log = logging.getLogger(__name__)
# A request that arrives meanwhile comes first.
_PAUSE = 0.01
# Pages that read what other pages read, too: the latest conversations, the index, the journal of memory, the logs.
_PREPARED_PAGES: Mapping[str, Mapping[str, str]] = {
    "today": {},
    "search": {"q": "today"},
    "timeline": {},
    "memory": {},
    "recall": {},
}
_FORM = "application/x-www-form-urlencoded"
_MAX_FORM_BYTES = 1_000_000
_MAX_FIELDS = 200
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not no-referrer: with that, browsers send forms with the origin "null".
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def _put_notice(response: Response, text: str) -> None:
    """Give the next page a sentence."""
    response.set_cookie(
        _COOKIE,
        quote(text[:_MAX_NOTICE_CHARS], safe=""),
        max_age=_NOTICE_SECONDS,
        path=PREFIX,
        httponly=True,
        samesite="strict",
    )


def _prepare_in_background(renderer: Renderer, pages: Iterable[Page], service: Service, user: str | None) -> None:
    """Compile the templates, and read once what the pages read, in a thread that ends with the process."""
    shown = [page for page in pages if page.name in _PREPARED_PAGES]

    def prepare() -> None:
        for _ in renderer.compile_templates():
            time.sleep(_PAUSE)
        for page in shown:
            assert page.show is not None
            time.sleep(_PAUSE)
            try:
                page.show(PageRequest(service, OWNER, user, {}, _PREPARED_PAGES[page.name]))
            except (Problem, MemorandaError, OSError, sqlite3.Error) as error:
                # The page itself says what is wrong when a person opens it.
                _log.debug("The page %s could not be prepared: %s", page.name, error)

    threading.Thread(target=prepare, name="viewer-preparation", daemon=True).start()


class ViewerApp:
    """The pages of one service."""

    def __init__(self, service: Service, *, links: LoginLinks | None, user: str | None, prepare: bool = False) -> None:
        """`prepare` gets everything ready in the background, for the first visitor."""
        self._service = service
        self._workers = service.workers
        self._static = StaticFiles()
        self._table = PageTable(PAGES)
        self._renderer = Renderer(self._table, self._static)
        self._gate = Gate(service, links, user)
        self._login_pages = LoginPages(self._gate, self._renderer, self._workers)
        if prepare:
            _prepare_in_background(self._renderer, PAGES, service, user)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        state: RequestState = request.scope[STATE]
        path = (request.scope.get("raw_path") or request.scope["path"].encode()).decode("ascii", "replace")
        state.route = PREFIX
        visitor: Visitor | None = None
        try:
            self._gate.check_host(state.headers)
            if path in ("/", PREFIX):
                return RedirectResponse(f"{PREFIX}/", 303)
            path = path.removeprefix(PREFIX)
            if path.startswith("/static/"):
                return self._static.respond(path, state.headers)
            if request.method == "POST":
                self._gate.check_origin(state.headers)
            form = await self._read_form(request, state)
            if path in self._login_pages.PATHS:
                state.route = PREFIX + path
                return await self._login_pages.respond(path, request, form)
            visitor = await self._gate.identify(request, state.headers)
            if visitor is None:
                return self._login_pages.refuse(request, path)
            page, values = self._table.find(path)
            state.route = PREFIX + page.path
            reply = await self._call_page(page, visitor, request, values, form)
            return self._respond_with(reply, page, visitor, request)
        except (Problem, MemorandaError, InvalidArgumentsError) as error:
            problem = problem_of(error)
            assert problem is not None
            response = self._renderer.render_problem(problem.status, self._service.hide_home(problem.detail), visitor)
            response.headers.update(problem.headers)
            return response

    async def _read_form(self, request: Request, state: RequestState) -> Mapping[str, str]:
        if request.method in ("GET", "HEAD"):
            return {}
        if request.method != "POST":
            raise Problem(405, "wrong_method", "Pages take GET and POST.", {"Allow": "GET, HEAD, POST"})
        check_body_type(state.headers, _FORM)
        raw = await read_body(
            request.receive, state.headers, limit=_MAX_FORM_BYTES, seconds=self._service.settings.body_seconds
        )
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise Problem(400, "invalid", "The form is not UTF-8, or has too many fields.") from None
        # Browsers end lines of text areas with CR LF.
        return {name: value.replace("\r\n", "\n") for name, value in pairs}

    async def _call_page(
        self, page: Page, visitor: Visitor, request: Request, values: Mapping[str, str], form: Mapping[str, str]
    ) -> Reply:
        if request.method == "POST":
            self._gate.check_form(visitor, form)
        handler, scope = (page.submit, page.submit_scope) if request.method == "POST" else (page.show, page.scope)
        if handler is None:
            raise Problem(405, "wrong_method", "This page does not take this method.")
        visitor.caller.require(scope)
        if page.owner_only and visitor.user is not None:
            raise Problem(403, "forbidden", "This page is about the whole home, and only its owner may see it.")
        checked = PageRequest(
            self._service,
            visitor.caller,
            visitor.user,
            values,
            read_parameters(request.scope["query_string"]),
            form,
            request.scope[STATE].request_id,
        )

        def call() -> Reply:
            try:
                return handler(checked)
            except MovedUserError:
                self._service.memory.services.refresh_users()
                return handler(checked)

        reply = await self._workers.run(call)
        if request.method == "POST":
            self._service.feed.notify()
        return reply

    def _respond_with(self, reply: Reply, page: Page, visitor: Visitor, request: Request) -> Response:
        if isinstance(reply, Redirect):
            response: Response = RedirectResponse(reply.url, 303)
            if reply.notice:
                _put_notice(response, reply.notice)
            return self._with_cookie(response, visitor, request)
        if isinstance(reply, Download):
            return StreamingResponse(
                self._workers.iterate(reply.parts),
                media_type=reply.media_type,
                headers={"Content-Disposition": f'attachment; filename="{reply.name}"'},
            )
        assert isinstance(reply, View)
        notice = unquote(request.cookies.get(_COOKIE, ""))[:_MAX_NOTICE_CHARS]
        response = self._renderer.render(reply, page, visitor, notice)
        if notice:
            response.delete_cookie(_COOKIE, path=PREFIX, httponly=True, samesite="strict")
        return self._with_cookie(response, visitor, request)

    def _with_cookie(self, response: Response, visitor: Visitor, request: Request) -> Response:
        if visitor.new_cookie:
            self._gate.set_cookie(response, request, visitor.new_cookie)
        return response
