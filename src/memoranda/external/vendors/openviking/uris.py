"""The `viking://` addresses of one user of a home, and the check that nothing outside them is read or deleted.

    viking://user/<user>/memories                  the owner of the default profile
    viking://user/<user>/peers/<peer>/memories     everyone else; the peer is their name (see `peer_names`)

A server without authentication shows every user everything, so the limits are checked here as well.
"""

import re
from dataclasses import dataclass

from memoranda.external.vendors.peer_names import encode_name
from memoranda.external.vendors.vendor_deliveries import digest
from memoranda.external.vendors.vendor_tool import ToolArgumentError

SCHEME = "viking://"
SHARED_RESOURCES = "viking://resources"
TURNS = "turns"
CATEGORIES = {
    "preference": "preferences",
    "entity": "entities",
    "event": "events",
    "case": "cases",
    "pattern": "patterns",
}
_CURATED_CATEGORIES = {"user": "preference", "memory": "pattern"}
_UNSAFE = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|[?#\\\x00-\x1f]|//")
# Summaries of a directory, which the server writes.
_SUMMARY = re.compile(r"/\.(?:abstract|overview)\.md$")


@dataclass(frozen=True, slots=True)
class OpenVikingUris:
    """The addresses of a user; `peer` is empty for the owner of the default profile."""

    user: str
    peer: str = ""

    @property
    def base(self) -> str:
        return f"{SCHEME}user/{self.user}/peers/{self.peer}" if self.peer else f"{SCHEME}user/{self.user}"

    @property
    def memories(self) -> str:
        return f"{self.base}/memories"

    @property
    def resources(self) -> str:
        return f"{self.base}/resources"

    def turns(self, session_id: str) -> str:
        """The directory of a session's turns: readable, and different for different sessions."""
        return f"{self.memories}/{TURNS}/{encode_name(session_id)[:60]}-{digest(session_id, chars=8)}"

    def turn(self, session_id: str, key: str) -> str:
        """The file of a delivery. It depends on the session and the key only, so a repeated one replaces itself."""
        return f"{self.turns(session_id)}/{digest(key, chars=24)}.md"

    def memory(self, category: str, text: str) -> str:
        """The file of a memory, by its text: the same text is stored once, and its old text finds it."""
        return f"{self.memories}/{CATEGORIES[category]}/memoranda-{digest(text.strip(), chars=24)}.md"

    def curated(self, target: str, text: str) -> str:
        return self.memory(_CURATED_CATEGORIES.get(target, "pattern"), text)

    def contains(self, uri: str) -> bool:
        """Whether a file is this user's own, or a shared resource."""
        return any(_is_below(uri, root) for root in (self.memories, self.resources, SHARED_RESOURCES))

    def resolve(self, path: str, *, own: bool = False) -> str:
        """The address that a model means, without variables. Raises ToolArgumentError for one it must not use.

        `own` excludes shared resources. A path without a scheme begins at the user's own directory.
        """
        text = path.strip().rstrip("/")
        if not text.startswith(SCHEME):
            text = f"{self.base}/{text.lstrip('/')}".rstrip("/")
        text = re.sub(r"^viking://~(?=/|$)", f"{SCHEME}user/{self.user}", text)
        if text == self.base:
            text = self.memories
        allowed = self.contains(text) and not (own and _is_below(text, SHARED_RESOURCES))
        if _UNSAFE.search(text[len(SCHEME) :]) or not allowed:
            shared = "" if own else f" and {SHARED_RESOURCES}"
            raise ToolArgumentError(f"{path!r} is outside {self.memories}, {self.resources}{shared}.")
        return text

    def resolve_memory_file(self, path: str) -> str:
        """The address of a memory that may be deleted: a file of the user's own that no summary is."""
        uri = self.resolve(path, own=True)
        if not _is_below(uri, self.memories) or not uri.endswith(".md") or _SUMMARY.search(uri):
            raise ToolArgumentError(f"{path!r} is not a memory: only .md files below {self.memories} can be deleted.")
        return uri


def category_of(uri: str) -> str:
    """A word for what a file is: the directory below `memories`; `resource` for files elsewhere."""
    _, found, rest = uri.partition("/memories/")
    if not found:
        return "resource"
    directory, slash, _ = rest.partition("/")
    singular = {plural: word for word, plural in CATEGORIES.items()} | {TURNS: "turn"}
    return singular.get(directory, directory) if slash else "memory"


def _is_below(uri: str, root: str) -> bool:
    return uri == root or uri.startswith(f"{root}/")
