"""What the doctor asks a server about: its settings, its transactions, and whether users are separated."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from memoranda.storage.postgres import health, row_security
from memoranda.storage.postgres.connection import RawConnection

_Answer = TypeVar("_Answer")


class ServerDiagnostics(ABC):
    """The questions of the doctor, for the engine of a server."""

    @abstractmethod
    def _inspect(self, ask: Callable[[RawConnection], _Answer]) -> _Answer:
        """Ask on a connection outside the pool."""

    @abstractmethod
    def _user_tables(self) -> list[str]:
        """The tables that have rows of several users."""

    @abstractmethod
    def _feed_tables(self) -> list[str]:
        """The tables that followers read in the order of commits."""

    def why_users_are_not_separated(self) -> str:
        """Why row-level security does not apply to this login; '' if it does."""
        return self._inspect(lambda raw: row_security.why_not_effective(raw, self._user_tables()))

    def unsafe_settings(self) -> list[str]:
        """The settings with which the server acknowledges what a power cut may take back."""
        return self._inspect(health.unsafe_settings)

    def long_transactions(self, min_seconds: float = health.LONG_SECONDS) -> list[health.LongTransaction]:
        """The transactions that hold back every follower, as far as this login may see them."""
        return self._inspect(lambda raw: health.long_transactions(raw, min_seconds))

    def was_restored_from_another_server(self) -> bool:
        """Whether followers cannot read some rows, because another server numbered their transactions."""
        return self._inspect(lambda raw: health.comes_from_another_server(raw, self._feed_tables()))

    def renumber_feeds(self) -> None:
        """Let followers read all rows again, after a dump of another server was restored."""
        self._inspect(lambda raw: health.renumber_feeds(raw, self._feed_tables()))
