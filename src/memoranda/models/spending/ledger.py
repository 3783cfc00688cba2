"""The spend ledger of a home: a table in `home.db` or on a server, one row per model call, shared by all processes.

Writing it never delays an answer or makes it fail: a thread writes the rows of a conversation. Only background calls,
for which no user waits, are recorded before they start, because all processes share their budget.
"""

import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memoranda.errors import ConfigError, StorageError
from memoranda.models.model import ChatModel, Usage
from memoranda.models.spending.budget import (
    BackgroundSpending,
    Budget,
    Grouping,
    Total,
    background_spending,
    sum_by_group,
    sum_calls,
)
from memoranda.models.spending.call_record import CallRecord, LedgerWriter, store_calls
from memoranda.models.spending.metering import EmbeddingMeter, LedgerAccess, MeteredModel
from memoranda.models.spending.prices import Price, Prices
from memoranda.models.spending.schema import SCHEMA
from memoranda.models.spending.settings import BudgetSettings
from memoranda.storage.home_database import HomeDatabase

_log = logging.getLogger(__name__)

_FLUSH_TIMEOUT = 2.0
_END_OF_TIME = 1e12


class Ledger:
    """The model calls of one home and their cost. The first call creates the table."""

    def __init__(
        self,
        home: Path,
        budget: BudgetSettings | None = None,
        *,
        server_url: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`server_url` names the server that has the table for all nodes, instead of `home.db`."""
        self.settings = budget or BudgetSettings()
        self._clock = clock
        self._prices = Prices(home)
        self._file = HomeDatabase(home, SCHEMA, server_url=server_url)
        self._budget = Budget(self._file.open, self.settings, clock)
        self._writer = LedgerWriter(self._file)
        # Also flushes when the program ends without closing the ledger.
        weakref.finalize(self, self._writer.flush, _FLUSH_TIMEOUT, last=True)

    def metered(
        self,
        model: ChatModel,
        purpose: str,
        *,
        session_id: str | Callable[[], str] = "",
        user_id: str = "",
        background: bool = False,
    ) -> ChatModel:
        """Returns the same model with every call recorded; background calls start only within the budget.

        `session_id` may be a function, because a compressed conversation continues under another id.
        """
        access = LedgerAccess(self.price, self._record, self._budget.reserve, self._settle, self._clock)
        return MeteredModel(model, access, CallRecord(purpose, 0.0, background, user_id=user_id), session_id)

    def embedding_meter(self, provider: str, model: str) -> EmbeddingMeter:
        """Records the requests for embeddings of one model; background requests start only within the budget."""
        access = LedgerAccess(self.price, self._record, self._budget.reserve, self._settle, self._clock)
        return EmbeddingMeter(access, provider, model)

    def price(self, provider: str, model: str) -> Price | None:
        """The price of a model, None if unknown; raises ConfigError if prices.yaml is invalid."""
        return self._prices.of(provider, model)

    def totals(
        self, by: Grouping = "day", *, since: float = 0.0, until: float = _END_OF_TIME, user: str | None = None
    ) -> list[Total]:
        """What was spent, in groups; by all users, or by one."""
        self._writer.flush(_FLUSH_TIMEOUT)
        if not self._file.exists():
            return []
        engine = self._file.open()
        with engine.reading() as connection:
            return sum_by_group(connection, engine.dialect, by, since, until, user)

    def total(self, *, since: float = 0.0, until: float = _END_OF_TIME, user: str | None = None) -> Total:
        """What was spent, as one sum."""
        self._writer.flush(_FLUSH_TIMEOUT)
        if not self._file.exists():
            return Total("")
        with self._file.open().reading() as connection:
            return sum_calls(connection, since, until, user)

    def today(self) -> BackgroundSpending:
        """What background work has used of today's budget."""
        if not self._file.exists():
            return BackgroundSpending()
        with self._file.open().reading() as connection:
            return background_spending(connection, self._clock())

    def close(self) -> None:
        """Writes queued rows, for a limited time, and closes the file."""
        self._writer.flush(_FLUSH_TIMEOUT, last=True)
        self._file.close()

    def _record(self, call: CallRecord) -> None:
        self._writer.put(self._with_price(call))

    def _settle(self, call: CallRecord) -> None:
        """Writes the row at once, so that the next call sees it; if that fails, queues it."""
        priced = self._with_price(call)
        try:
            store_calls(self._file, [priced])
        except StorageError as error:
            _log.warning("The cost of a background call could not be written yet: %s", error)
            self._writer.put(priced)

    def _with_price(self, call: CallRecord) -> CallRecord:
        if call.usage == Usage():
            return replace(call, cost_usd=0.0)
        try:
            price = self.price(call.provider, call.model)
        except ConfigError as error:
            _log.warning("A call was recorded without its price: %s", error)
            price = None
        return replace(call, cost_usd=None if price is None else price.cost(call.usage))
