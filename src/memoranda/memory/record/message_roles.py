"""The roles that a message of a program may have.

Imported messages keep the role that their own program gave them; the parts of the store accept any role for that.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from memoranda.errors import SessionError
from memoranda.support.suggestions import did_you_mean

ROLES = ("user", "assistant", "tool", "system", "developer")


def require_known_role(role: Any) -> None:
    """Raise SessionError for a role that no model and no search would understand."""
    if role not in ROLES:
        suggestion = did_you_mean(role, ROLES) if isinstance(role, str) else ""
        raise SessionError(f"The role of a message is one of {', '.join(ROLES)}, not {role!r}.{suggestion}")


def require_message(message: Any) -> None:
    """Raise SessionError unless a message is a dict with a known role."""
    if not isinstance(message, Mapping):
        found = "None" if message is None else type(message).__name__
        raise SessionError(f"A message is a dict with a role and content, not {found}.")
    require_known_role(message.get("role"))


def require_messages(messages: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages as a list; raise SessionError unless each is a dict with a known role."""
    listed = list(messages)
    for message in listed:
        require_message(message)
    return listed
