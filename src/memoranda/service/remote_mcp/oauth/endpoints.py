"""The endpoints of OAuth 2.1: registration, the consent page, tokens and revocation.

The consent page takes an API key in its form instead of a login, so there is no session that another site could use.
Its form token, which is also in a cookie, prevents that another site submits the form in a person's browser. It is
plain HTML with one form: no scripts, no images, no other site.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from html import escape
from ipaddress import ip_address, ip_network
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from memoranda.home.access.oauth_grants import ACCESS_SECONDS, GrantStore, InvalidGrant, TokenPair
from memoranda.home.access.schema import DEFAULT_TENANT
from memoranda.service.http.request_checks import check_headers, read_body
from memoranda.service.http.service import Service
from memoranda.service.remote_mcp.oauth.requests import (
    AUTHORIZE_PATH,
    REGISTER_PATH,
    RESOURCE_METADATA_PATH,
    REVOKE_PATH,
    SCOPES,
    SERVER_METADATA_PATH,
    TOKEN_PATH,
    AuthorizationRequest,
    OAuthError,
    challenge_of,
    describe_resource,
    describe_server,
    keep_scopes,
    names_resource,
    origin_of,
    read_authorization,
    read_form,
    read_registration,
    resource_of,
)
from memoranda.service.remote_mcp.streamable_http import PATH as MCP_PATH
from memoranda.service.remote_mcp.streamable_http import is_json

_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_PUBLIC = {"Cache-Control": "max-age=300", "Access-Control-Allow-Origin": "*"}
_MAX_BYTES = 16_000
_BODY_SECONDS = 10.0
_FORM = "application/x-www-form-urlencoded"
_UNKNOWN_KEY = "This key is unknown, revoked or expired."
Handler = Callable[[Request], Awaitable[Response]]
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}"
    "label{display:block;margin:1rem 0}input[type=password]{display:block;width:100%;font:inherit;padding:.5rem;"
    "box-sizing:border-box}button{font:inherit;padding:.5rem 1rem;margin-right:.5rem}strong{overflow-wrap:anywhere}"
    ".error{border-left:.3rem solid #c00;padding-left:.7rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_MEANINGS = {
    "read": "search your conversations and read what is remembered",
    "curate": "add, change and remove what is remembered",
}


class OAuthEndpoints:
    """The authorization server of one service. `public_url` is its origin as clients see it, such as https://host."""

    def __init__(
        self, service: Service, grants: GrantStore, public_url: str, before_registration: Callable[[str], None]
    ) -> None:
        """`before_registration` raises Problem when one address registers clients, which needs no key, too often."""
        self._grants = grants
        self._keys = service.keys
        self._public_url = public_url
        self._run = service.workers.run
        self._before_registration = before_registration
        self._secure = public_url.startswith("https://")

    def handlers(self) -> dict[str, tuple[tuple[str, ...], Handler]]:
        """The methods and the handler of each path."""
        return {
            RESOURCE_METADATA_PATH: (("GET",), self._resource_metadata),
            RESOURCE_METADATA_PATH + MCP_PATH: (("GET",), self._resource_metadata),
            SERVER_METADATA_PATH: (("GET",), self._server_metadata),
            REGISTER_PATH: (("POST",), _as_json_error(self._register)),
            AUTHORIZE_PATH: (("GET", "POST"), self._authorize),
            TOKEN_PATH: (("POST",), _as_json_error(self._token)),
            REVOKE_PATH: (("POST",), _as_json_error(self._revoke)),
        }

    async def _resource_metadata(self, request: Request) -> Response:
        return JSONResponse(describe_resource(self._public_url), headers=_PUBLIC)

    async def _server_metadata(self, request: Request) -> Response:
        return JSONResponse(describe_server(self._public_url), headers=_PUBLIC)

    async def _register(self, request: Request) -> Response:
        if not is_json(request.headers.get("Content-Type")):
            raise OAuthError("invalid_client_metadata", "The body must be application/json.")
        try:
            body = json.loads(await _read_body(request))
        except (ValueError, RecursionError):
            raise OAuthError("invalid_client_metadata", "The body is not JSON.") from None
        name, redirect_uris = read_registration(body)
        self._before_registration(_address_of(request))
        client = await self._run(lambda: self._grants.register(name, redirect_uris))
        registered = {
            "client_id": client.id,
            "client_id_issued_at": int(client.created),
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": " ".join(SCOPES),
        }
        return JSONResponse(registered, 201, headers=_NO_STORE)

    async def _authorize(self, request: Request) -> Response:
        try:
            posted = request.method == "POST"
            fields = await _read_form(request) if posted else read_form(request.url.query)
            client = await self._run(lambda: self._grants.find_client(fields.get("client_id", "")))
            asked = read_authorization(fields, client, self._public_url)
        except OAuthError as error:
            return HTMLResponse(_error_page(str(error)), 400, headers=_page_headers())
        if not posted:
            return self._show_form(asked)
        if not self._came_from_our_form(request, fields):
            return self._show_form(asked, "The form had expired, or another site sent it. Please try again.", 403)
        if fields.get("decision") != "allow":
            return self._redirect(asked, {"error": "access_denied"})
        return await self._decide(asked, fields)

    async def _decide(self, asked: AuthorizationRequest, fields: dict[str, str]) -> Response:
        key = await self._run(lambda: self._keys.find(fields.get("api_key", "").strip()))
        if key is None:
            return self._show_form(asked, _UNKNOWN_KEY, 403)
        if key.user is None and key.tenant != DEFAULT_TENANT:
            return self._show_form(asked, "This key is for all users of a tenant. Use a key that is bound to you.", 403)
        wanted = ("read",) if fields.get("read_only") else asked.scopes
        scopes = keep_scopes(wanted, key.scopes)
        if "read" not in scopes:
            return self._show_form(asked, "This key may not read, so it cannot be used here.", 403)
        code = await self._run(
            lambda: self._grants.approve(
                asked.client,
                key.id,
                scopes=scopes,
                resource=resource_of(self._public_url),
                redirect_uri=asked.redirect_uri,
                challenge=asked.challenge,
            )
        )
        return self._redirect(asked, {"code": code})

    async def _token(self, request: Request) -> Response:
        fields = await _read_form(request)
        if "resource" in fields and not names_resource(self._public_url, fields["resource"]):
            raise OAuthError("invalid_target", "The tokens of this service are not for that resource.")
        pair = await self._run(lambda: self._exchange(fields))
        answer = {
            "access_token": pair.access,
            "token_type": "Bearer",
            "expires_in": int(ACCESS_SECONDS),
            "refresh_token": pair.refresh,
            "scope": " ".join(pair.grant.scopes),
        }
        return JSONResponse(answer, headers=_NO_STORE)

    def _exchange(self, fields: dict[str, str]) -> TokenPair:
        client_id, kind = fields.get("client_id", ""), fields.get("grant_type")
        try:
            if kind == "authorization_code":
                pair = self._grants.exchange_code(
                    fields.get("code", ""),
                    client_id=client_id,
                    redirect_uri=fields.get("redirect_uri", ""),
                    challenge=challenge_of(fields.get("code_verifier", "")),
                )
            elif kind == "refresh_token":
                pair = self._grants.refresh(fields.get("refresh_token", ""), client_id=client_id)
            else:
                raise OAuthError("unsupported_grant_type", "grant_type must be authorization_code or refresh_token.")
        except InvalidGrant as error:
            raise OAuthError("invalid_grant", str(error)) from None
        if self._keys.find_by_id(pair.grant.key_id) is None:
            raise OAuthError("invalid_grant", "The API key with which this access was approved is no longer valid.")
        return pair

    async def _revoke(self, request: Request) -> Response:
        fields = await _read_form(request)
        revoke = self._grants.revoke
        await self._run(lambda: revoke(fields.get("token", ""), client_id=fields.get("client_id", "")))
        # Also for an unknown token: the caller must not learn which tokens exist.
        return Response(status_code=200, headers=_NO_STORE)

    def _show_form(self, asked: AuthorizationRequest, error: str = "", status: int = 200) -> Response:
        form_token = secrets.token_urlsafe(32)
        page = _consent_page(asked, AUTHORIZE_PATH, form_token, error)
        response = HTMLResponse(page, status, headers=_page_headers(asked.redirect_uri))
        response.set_cookie(
            self._cookie_name, form_token, max_age=900, path="/", secure=self._secure, httponly=True, samesite="strict"
        )
        return response

    def _came_from_our_form(self, request: Request, fields: dict[str, str]) -> bool:
        if request.headers.get("Origin") not in (None, self._public_url):
            return False
        expected, sent = request.cookies.get(self._cookie_name, ""), fields.get("form_token", "")
        return len(expected) >= 43 and hmac.compare_digest(expected.encode(), sent.encode())

    @property
    def _cookie_name(self) -> str:
        # A browser accepts this prefix only from the very host, over TLS.
        return "__Host-memoranda-form" if self._secure else "memoranda-form"

    def _redirect(self, asked: AuthorizationRequest, result: dict[str, str]) -> Response:
        """Sends the browser to the client, with the issuer (RFC 9207), so that it can tell servers apart."""
        if asked.state is not None:
            result |= {"state": asked.state}
        separator = "&" if urlsplit(asked.redirect_uri).query else "?"
        target = asked.redirect_uri + separator + urlencode(result | {"iss": self._public_url})
        response = RedirectResponse(target, 303, headers=_NO_STORE | {"Referrer-Policy": "no-referrer"})
        response.delete_cookie(self._cookie_name, path="/", secure=self._secure, httponly=True, samesite="strict")
        return response


def _as_json_error(handler: Handler) -> Handler:
    """Answers an OAuthError as JSON, as the endpoints for programs do."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except OAuthError as error:
            body = {"error": error.code, "error_description": error.description}
            return JSONResponse(body, 400, headers=_NO_STORE)

    return handle


async def _read_form(request: Request) -> dict[str, str]:
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != _FORM:
        raise OAuthError("invalid_request", f"The body must be {_FORM}.")
    try:
        return read_form((await _read_body(request)).decode())
    except UnicodeDecodeError:
        raise OAuthError("invalid_request", "The body is not UTF-8.") from None


def _address_of(request: Request) -> str:
    """The network address of a client, as a proxy in our own network names it; an IPv6 client has a whole network."""
    host = request.client.host if request.client is not None else ""
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    try:
        address = ip_address(forwarded if forwarded and ip_address(host).is_private else host)
    except ValueError:
        return host
    return str(address) if address.version == 4 else str(ip_network((address, 64), strict=False))


async def _read_body(request: Request) -> bytes:
    return await read_body(
        request.receive, check_headers(request.scope["headers"]), limit=_MAX_BYTES, seconds=_BODY_SECONDS
    )


def _page_headers(redirect_uri: str = "") -> dict[str, str]:
    """The headers of a page. The form may lead to this server and, after it, to the client's address only."""
    origin = origin_of(redirect_uri) if redirect_uri else ""
    # A policy cannot name the host [::1].
    form_targets = f"'self' {'http:' if '[' in origin else origin}".strip()
    policy = (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {form_targets}; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        # With "no-referrer" browsers would send the form without its origin.
        "Referrer-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


def _consent_page(request: AuthorizationRequest, action: str, form_token: str, error: str = "") -> str:
    """The form for a request; `form_token` must come back with it. `error` says why the last attempt failed."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in (request.fields() | {"form_token": form_token}).items()
    )
    rights = "".join(f"<li>{_MEANINGS[scope]}</li>" for scope in request.scopes)
    read_only = (
        '<label><input type="checkbox" name="read_only" value="yes"> Only let it read</label>'
        if "curate" in request.scopes
        else ""
    )
    return _page(
        "Allow access to your memory?",
        f"<p>A program that calls itself <strong>{escape(request.client.name)}</strong> asks to</p><ul>{rights}</ul>"
        f"<p>If you allow it, your browser continues at <strong>{escape(origin_of(request.redirect_uri))}</strong>. "
        "Allow it only if you started this yourself, and if you know that address.</p>"
        + (f'<p class="error" role="alert">{escape(error)}</p>' if error else "")
        + f'<form method="post" action="{escape(action)}">{hidden}'
        '<label>Your API key <input type="password" name="api_key" autocomplete="off" spellcheck="false" autofocus>'
        "</label>"
        f"{read_only}"
        '<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>'
        "<p>The program never sees the key. It can do no more than the key can, and its access ends when the key is "
        "revoked.</p>",
    )


def _error_page(message: str) -> str:
    """A page that says why a request for authorization cannot be answered."""
    return _page("This does not work", f'<p class="error" role="alert">{escape(message)}</p>')


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} – Memoranda</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
