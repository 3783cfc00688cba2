"""Decides who may see the viewer: cookies, links that work once, API keys, and pages of other sites."""

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from memoranda.home.access.service_database import EndedLogins, load_or_create_secret
from memoranda.service.http.callers import CACHE_SECONDS, OWNER, Caller
from memoranda.service.http.endpoint import authenticate
from memoranda.service.http.problems import Problem
from memoranda.service.http.request_checks import check_loopback
from memoranda.service.http.service import Service
from memoranda.service.viewer.logins import LINK_LOGIN_SECONDS, LOGIN_SECONDS, Login, LoginLinks, Logins, new_secret
from memoranda.service.viewer.page import PREFIX
from memoranda.support.lazy_dataclass import dataclass

COOKIE = "memoranda_view"
FORM_TOKEN = "form_token"
_MAX_CACHED = 1_000


@dataclass(frozen=True, slots=True)
class Visitor:
    """A browser that is logged in."""

    caller: Caller
    user: str | None
    """The user, as stored, whose memory it sees."""
    login: Login
    form_token: str
    new_cookie: str = ""
    """A cookie for a login that began with this request."""


class Gate:
    """Recognises the visitors of one viewer."""

    def __init__(self, service: Service, links: LoginLinks | None, user: str | None) -> None:
        self._service = service
        self.links = links
        self.link_user = user
        if links is None:
            self.logins = Logins(lambda: load_or_create_secret(service.database), seconds=LOGIN_SECONDS)
        else:
            # These logins end with the process.
            self.logins = Logins(new_secret, seconds=LINK_LOGIN_SECONDS)
        self._ended = EndedLogins(service.database)
        self._callers: dict[str, tuple[float, Caller | None]] = {}

    def check_host(self, headers: dict[str, str]) -> None:
        """With links, refuse what does not name this machine: a page of another site could be behind it."""
        if self.links is not None:
            check_loopback({name: value for name, value in headers.items() if name == "host"})

    def check_origin(self, headers: dict[str, str]) -> None:
        """Refuse a form that another site's page sent; raises Problem 403."""
        own = {headers.get("host", "")}
        public_url = self._service.memory.config.public_url
        if public_url:
            own.add(urlsplit(public_url).netloc)
        origin = urlsplit(headers.get("origin", ""))
        same_site = headers.get("sec-fetch-site", "same-origin") == "same-origin"
        if not same_site or origin.scheme not in ("http", "https") or origin.netloc not in own - {""}:
            raise Problem(403, "forbidden", "This form was not sent by a page of this viewer.")

    def check_form(self, visitor: Visitor, form: Mapping[str, str]) -> None:
        """Refuse a form without the token of the login; raises Problem 403."""
        if not self.logins.is_form_token(visitor.login, form.get(FORM_TOKEN, "")):
            raise Problem(403, "forbidden", "This form belongs to another login. Open the page again.")

    async def identify(self, request: Request, headers: dict[str, str]) -> Visitor | None:
        """The visitor by the cookie; without keys, on the loopback address, the owner. None if a login is needed."""
        login, cookie = self.logins.find(request.cookies.get(self._cookie_name(request))), ""
        caller = None if login is None else await self._caller_of(login)
        if login is None or caller is None:
            if self.links is not None or not await self._is_open(headers):
                return None
            login, cookie = self.logins.create("", None)
            caller = OWNER
        self._service.rate_limit.spend(caller.key_id)
        if not caller.key_id:
            check_loopback(headers)
        user = await self._service.workers.run(lambda: self._stored_user(caller, login.user))
        return Visitor(caller, user, login, self.logins.form_token(login), cookie)

    def log_in_with_link(self, token: str) -> str | None:
        """The cookie for the token of a link; None if the token is wrong, used or too old."""
        if self.links is None or not self.links.redeem(token):
            return None
        return self.logins.create("", self.link_user)[1]

    def log_in_with_key(self, key: str, user: str | None) -> str:
        """The cookie for an API key; raises Problem if the key is wrong or may not act as the user."""
        if self.links is not None or not key:
            raise Problem(401, "no_key", "Enter an API key.")
        caller = self._service.authenticator.identify(key)
        caller.require("read")
        self._stored_user(caller, user)
        return self.logins.create(caller.key_id, user)[1]

    async def log_out(self, visitor: Visitor) -> None:
        """End a login: here at once, on other nodes of a fleet within a second."""
        login = visitor.login
        self.logins.end(login)
        if login.key_id:
            await self._service.workers.run(lambda: self._ended.add(login.id, login.until))

    def set_cookie(self, response: Response, request: Request, value: str) -> None:
        """Log a browser in; without a value, log it out."""
        secure = self._service.memory.config.public_url.startswith("https://")
        name = self._cookie_name(request)
        if value:
            response.set_cookie(name, value, path=PREFIX, httponly=True, samesite="strict", secure=secure)
        else:
            response.delete_cookie(name, path=PREFIX, httponly=True, samesite="strict", secure=secure)

    def _cookie_name(self, request: Request) -> str:
        # Browsers send a cookie to every port of a machine, so each `memoranda view` needs a name of its own.
        server = request.scope.get("server")
        return f"{COOKIE}_{server[1]}" if self.links is not None and server else COOKIE

    async def _is_open(self, headers: dict[str, str]) -> bool:
        """Whether the service answers without any key."""
        try:
            caller = await authenticate(self._service, {"host": headers.get("host", "")})
        except Problem as problem:
            if problem.status == 401:
                return False
            raise
        return caller is OWNER

    async def _caller_of(self, login: Login) -> Caller | None:
        """The caller of a login, as its key is now; None if the login has ended, or the key was revoked or expired."""
        if not login.key_id:
            return OWNER if self.links is not None or await self._is_open({"host": "127.0.0.1"}) else None
        until, caller = self._callers.get(login.id, (0.0, None))
        if time.monotonic() < until:
            return caller
        caller = await self._service.workers.run(lambda: self._load_caller(login))
        if len(self._callers) >= _MAX_CACHED:
            self._callers.clear()
        self._callers[login.id] = (time.monotonic() + CACHE_SECONDS, caller)
        return caller

    def _load_caller(self, login: Login) -> Caller | None:
        key = self._service.keys.find_by_id(login.key_id)
        if key is None or self._ended.has(login.id):
            return None
        return Caller(key.id, key.tenant, key.user, key.scopes)

    def _stored_user(self, caller: Caller, user: str | None) -> str | None:
        return caller.stored_user(user, self._service.authenticator.read_tenants)
