"""The scope of a store: which users' sessions its calls may see."""

from dataclasses import field

from memoranda.errors import SessionError
from memoranda.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """All sessions (for operators and the index), or those of one user; None is the home's own user."""

    all: bool
    user: str | None = None
    values: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The values for `condition`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", () if self.all or self.user is None else (self.user,))

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
        """The scope as an SQL condition on the sessions table; `values` are its parameters."""
        if self.all:
            return "1 = 1"
        return f"{table}.user_id IS NULL" if self.user is None else f"{table}.user_id = ?"
