"""The token that clients send over HTTP: created when it is first needed, stored with the secrets of the home."""

import secrets

from memoranda.home import config
from memoranda.support.home import Home

TOKEN_VARIABLE = "MEMORANDA_MCP_TOKEN"


def load_or_create_token(home: Home, *, new: bool = False) -> str:
    """Returns the token from the environment or the secrets of a home; creates one if there is none, or if `new`."""
    token = config.credentials(home).get(TOKEN_VARIABLE, "").strip()
    if token and not new:
        return token
    token = secrets.token_urlsafe(32)
    config.set_secret(home, TOKEN_VARIABLE, token)
    return token
