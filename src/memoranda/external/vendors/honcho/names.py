"""The names of workspace, peers and sessions at Honcho.

    workspace     memoranda
    user          default                      the owner of the default profile, or the setting peerName
                  default__alice               its user alice
    assistant     memoranda__for__default      one for each user; for the owner, the setting aiPeer
    session       default__alice__session__20261116-083000

Each user has an assistant of their own, because Honcho's model may read every session in which the peer that asks takes
part: one assistant for all users would carry what one said into the answers for another. Encoded names never contain
`__`, so no two of these names can be the same.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memoranda.errors import PermanentProviderError
from memoranda.external.vendors.peer_names import decode_name, encode_name
from memoranda.external.vendors.vendor_scope import VendorScope

_PLAIN_NAME = re.compile(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*")
_SESSION = "__session__"
_ALL_SESSIONS = "__sessions"
_ASSISTANT = "memoranda"
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class HonchoNames:
    """The names for one user of a home. `observer` is the peer whose view of the user is read."""

    workspace: str
    user: str
    assistant: str
    observer: str
    shares_session: bool
    shared_peers: tuple[str, ...]
    """The peers that the settings name, so that other programs may use them too."""

    @classmethod
    def resolve(cls, scope: VendorScope, settings: Mapping[str, Any]) -> "HonchoNames":
        """The names for a scope; raises PermanentProviderError for settings that Honcho does not accept."""
        workspace, peer_name, ai_peer = (_checked(settings, key) for key in ("workspace", "peerName", "aiPeer"))
        named_user, named_assistant = ("", "") if scope.user_id else (peer_name, ai_peer)
        user = named_user or scope.peer(max_chars=_MAX_CHARS)
        assistant = named_assistant or f"{ai_peer or _ASSISTANT}__for__{user}"
        if assistant == user:
            raise PermanentProviderError(f"honcho: peerName and aiPeer must differ; both are {user!r}.")
        return cls(
            workspace or _ASSISTANT,
            user,
            assistant,
            observer=assistant if settings["observationMode"] == "directional" else user,
            shares_session=settings["sessionStrategy"] == "global",
            shared_peers=tuple(filter(None, (named_user, named_assistant))),
        )

    @property
    def both(self) -> tuple[str, str]:
        return self.user, self.assistant

    def session(self, session_id: str) -> str:
        """The session at Honcho in which a conversation is kept."""
        if self.shares_session:
            return self.user + _ALL_SESSIONS
        encoded = encode_name(session_id or "none")
        if len(encoded) > _MAX_CHARS:
            # `_h` is no escape, so this is the name of no other session.
            encoded = "_h" + hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self.user + _SESSION + encoded

    def local_session(self, session: str) -> str:
        """The id of the conversation that is kept in a session; the name of the session if it is no single one."""
        own, found, encoded = session.rpartition(_SESSION)
        if not found or own != self.user or encoded.startswith("_h"):
            return session
        return decode_name(encoded)

    def session_peers(self) -> dict[str, dict[str, bool]]:
        """Who takes part in a session, and whom Honcho models: only the user, or both from both views."""
        both = self.observer == self.assistant
        return {
            self.user: {"observe_me": True, "observe_others": both},
            self.assistant: {"observe_me": both, "observe_others": both},
        }

    def views(self) -> list[tuple[str, str]]:
        """Each observer with whom it observes, in the sessions of this user."""
        return [(observer, observed) for observer in self.both for observed in self.both]


def _checked(settings: Mapping[str, Any], key: str) -> str:
    name = str(settings[key])
    if name and (len(name) > _MAX_CHARS or not _PLAIN_NAME.fullmatch(name)):
        raise PermanentProviderError(
            f"honcho: {key} must be letters, digits, - and single underscores, not {name[:60]!r}."
            " 'memoranda provider setup honcho' sets it."
        )
    return name
