"""An answer of `session_search` as a model reads it: roles and session ids that cannot be taken for live text.

A person and a program get roles and ids as they are recorded. An import decides both: a message may claim to be the
system's, and the id of a session may be the name of a file.
"""

import base64
import binascii
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from memoranda.safety import scan
from memoranda.support.tool import JsonObject

# A match in the title of a session has the role "session_title".
_ROLES = frozenset({"user", "assistant", "tool", "session_title"})
_ROLE_FIELDS = ("role", "matched_role")
_ID_FIELDS = ("session_id", "parent_session_id")
_REFERENCE = "ref:"
# No text begins with these bits in UTF-8, so what is encoded is never read as a text again.
_MASK = 0xA5


def show_to_model(answer: JsonObject) -> JsonObject:
    """The answer with `recorded_system` for the role of a system message, and references for suspicious ids."""
    return {name: _show_field(name, value) for name, value in answer.items()}


def resolve_ids(arguments: Any) -> Any:
    """The arguments of a call with the id of the session that a reference stands for."""
    if not isinstance(arguments, Mapping) or not isinstance(arguments.get("session_id"), str):
        return arguments
    return {**arguments, "session_id": resolve_reference(arguments["session_id"])}


def refer_to(session_id: str) -> str:
    """The id as a model may read it: the id itself, or a reference that says nothing and that the tool accepts."""
    return _encode(session_id) if _is_suspicious(session_id) else session_id


def resolve_reference(session_id: str) -> str:
    """The id that a reference stands for; every other text is an id already."""
    if not session_id.startswith(_REFERENCE):
        return session_id
    try:
        masked = base64.urlsafe_b64decode(session_id.removeprefix(_REFERENCE))
        return bytes(byte ^ _MASK for byte in masked).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeError):
        return session_id


def _show_field(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [show_to_model(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, str):
        return value
    if name in _ROLE_FIELDS and value not in _ROLES:
        return f"recorded_{value}"
    return refer_to(value) if name in _ID_FIELDS else value


@lru_cache(maxsize=1_000)
def _is_suspicious(session_id: str) -> bool:
    return bool(scan(session_id))


def _encode(session_id: str) -> str:
    masked = bytes(byte ^ _MASK for byte in session_id.encode("utf-8", "surrogatepass"))
    return _REFERENCE + base64.urlsafe_b64encode(masked).decode("ascii")
