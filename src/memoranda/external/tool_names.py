"""The names under which a model sees the tools of several providers.

A tool keeps its own name unless another provider has a tool of that name: then both get the name of their provider in
front. A name that was given once stays for as long as the session runs, even if a provider that is late brings a tool
of the same name: a request to a model begins with its tools, so a changed name would invalidate the cached prefix.
The order of the tools stays for the same reason.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from memoranda.storage.files.fork_lock import ForkLock

_MAX_CHARS = 64
_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")


class ToolOwner(NamedTuple):
    """A tool of a provider, under the provider's own name for it."""

    provider: str
    tool: str


class ToolNames:
    """Gives each tool a name; `reserved` are names that no tool may have."""

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._lock = ForkLock()
        self._owners: dict[str, ToolOwner] = {}
        self._names: dict[ToolOwner, str] = {}

    def assign(self, offered: Collection[ToolOwner]) -> dict[ToolOwner, str]:
        """The names of the offered tools, in the order in which the names were given: new ones are at the end."""
        counts = Counter(owner.tool for owner in offered)
        with self._lock:
            for owner in offered:
                if owner not in self._names:
                    plain = counts[owner.tool] == 1 and owner.tool not in self._owners
                    name = owner.tool if plain else self._unused(prefixed_name(owner))
                    self._names[owner], self._owners[name] = name, owner
            return {owner: name for owner, name in self._names.items() if owner in offered}

    def owner(self, name: str) -> ToolOwner | None:
        """The tool that was given a name."""
        return self._owners.get(name)

    def _unused(self, name: str) -> str:
        number, unused = 1, name
        while unused in self._owners or unused in self._reserved:
            number += 1
            unused = f"{name[: _MAX_CHARS - 4]}_{number}"
        return unused


def prefixed_name(owner: ToolOwner) -> str:
    """The name of a tool with its provider in front, in the characters and the length that every API accepts."""
    name = _UNUSABLE.sub("_", f"{owner.provider}_{owner.tool}")
    if len(name) <= _MAX_CHARS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: _MAX_CHARS - len(digest) - 1]}_{digest}"


def find_owner(name: str, provider: str, offered: Sequence[ToolOwner]) -> ToolOwner | None:
    """The tool that an earlier session knew under a name: of that provider, or of the first that has it.

    `provider` is empty for a session that was recorded when there was only one.
    """
    candidates = [owner for owner in offered if provider in ("", owner.provider)]
    exact = [owner for owner in candidates if owner.tool == name]
    return next(iter([*exact, *(owner for owner in candidates if prefixed_name(owner) == name)]), None)
