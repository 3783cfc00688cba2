"""Recall from a vendor: a live search within the turn's deadline, or the result of one made after the turn before.

Only recall has a circuit breaker: a vendor that is down costs a few deadlines and not one per turn, while deliveries
wait in the outbox anyway.
"""

import logging
from collections.abc import Callable

from memoranda.errors import ProviderError, TemporaryProviderError
from memoranda.external.circuit_breaker import CircuitBreaker
from memoranda.external.vendors.recalled_item import RecalledItem
from memoranda.storage.files.fork_lock import ForkLock

_log = logging.getLogger(__name__)

Search = Callable[[str, float], list[RecalledItem]]


class VendorRecall:
    """What one provider recalls. `search` gets a query and a timeout in seconds, and raises ProviderError."""

    def __init__(self, vendor: str, breaker: CircuitBreaker | None = None) -> None:
        self._vendor = vendor
        self._breaker = breaker or CircuitBreaker()
        self._lock = ForkLock()
        self._ahead: tuple[str, list[RecalledItem]] | None = None
        self._missed = False

    @property
    def missed(self) -> bool:
        """Whether the last live search failed or was late."""
        return self._missed

    def live(self, search: Search, query: str, seconds: float) -> list[RecalledItem]:
        """Search now, behind the breaker. Raises ProviderError."""
        if not self._breaker.allow():
            pause = self._breaker.seconds_left
            self._missed = True
            raise TemporaryProviderError(
                f"{self._vendor} keeps failing, and is asked again in {pause:.0f} seconds.", pause
            )
        try:
            items = search(query, seconds)
        except BaseException as error:
            self._missed = True
            self._breaker.failed(error.retry_after if isinstance(error, TemporaryProviderError) else None)
            raise
        self._missed = False
        self._breaker.succeeded()
        return items

    def search_ahead(self, search: Search, query: str, seconds: float, session_id: str) -> None:
        """Search for the next turn of a session, and keep the result for it. Raises ProviderError."""
        missed = self._missed
        items = self.live(search, query, seconds)
        # Only a live search in a turn shows that the vendor is fast enough.
        self._missed = missed
        with self._lock:
            self._ahead = (session_id, items)

    def take_ahead(self, session_id: str) -> list[RecalledItem]:
        """The result that was kept for a session; it is used once, and never for another session."""
        with self._lock:
            kept, self._ahead = self._ahead, None
        return kept[1] if kept is not None and kept[0] == session_id else []

    def drop(self) -> None:
        """Drop what was kept: the session was switched or rewound."""
        with self._lock:
            self._ahead = None

    def live_or_ahead(
        self, search: Search, query: str, seconds: float, session_id: str, *, merge: bool
    ) -> list[RecalledItem]:
        """The result of a live search; the one that was kept if the live one fails. `merge` adds the two."""
        kept = self.take_ahead(session_id)
        try:
            found = self.live(search, query, seconds)
        except ProviderError as error:
            if not kept:
                raise
            _log.info("%s uses what it found after the last turn: %s", self._vendor, error)
            return kept
        return [*kept, *found] if merge else found
