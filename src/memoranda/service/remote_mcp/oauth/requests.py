"""What clients and browsers send to the OAuth endpoints, and the documents that tell clients how to get access.

Every parameter is read once, within limits, and nothing else. The documents are those of RFC 9728 for the resource and
of RFC 8414 for the server. A redirect URI says where an authorization code may go.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from memoranda.home.access.oauth_grants import Client
from memoranda.service.remote_mcp.streamable_http import PATH
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

# What a client can ask for. Keys may have more scopes, but nothing at `/mcp` needs those.
SCOPES = ("read", "curate")
RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server"
AUTHORIZE_PATH = "/oauth/authorize"
TOKEN_PATH = "/oauth/token"
REGISTER_PATH = "/oauth/register"
REVOKE_PATH = "/oauth/revoke"
PATHS = (
    *(RESOURCE_METADATA_PATH, RESOURCE_METADATA_PATH + PATH, SERVER_METADATA_PATH),
    *(AUTHORIZE_PATH, TOKEN_PATH, REGISTER_PATH, REVOKE_PATH),
)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_MAX_CHARS = 1_000
# Printable ASCII without what browsers repair or drop: spaces, backslashes, quotes and angle brackets.
_CLEAN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
# A plain host, because it becomes a part of the page's security policy.
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[::1\])(?::[0-9]{1,5})?")
_MAX_FIELDS = 30
_MAX_STATE_CHARS = 2_000
_MAX_NAME_CHARS = 80
_MAX_REDIRECT_URIS = 10
# 43 characters are the base64url of a SHA-256.
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def resource_of(public_url: str) -> str:
    """The address that tokens are for."""
    return public_url + PATH


def names_resource(public_url: str, resource: str) -> bool:
    """Whether a `resource` parameter (RFC 8707) means our `/mcp`."""
    return resource.removesuffix("/") == resource_of(public_url)


def describe_resource(public_url: str) -> JsonObject:
    return {
        "resource": resource_of(public_url),
        "resource_name": "Memoranda",
        "authorization_servers": [public_url],
        "scopes_supported": list(SCOPES),
        "bearer_methods_supported": ["header"],
    }


def describe_server(public_url: str) -> JsonObject:
    return {
        "issuer": public_url,
        "authorization_endpoint": public_url + AUTHORIZE_PATH,
        "token_endpoint": public_url + TOKEN_PATH,
        "registration_endpoint": public_url + REGISTER_PATH,
        "revocation_endpoint": public_url + REVOKE_PATH,
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }


def challenge(public_url: str, *, error: str = "") -> str:
    """The value of WWW-Authenticate: it tells a client where to begin (RFC 9728, section 5.1)."""
    parts = [f'error="{error}"'] if error else []
    if public_url:
        parts += [f'resource_metadata="{public_url}{RESOURCE_METADATA_PATH}{PATH}"', f'scope="{" ".join(SCOPES)}"']
    return "Bearer" + (" " + ", ".join(parts) if parts else "")


def _is_acceptable(uri: str) -> bool:
    """Whether a client may register this address: https, or http on the client's own machine."""
    parts = _split(uri)
    if parts is None or "#" in uri or not _HOST.fullmatch(parts.netloc):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def matches(registered: str, requested: str) -> bool:
    """Whether a requested address is the registered one, character by character.

    Only the port of an address on the client's machine may differ: the client gets a free one from its system.
    """
    if registered == requested:
        return True
    one, other = _split(registered), _split(requested)
    if one is None or other is None or one.scheme != "http" or one.hostname not in _LOOPBACK:
        return False
    return _is_acceptable(requested) and _without_port(one) == _without_port(other)


def origin_of(uri: str) -> str:
    """The scheme, host and port of an acceptable address."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path or "/", parts.query


def _split(uri: str) -> SplitResult | None:
    if len(uri) > _MAX_CHARS or not _CLEAN.fullmatch(uri):
        return None
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 - raises ValueError for a port that is none
    except ValueError:
        return None
    return parts


class OAuthError(Exception):
    """A request that is refused; `code` is the word that OAuth has for the reason."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks a person for, checked."""

    client: Client
    redirect_uri: str
    challenge: str
    scopes: tuple[str, ...]
    state: str | None

    def fields(self) -> dict[str, str]:
        """The parameters of the request, for the form that repeats them."""
        fields = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "scope": " ".join(self.scopes),
        }
        return fields if self.state is None else fields | {"state": self.state}


def read_form(text: str) -> dict[str, str]:
    """The parameters of a query or a form; raises OAuthError for one that is repeated."""
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        raise OAuthError("invalid_request", "The parameters cannot be read.") from None
    if len({name for name, _ in pairs}) != len(pairs):
        raise OAuthError("invalid_request", "A parameter is repeated.")
    return dict(pairs)


def read_authorization(fields: Mapping[str, str], client: Client | None, public_url: str) -> AuthorizationRequest:
    """Checks a request for authorization; raises OAuthError, which is shown to the person and never redirected.

    A redirect before a person has approved it would send browsers wherever a client likes.
    """
    if client is None:
        raise OAuthError("invalid_client", "The program that sent you here is not registered, or its entry expired.")
    redirect_uri = fields.get("redirect_uri") or (client.redirect_uris[0] if len(client.redirect_uris) == 1 else "")
    if not any(matches(registered, redirect_uri) for registered in client.redirect_uris):
        raise OAuthError("invalid_request", "The program asks to be answered at an address that it did not register.")
    if fields.get("response_type") != "code":
        raise OAuthError("unsupported_response_type", "response_type must be 'code'.")
    if fields.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(fields.get("code_challenge", "")):
        raise OAuthError("invalid_request", "The request needs a code_challenge with the method S256 (PKCE).")
    if "resource" in fields and not names_resource(public_url, fields["resource"]):
        raise OAuthError("invalid_target", "The request is for another resource than this service.")
    state = fields.get("state")
    if state is not None and len(state) > _MAX_STATE_CHARS:
        raise OAuthError("invalid_request", f"state must have at most {_MAX_STATE_CHARS} characters.")
    return AuthorizationRequest(client, redirect_uri, fields["code_challenge"], _read_scopes(fields), state)


def read_registration(body: Any) -> tuple[str, tuple[str, ...]]:
    """The name and the redirect URIs of a client that registers itself (RFC 7591); raises OAuthError."""
    if not isinstance(body, Mapping):
        raise OAuthError("invalid_client_metadata", "The body must be an object.")
    uris = body.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= _MAX_REDIRECT_URIS:
        raise OAuthError(
            "invalid_redirect_uri", f"redirect_uris must be a list of 1 to {_MAX_REDIRECT_URIS} addresses."
        )
    if not all(isinstance(uri, str) and _is_acceptable(uri) for uri in uris):
        raise OAuthError("invalid_redirect_uri", "A redirect URI must begin with https://, or with http://127.0.0.1.")
    for name, known in (("grant_types", ("authorization_code", "refresh_token")), ("response_types", ("code",))):
        wanted = body.get(name, [known[0]])
        if not isinstance(wanted, list) or known[0] not in wanted:
            raise OAuthError("invalid_client_metadata", f"{name} must contain {known[0]!r}.")
    name = body.get("client_name") or ""
    if not isinstance(name, str):
        raise OAuthError("invalid_client_metadata", "client_name must be text.")
    return _printable(name), tuple(dict.fromkeys(uris))


def challenge_of(verifier: str) -> str:
    """The S256 challenge that belongs to a verifier; raises OAuthError if that cannot be a verifier."""
    if not _VERIFIER.fullmatch(verifier):
        raise OAuthError("invalid_grant", "code_verifier must have 43 to 128 letters, digits, '-', '.', '_' or '~'.")
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def keep_scopes(wanted: Iterable[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """The scopes in both, in the order in which we name them."""
    both = set(wanted) & set(allowed)
    return tuple(scope for scope in SCOPES if scope in both)


def _read_scopes(fields: Mapping[str, str]) -> tuple[str, ...]:
    """The known scopes that were asked for. Without any, all: hosted clients ask for words of their own."""
    return keep_scopes(fields.get("scope", "").split(), SCOPES) or SCOPES


def _printable(name: str) -> str:
    """A name as one line that cannot imitate the rest of a page."""
    text = " ".join("".join(char if char.isprintable() else " " for char in name[:1_000]).split())
    return text[:_MAX_NAME_CHARS] or "A program without a name"
