"""Mounts MCP for remote clients on the HTTP service: `/mcp`, and OAuth 2.1 if the service's public address is known."""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memoranda.errors import MemorandaError
from memoranda.home.access.keys import Scope as KeyScope
from memoranda.home.access.oauth_grants import ACCESS_PREFIX, GrantStore
from memoranda.home.access.service_database import load_or_create_secret
from memoranda.integrations.mcp.protocol import INTERNAL_ERROR, ProtocolError, encode, failure
from memoranda.integrations.mcp.server import McpServer
from memoranda.integrations.tool_host import ToolHost
from memoranda.service.http.callers import Caller, read_token
from memoranda.service.http.endpoint import STATE, RequestState, authenticate
from memoranda.service.http.mount import Mount
from memoranda.service.http.problems import Problem, problem_of
from memoranda.service.http.rate_limit import RateLimit
from memoranda.service.http.request_checks import check_headers
from memoranda.service.http.service import Service
from memoranda.service.remote_mcp.endpoint import McpCaller, RemoteMcpEndpoint
from memoranda.service.remote_mcp.oauth import requests as metadata
from memoranda.service.remote_mcp.oauth.endpoints import OAuthEndpoints
from memoranda.service.remote_mcp.sessions import SessionOwner
from memoranda.service.remote_mcp.streamable_http import PATH
from memoranda.support.tool import JsonObject

_MAX_HOSTS = 256
_SOURCE = "mcp"
_Handler = Callable[[Request], Awaitable[Response]]
_REGISTRATIONS_PER_SECOND, _REGISTRATIONS_AT_ONCE = 0.2, 20


class _RemoteToolHost(ToolHost):
    """A tool host whose answers do not say where the home is on this machine."""

    def __init__(self, service: Service, user: str | None) -> None:
        super().__init__(service.memory_of(user), source=_SOURCE)
        self._service = service

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject | None:
        answer = super().call(name, arguments)
        return None if answer is None else self._service.hide_home_in(answer)


class ToolHosts:
    """Creates the tool host of a user at the first request; the ones that were not used for longest are closed."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._hosts: OrderedDict[str | None, ToolHost] = OrderedDict()

    def of(self, user: str | None) -> ToolHost:
        """The tool host of a user, as stored; None is the home's owner."""
        with self._lock:
            if user in self._hosts:
                self._hosts.move_to_end(user)
                return self._hosts[user]
        created = _RemoteToolHost(self._service, user)
        with self._lock:
            host = self._hosts.setdefault(user, created)
            surplus = [self._hosts.popitem(last=False)[1] for _ in range(len(self._hosts) - _MAX_HOSTS)]
        for old in surplus:
            old.close()
        return host

    def close(self) -> None:
        """Ends the sessions behind the tools."""
        with self._lock:
            hosts = list(self._hosts.values())
            self._hosts.clear()
        for host in hosts:
            host.close()


def remote_mcp_mount(public_url: str | None = None) -> Mount:
    """MCP at `/mcp`, and OAuth for it if the address is known: `public_url`, else the setting server.public_url."""
    return Mount("mcp", paths=(PATH, *metadata.PATHS), create_app=partial(RemoteMcpApp, public_url=public_url))


class RemoteMcpApp:
    """The ASGI application of the mount."""

    def __init__(self, service: Service, *, public_url: str | None) -> None:
        self._service = service
        self._public_url = public_url = service.memory.config.public_url if public_url is None else public_url
        self._tool_hosts = ToolHosts(service)
        self._endpoint = RemoteMcpEndpoint(frozenset({public_url} if public_url else ()), hide_home=service.hide_home)
        self._grants = GrantStore(service.database.open)
        self._secret: bytes | None = None
        self._handlers: dict[str, tuple[tuple[str, ...], _Handler]] = {}
        if public_url:
            registrations = RateLimit(_REGISTRATIONS_PER_SECOND, _REGISTRATIONS_AT_ONCE)
            self._handlers = OAuthEndpoints(service, self._grants, public_url, registrations.spend).handlers()
        service.on_stop(self._stop)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path: str = request.scope["path"]
        request.scope["memoranda"].route = path
        try:
            if path == PATH:
                return await self._answer_mcp(request)
            if path not in self._handlers:
                raise Problem(404, "not_found", "There is no OAuth here: the setting server.public_url is missing.")
            methods, handler = self._handlers[path]
            if request.method not in methods:
                raise Problem(
                    405, "wrong_method", "This path does not take this method.", {"Allow": ", ".join(methods)}
                )
            check_headers(request.scope["headers"])
            return await handler(request)
        except (Problem, MemorandaError) as error:
            problem = problem_of(error)
            assert problem is not None
            return self._refuse(problem)

    async def _answer_mcp(self, request: Request) -> Response:
        refusal = self._endpoint.check_origin(request)
        if refusal is not None:
            return refusal
        headers = check_headers(request.scope["headers"])
        caller = await self._identify(headers)
        state: RequestState = request.scope[STATE]
        state.route, state.key_id = PATH, caller.key_id
        self._service.rate_limit.spend(caller.key_id)
        if "read" not in caller.scopes:
            challenge = metadata.challenge(self._public_url, error="insufficient_scope")
            raise Problem(403, "forbidden", "This needs a key with the scope 'read'.", {"WWW-Authenticate": challenge})
        mcp_caller = await self._service.workers.run(lambda: self._mcp_caller(request, caller))
        return await self._endpoint.answer(request, mcp_caller)

    async def _identify(self, headers: dict[str, str]) -> Caller:
        """The caller by an access token of ours or by an API key; raises Problem 401 that says where to get access."""
        token = read_token(headers)
        if token is None or not token.startswith(ACCESS_PREFIX):
            return await authenticate(self._service, headers)
        caller = await self._service.workers.run(lambda: self._caller_with_token(token))
        if caller is None:
            raise Problem(401, "wrong_token", "The access token is unknown, revoked or expired.")
        return caller

    def _caller_with_token(self, token: str) -> Caller | None:
        """The caller that an access token stands for: the key with which it was approved, with fewer scopes."""
        service = self._service
        if not service.database.exists():
            return None
        grant = self._grants.find_access(token)
        if grant is None or not metadata.names_resource(self._public_url, grant.resource):
            return None
        key = service.keys.find_by_id(grant.key_id)
        if key is None:
            return None
        allowed: frozenset[KeyScope] = frozenset(scope for scope in key.scopes if scope in grant.scopes)
        return Caller(key.id, key.tenant, key.user, allowed)

    def _mcp_caller(self, request: Request, caller: Caller) -> McpCaller:
        service = self._service
        user = caller.stored_user(request.query_params.get("user"), service.authenticator.read_tenants)
        read_only = "curate" not in caller.scopes

        def create_server(one_client: bool) -> McpServer:
            return McpServer(self._tool_hosts.of(user), one_client=one_client, read_only=read_only)

        if self._secret is None:
            self._secret = load_or_create_secret(service.database)
        owner = SessionOwner(f"{caller.key_id}/{'' if user is None else f'={user}'}/{read_only}", self._secret)
        return McpCaller(owner, create_server)

    def _refuse(self, problem: Problem) -> Response:
        """A problem in the form of MCP, whose clients read errors of JSON-RPC."""
        headers = dict(problem.headers)
        if problem.status == 401:
            error = "" if problem.reason == "no_key" else "invalid_token"
            headers["WWW-Authenticate"] = metadata.challenge(self._public_url, error=error)
        detail = self._service.hide_home(problem.detail)
        body = encode(failure(None, ProtocolError(INTERNAL_ERROR, detail)))
        return Response(body, problem.status, headers, "application/json")

    def _stop(self) -> None:
        self._endpoint.stop()
        self._tool_hosts.close()
