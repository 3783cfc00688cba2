"""The token that lets a host in over HTTP: made when it is first needed, kept among the secrets of the home."""

import secrets

from memoranda import config
from memoranda.support.home import Home

NAME = "MEMORANDA_MCP_TOKEN"


def token_of(home: Home, *, new: bool = False) -> str:
    """The token of a home, from the environment or its secrets; with `new`, or when there is none, one is made."""
    known = config.credentials(home).get(NAME, "").strip()
    if known and not new:
        return known
    made = secrets.token_urlsafe(32)
    config.set_secret(home, NAME, made)
    return made
