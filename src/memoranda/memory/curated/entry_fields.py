"""The fields of a memory store that programs written for Hermes read: entries and limits by the name of their file."""

from typing import Protocol

from memoranda.memory.curated.settings import CuratedSettings, Target


class _Store(Protocol):
    """The members of `MemoryStore` that the fields are read from."""

    @property
    def settings(self) -> CuratedSettings: ...
    def entries(self, target: Target) -> tuple[str, ...]: ...


class EntryFields:
    """The base of `MemoryStore`. The entries are copies: a change goes through `add`, `replace` and `remove`."""

    @property
    def memory_entries(self: _Store) -> list[str]:
        """The live entries of MEMORY.md as they may be shown."""
        return list(self.entries("memory"))

    @property
    def user_entries(self: _Store) -> list[str]:
        """The live entries of USER.md as they may be shown."""
        return list(self.entries("user"))

    @property
    def memory_char_limit(self: _Store) -> int:
        """How many characters MEMORY.md may have."""
        return self.settings.memory_char_limit

    @property
    def user_char_limit(self: _Store) -> int:
        """How many characters USER.md may have."""
        return self.settings.user_char_limit
