"""The documents by which a client finds out how to get access: RFC 9728 for the resource, RFC 8414 for the server."""

from memoranda.integrations.mcp.streamable_http import PATH
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
