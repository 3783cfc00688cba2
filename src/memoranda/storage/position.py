"""A position in a feed: how far a follower has read, as an opaque value that only the engine interprets."""

from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A point between two rows of a feed table; a later position compares greater.

    A follower stores a position and passes it back. It never computes with it: if the row numbers of an engine do not
    follow the order of commits (PostgreSQL), rows are ordered by transaction first. In SQLite the transaction is 0.
    """

    transaction: int = 0
    row: int = 0

    @property
    def count(self) -> int:
        """The maximum number of rows before it, because deleted rows count, too. Only for progress and estimates."""
        return self.row

    def __str__(self) -> str:
        """The text form that followers store; `Position.parse` reads it."""
        return f"{self.transaction}-{self.row}" if self.transaction else str(self.row)

    @classmethod
    def parse(cls, text: str | int) -> "Position":
        """Read the text form; a plain number is a row. Raises ValueError for anything else."""
        transaction, _, row = str(text).rpartition("-")
        return cls(int(transaction or 0), int(row))


START = Position()


def former_stores_key(user: str | None) -> str:
    """The key in `state_meta` under which a store notes from which other stores of its fleet a user has moved to it.

    It does not name the user, so nothing of a user who is forgotten stays readable.
    """
    digest = sha256((user or "").encode("utf-8", "surrogatepass")).hexdigest()
    return f"former_stores:{digest[:32]}"
