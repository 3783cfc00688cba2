"""For whom a vendor's provider was started, and the name of that user at the vendor.

Names are one to one, readable and reversible, so profiles and users never mix:

    default                 the owner of the default profile
    default__alice          its user alice
    work__alice_40home      the user alice@home of the profile work

Letters and digits stay as they are; every other byte becomes `_xx`, its hexadecimal value. `__` therefore only appears
between profile and user. Vendors that accept more characters get the same names: one form is easier to recognise.
"""

import hashlib
import re
import string
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.errors import ProviderError
from memoranda.external.provider import SERVER_URL
from memoranda.support.lazy_dataclass import dataclass

_PLAIN = frozenset((string.ascii_letters + string.digits).encode())
_SEPARATOR = "__"
_HASH_CHARS = 24
_ENCODED = re.compile(r"(?:[A-Za-z0-9]|_[0-9a-f]{2})*")


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
        """The name of this user at the vendor; see `peer_name`."""
        return peer_name(self.profile, self.user_id, max_chars=max_chars, keep=keep)


def profile_of(home: Path) -> str:
    """The name of the profile whose home this is."""
    return home.name if home.parent.name == "profiles" else "default"


def peer_name(profile: str, user_id: str = "", *, max_chars: int = 100, keep: str = "-") -> str:
    """The name of a profile's user at a vendor; of its owner without a `user_id`.

    `keep` are punctuation characters, other than the underscore, that the vendor accepts and that stay readable. A name
    longer than `max_chars` ends in a hash instead: it is still unique, but `read_peer_name` cannot decode it.
    """
    name = encode_name(profile or "default", keep=keep)
    if user_id:
        name += _SEPARATOR + encode_name(user_id, keep=keep)
    if len(name) <= max_chars:
        return name
    digest = hashlib.sha256(f"{profile}\0{user_id}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    # `_h` is no escape and no separator, so no other name looks like this.
    return f"{name[: max_chars - _HASH_CHARS - 2].rstrip('_')}_h{digest}"


def read_peer_name(name: str) -> tuple[str, str]:
    """The profile and the user of a name; raises ProviderError for one that is shortened or not ours."""
    profile, separator, user_id = name.partition(_SEPARATOR)
    if separator and not user_id:
        raise ProviderError(f"{name!r} is not a name that Memoranda gives to a user.")
    return decode_name(profile), decode_name(user_id)


def encode_name(text: str, *, keep: str = "-") -> str:
    """Any text with only letters, digits, `_` and the characters of `keep`; different texts stay different."""
    plain = _PLAIN | set(keep.replace("_", "").encode("ascii"))
    raw = text.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in plain else f"_{byte:02x}" for byte in raw)


def decode_name(encoded: str) -> str:
    """The text that `encode_name` encoded; raises ProviderError for any other text."""
    if not _ENCODED.fullmatch(re.sub(r"[^\w]", "", encoded, flags=re.ASCII)):
        raise ProviderError(f"{encoded!r} is not a name that Memoranda has encoded.")
    data = re.sub(
        rb"_([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), encoded.encode("ascii", "replace")
    )
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ProviderError(f"{encoded!r} is not a name that Memoranda has encoded.") from None
