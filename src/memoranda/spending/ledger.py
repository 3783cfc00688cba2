"""The ledger of a home: `usage.db`, one row per call of a model, shared by any number of processes.

Writing it never fails or delays an answer: a row of a conversation is written by a thread. Only background work, which
nobody waits for, is written down before it begins, because its budget has to hold across processes.
"""

import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from memoranda.db.lazy_database import LazyDatabase
from memoranda.errors import ConfigError, StorageError
from memoranda.llm.model import ChatModel, Usage
from memoranda.spending.budget import BackgroundSpending, Budget, background_spending
from memoranda.spending.call_record import CallRecord
from memoranda.spending.ledger_writer import LedgerWriter, store_calls
from memoranda.spending.metering import LedgerAccess, MeteredModel
from memoranda.spending.prices import Price, Prices
from memoranda.spending.schema import APPLICATION_ID, FILE_NAME, SCHEMA
from memoranda.spending.settings import BudgetSettings
from memoranda.spending.totals import Grouping, Total, sum_by_group, sum_calls

_log = logging.getLogger(__name__)

_LAST_WAIT = 2.0
_END_OF_TIME = 1e12


class Ledger:
    """What models cost in one home. The file is made with the first call."""

    def __init__(
        self, home: Path, budget: BudgetSettings | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = home / FILE_NAME
        self.settings = budget or BudgetSettings()
        self._clock = clock
        self._prices = Prices(home)
        self._file = LazyDatabase(self.path, SCHEMA, APPLICATION_ID)
        self._budget = Budget(self._file.open, self.settings, clock)
        self._recorder = LedgerWriter(self._file)
        # Also when the program ends without closing it.
        weakref.finalize(self, self._recorder.flush, _LAST_WAIT, last=True)

    def metered(
        self,
        model: ChatModel,
        purpose: str,
        *,
        session_id: str | Callable[[], str] = "",
        user_id: str = "",
        background: bool = False,
    ) -> ChatModel:
        """The same model, whose calls are written down; those of background work only begin within the budget.

        A conversation that is compressed goes on under another id, so that `session_id` may be a question.
        """
        books = LedgerAccess(self.price, self._record, self._budget.reserve, self._settle, self._clock)
        return MeteredModel(model, books, CallRecord(purpose, 0.0, background, user_id=user_id), session_id)

    def price(self, provider: str, model: str) -> Price | None:
        """The price of a model, None when it is not known; raises ConfigError when prices.yaml cannot be used."""
        return self._prices.of(provider, model)

    def totals(
        self, by: Grouping = "day", *, since: float = 0.0, until: float = _END_OF_TIME, user: str | None = None
    ) -> list[Total]:
        """What was spent, in groups; of everybody, or of one user."""
        self._recorder.flush(_LAST_WAIT)
        if not self._file.exists():
            return []
        with self._file.open().reading() as connection:
            return sum_by_group(connection, by, since, until, user)

    def total(self, *, since: float = 0.0, until: float = _END_OF_TIME, user: str | None = None) -> Total:
        """What was spent, in one sum."""
        self._recorder.flush(_LAST_WAIT)
        if not self._file.exists():
            return Total("")
        with self._file.open().reading() as connection:
            return sum_calls(connection, since, until, user)

    def today(self) -> BackgroundSpending:
        """What background work used of today's budget."""
        if not self._file.exists():
            return BackgroundSpending()
        with self._file.open().reading() as connection:
            return background_spending(connection, self._clock())

    def close(self) -> None:
        """Write what waits, for a bounded while, and close the file."""
        self._recorder.flush(_LAST_WAIT, last=True)
        self._file.close()

    def _record(self, call: CallRecord) -> None:
        self._recorder.put(self._priced(call))

    def _settle(self, call: CallRecord) -> None:
        """At once, so that the next call knows; if that cannot be, as soon as it can."""
        priced = self._priced(call)
        try:
            store_calls(self._file, [priced])
        except StorageError as error:
            _log.warning("What a background call cost could not be written yet: %s", error)
            self._recorder.put(priced)

    def _priced(self, call: CallRecord) -> CallRecord:
        if call.usage == Usage():
            return replace(call, cost_usd=0.0)
        try:
            price = self.price(call.provider, call.model)
        except ConfigError as error:
            _log.warning("A call is in the ledger without its price: %s", error)
            price = None
        return replace(call, cost_usd=None if price is None else price.cost(call.usage))
