"""Records requests for embeddings in the ledger."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from memoranda.errors import BudgetSpentError, ConfigError
from memoranda.models.model import Usage
from memoranda.models.spending.call_record import OK, RUNNING, CallRecord
from memoranda.models.spending.metering import LedgerAccess
from memoranda.models.tokens import estimate_text

PURPOSE = "embeddings"
_RESERVE_TIMEOUT = 10.0
_MAX_SECONDS = 120.0


class EmbeddingMeter:
    """Each request becomes a row of the ledger; a background request is recorded before it starts."""

    def __init__(self, ledger: LedgerAccess, provider: str, model: str) -> None:
        self._ledger = ledger
        self._provider = provider
        self._model = model

    def start(self, texts: Sequence[str], *, background: bool, user: str) -> Callable[[int, str], None]:
        """Returns the function to call at the end, with the tokens that the service counted and the outcome.

        Raises BudgetSpentError if a background request would exceed the budget of the day.
        """
        estimate = sum(map(estimate_text, texts))
        call = CallRecord(
            PURPOSE,
            self._ledger.clock(),
            background,
            user_id=user,
            provider=self._provider,
            model=self._model,
            input_tokens=estimate,
            estimated=True,
        )
        if background:
            # No tokenizer produces more than one token per byte.
            self._reserve(call, sum(len(text.encode("utf-8", "replace")) for text in texts))
        started = time.monotonic()

        def finish(tokens: int, outcome: str) -> None:
            used = tokens or (estimate if outcome == OK else 0)
            done = replace(call, input_tokens=used, estimated=not tokens, outcome=outcome)
            done = replace(done, seconds=time.monotonic() - started)
            (self._ledger.settle if background else self._ledger.record)(done)

        return finish

    def _reserve(self, call: CallRecord, most_tokens: int) -> None:
        try:
            price = self._ledger.price(call.provider, call.model)
        except ConfigError as error:
            raise BudgetSpentError(f"The cost of background work is unknown: {error}") from error
        reserved = replace(
            call,
            cost_usd=None if price is None else price.cost(Usage(call.input_tokens)),
            outcome=RUNNING,
            most_tokens=most_tokens,
            most_usd=0.0 if price is None else price.max_cost(most_tokens, 0),
            until=call.at + _MAX_SECONDS,
        )
        self._ledger.reserve(reserved, _RESERVE_TIMEOUT)
