"""Whose sessions a reader may see; every read of the store carries one and cannot leave it."""

from dataclasses import dataclass

from memoranda.errors import SessionError


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything (for operators and for the index), or the sessions of one user; None is the home's own user."""

    all: bool
    user: str | None = None

    @classmethod
    def everyone(cls) -> "Scope":
        return cls(True)

    @classmethod
    def of(cls, user: str | None) -> "Scope":
        if user == "":
            raise SessionError("A user id must not be empty.")
        return cls(False, user)

    def covers(self, user: str | None) -> bool:
        return self.all or self.user == user

    def condition(self, table: str = "sessions") -> str:
        """The scope as a condition on the sessions table, without values: see `values`."""
        if self.all:
            return "1 = 1"
        return f"{table}.user_id IS NULL" if self.user is None else f"{table}.user_id = ?"

    @property
    def values(self) -> tuple[str, ...]:
        return () if self.all or self.user is None else (self.user,)
