"""The spend ledger of a home: a table in `home.db` or on a server, one row per model call, shared by all processes.

Writing it never delays an answer or makes it fail: a thread writes the rows of a conversation. Only background calls,
for which no user waits, are recorded before they start, because all processes share their budget.

A metered model records each of its calls, and otherwise behaves like the model it wraps.
"""

import json
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from memoranda.errors import (
    BudgetSpentError,
    ConfigError,
    ModelError,
    ModelReplyError,
    ModelUnreachableError,
    StorageError,
)
from memoranda.models.model import ChatModel, Message, OnText, Reply, Usage
from memoranda.models.spending.budget import (
    BackgroundSpending,
    Budget,
    Grouping,
    Total,
    background_spending,
    sum_by_group,
    sum_calls,
)
from memoranda.models.spending.call_record import INTERRUPTED, OK, RUNNING, CallRecord, LedgerWriter, store_calls
from memoranda.models.spending.prices import Price, Prices
from memoranda.models.spending.schema import SCHEMA
from memoranda.models.spending.settings import BudgetSettings
from memoranda.models.tokens import estimate_request, estimate_text, max_answer_tokens
from memoranda.storage.home_database import HomeDatabase
from memoranda.support.tool import Tool

_log = logging.getLogger(__name__)

_FLUSH_TIMEOUT = 2.0
_END_OF_TIME = 1e12

# Limits of background calls whose caller sets none; the budget reserves this much.
_MAX_OUTPUT_TOKENS = 16_384
_MAX_SECONDS = 600.0
_EMBEDDING_SECONDS = 90.0
_GRACE_SECONDS = 30.0
_TYPICAL_OUTPUT_TOKENS = 500
# Tokens in addition to the text: roles, separators, the vendor's own instructions about tools.
_OVERHEAD_TOKENS = 4_096
_RESERVE_TIMEOUT = 10.0
# All other outcomes are refusals, for which no tokens were read.
_MAY_HAVE_COST = frozenset({OK, INTERRUPTED, ModelReplyError.__name__, ModelUnreachableError.__name__})


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
        return MeteredModel(self, model, CallRecord(purpose, 0.0, background, user_id=user_id), session_id)

    def embedding_meter(self, provider: str, model: str) -> "EmbeddingMeter":
        """Records the requests for embeddings of one model; background requests start only within the budget."""
        return EmbeddingMeter(self, provider, model)

    def now(self) -> float:
        return self._clock()

    def reserve(self, call: CallRecord, max_input: int, max_output: int, deadline: float) -> None:
        """Records a background call before it starts, with the most that it can use; raises BudgetSpentError."""
        try:
            price = self.price(call.provider, call.model)
        except ConfigError as error:
            raise BudgetSpentError(f"The cost of background work is unknown: {error}") from error
        reserved = replace(
            call,
            estimated=True,
            cost_usd=None if price is None else price.cost(call.usage),
            outcome=RUNNING,
            most_tokens=max_input + max_output,
            most_usd=0.0 if price is None else price.max_cost(max_input, max_output),
            until=call.at + deadline + _GRACE_SECONDS,
        )
        self._budget.reserve(reserved, min(deadline, _RESERVE_TIMEOUT))

    def record(self, call: CallRecord) -> None:
        """Records a call that has ended: a background call at once, so that the next one sees it."""
        priced = self._with_price(call)
        try:
            if call.background:
                store_calls(self._file, [priced])
                return
        except StorageError as error:
            _log.warning("The cost of a background call could not be written yet: %s", error)
        self._writer.put(priced)

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

    def _with_price(self, call: CallRecord) -> CallRecord:
        if call.usage == Usage():
            return replace(call, cost_usd=0.0)
        try:
            price = self.price(call.provider, call.model)
        except ConfigError as error:
            _log.warning("A call was recorded without its price: %s", error)
            price = None
        return replace(call, cost_usd=None if price is None else price.cost(call.usage))


class MeteredModel:
    """Wraps a model: each call becomes a row, and background calls start only within the budget."""

    def __init__(self, ledger: Ledger, model: ChatModel, call: CallRecord, session_id: str | Callable[[], str]) -> None:
        self._ledger = ledger
        self._model = model
        self._call = call
        self._session_id = session_id

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def provider(self) -> str:
        return self._model.provider

    @property
    def window(self) -> int:
        return self._model.window

    def reply(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        on_text: OnText | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Answers as the model does; raises BudgetSpentError if the budget of the day is spent."""
        session_id = self._session_id if isinstance(self._session_id, str) else self._session_id()
        call = replace(
            self._call,
            at=self._ledger.now(),
            provider=self.provider,
            model=self.name,
            key=CallRecord("", 0).key,
            session_id=session_id,
        )
        if call.background:
            max_tokens, deadline = max_tokens or self._max_output_tokens(), deadline or _MAX_SECONDS
            expected = Usage(estimate_request(system, messages, tools), min(max_tokens, _TYPICAL_OUTPUT_TOKENS))
            max_input = _max_input_tokens(system, messages, tools)
            self._ledger.reserve(replace(call, **asdict(expected)), max_input, max_tokens, deadline)
        started = time.monotonic()
        outcome, usage = INTERRUPTED, Usage()
        texts: list[str] = []
        try:
            reply = self._model.reply(
                system, messages, tools, on_text=_collect_text(on_text, texts), max_tokens=max_tokens, deadline=deadline
            )
            outcome, usage = OK, reply.usage
            texts[:] = [reply.text, *(tool_call.arguments for tool_call in reply.tool_calls)]
            return reply
        except ModelError as error:
            outcome = type(error).__name__
            raise
        finally:
            estimated = usage == Usage() and outcome in _MAY_HAVE_COST
            if estimated:
                usage = Usage(estimate_request(system, messages, tools), estimate_text("".join(texts)))
            done = replace(call, **asdict(usage), estimated=estimated, outcome=outcome)
            self._ledger.record(replace(done, seconds=time.monotonic() - started))

    def _max_output_tokens(self) -> int:
        """The answer limit of a background call: what the model can write, and what leaves room for the request."""
        return max(1, min(_MAX_OUTPUT_TOKENS, max_answer_tokens(self.name), self.window // 4))


def _collect_text(on_text: OnText | None, texts: list[str]) -> OnText | None:
    """Collects streamed text, so that an interrupted answer can be counted; without `on_text` nothing is streamed."""
    if on_text is None:
        return None

    def collect(text: str) -> None:
        texts.append(text)
        on_text(text)

    return collect


def _max_input_tokens(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
    """An upper bound: no tokenizer produces more than one token per byte."""
    everything = [system, list(messages), [tool.openai_schema() for tool in tools]]
    return len(json.dumps(everything, ensure_ascii=False, default=str).encode("utf-8", "replace")) + _OVERHEAD_TOKENS


class EmbeddingMeter:
    """Each request becomes a row of the ledger; a background request is recorded before it starts."""

    def __init__(self, ledger: Ledger, provider: str, model: str) -> None:
        self._ledger = ledger
        self._provider = provider
        self._model = model

    def start(self, texts: Sequence[str], *, background: bool, user: str) -> Callable[[int, str], None]:
        """Returns the function to call at the end, with the tokens that the service counted and the outcome.

        Raises BudgetSpentError if a background request would exceed the budget of the day.
        """
        estimate = sum(map(estimate_text, texts))
        call = CallRecord(
            "embeddings",
            self._ledger.now(),
            background,
            user_id=user,
            provider=self._provider,
            model=self._model,
            input_tokens=estimate,
            estimated=True,
        )
        if background:
            # No tokenizer produces more than one token per byte.
            most = sum(len(text.encode("utf-8", "replace")) for text in texts)
            self._ledger.reserve(call, most, 0, _EMBEDDING_SECONDS)
        started = time.monotonic()

        def finish(tokens: int, outcome: str) -> None:
            used = tokens or (estimate if outcome == OK else 0)
            done = replace(call, input_tokens=used, estimated=not tokens, outcome=outcome)
            self._ledger.record(replace(done, seconds=time.monotonic() - started))

        return finish
