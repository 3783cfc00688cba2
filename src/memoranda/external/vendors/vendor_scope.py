"""For whom a vendor's provider was started: home, profile, user and session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.provider import SERVER_URL
from memoranda.external.vendors.peer_names import peer_name


@dataclass(frozen=True, slots=True)
class VendorScope:
    """The facts of `initialize` that vendors need. `user_id` is empty for the owner of the home.

    `facts` has the rest as text: user_name, chat_id, thread_id, session_title, parent_session_id …
    """

    home: Path
    profile: str = "default"
    user_id: str = ""
    platform: str = "cli"
    agent_context: str = "primary"
    facts: Mapping[str, str] = field(default_factory=dict)
    server_url: str = field(default="", repr=False)
    """The server that has the record of what was sent, with the password; "" if the home has it."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], home: Path | None = None) -> "VendorScope":
        """The scope of the facts that a manager passes to `initialize`."""
        root = facts.get("hermes_home") or facts.get("home") or home
        if not root:
            raise ProviderError("A provider needs a home.")
        path = Path(root)
        known = {name: value for name, value in facts.items() if isinstance(value, str) and value}
        server_url = known.pop(SERVER_URL, "")
        return cls(
            path,
            known.get("agent_identity") or profile_of(path),
            known.get("user_id", ""),
            known.get("platform", "cli"),
            known.get("agent_context", "primary"),
            known,
            server_url,
        )

    @property
    def accepts_writes(self) -> bool:
        """Whether the session may write: cron jobs, sub-agents and flushes only read."""
        return self.agent_context == "primary"

    def peer(self, *, max_chars: int = 100, keep: str = "-") -> str:
        """The name of this user at the vendor; see `peer_names`."""
        return peer_name(self.profile, self.user_id, max_chars=max_chars, keep=keep)


def profile_of(home: Path) -> str:
    """The name of the profile whose home this is."""
    return home.name if home.parent.name == "profiles" else "default"
