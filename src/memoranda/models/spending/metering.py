"""Records every call of a chat model, and every request for embeddings, in the ledger.

A metered model otherwise behaves like the model it wraps.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

from memoranda.errors import BudgetSpentError, ConfigError, ModelError, ModelReplyError, ModelUnreachableError
from memoranda.models.model import ChatModel, Message, OnText, Reply, Usage
from memoranda.models.spending.call_record import INTERRUPTED, OK, RUNNING, CallRecord
from memoranda.models.spending.prices import Price
from memoranda.models.tokens import estimate_request, estimate_text, max_answer_tokens
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import Tool

# Limits of background calls whose caller sets none; the budget reserves this much.
MAX_OUTPUT_TOKENS = 16_384
MAX_SECONDS = 600.0
_GRACE_SECONDS = 30.0
_TYPICAL_OUTPUT_TOKENS = 500
# Tokens in addition to the text: roles, separators, the vendor's own instructions about tools.
_OVERHEAD_TOKENS = 4_096
_RESERVE_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class LedgerAccess:
    """The functions of the ledger that a metered model uses."""

    price: Callable[[str, str], Price | None]
    record: Callable[[CallRecord], None]
    reserve: Callable[[CallRecord, float], None]
    settle: Callable[[CallRecord], None]
    clock: Callable[[], float]


class MeteredModel:
    """Wraps a model: each call becomes a row, and background calls start only within the budget."""

    def __init__(
        self, model: ChatModel, ledger: LedgerAccess, call: CallRecord, session_id: str | Callable[[], str] = ""
    ) -> None:
        self._model = model
        self._session_id = session_id
        self._ledger = ledger
        self._call = call

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
            at=self._ledger.clock(),
            provider=self.provider,
            model=self.name,
            key=CallRecord("", 0).key,
            session_id=session_id,
        )
        if call.background:
            max_tokens, deadline = max_tokens or self._max_output_tokens(), deadline or MAX_SECONDS
            call = self._reserve(call, system, messages, tools, max_tokens, deadline)
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
            self._write(call, usage, outcome, estimated, time.monotonic() - started)

    def _max_output_tokens(self) -> int:
        """The answer limit of a background call: what the model can write, and what leaves room for the request."""
        return max(1, min(MAX_OUTPUT_TOKENS, max_answer_tokens(self.name), self.window // 4))

    def _reserve(
        self,
        call: CallRecord,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        output: int,
        deadline: float,
    ) -> CallRecord:
        """Records the call before it starts, with the most that it can use."""
        try:
            price = self._ledger.price(call.provider, call.model)
        except ConfigError as error:
            raise BudgetSpentError(f"The cost of background work is unknown: {error}") from error
        max_input = _max_input_tokens(system, messages, tools)
        usage = Usage(estimate_request(system, messages, tools), min(output, _TYPICAL_OUTPUT_TOKENS))
        reserved = replace(
            call,
            **asdict(usage),
            estimated=True,
            cost_usd=None if price is None else price.cost(usage),
            outcome=RUNNING,
            most_tokens=max_input + output,
            most_usd=0.0 if price is None else price.max_cost(max_input, output),
            until=call.at + deadline + _GRACE_SECONDS,
        )
        self._ledger.reserve(reserved, min(deadline, _RESERVE_TIMEOUT))
        return reserved

    def _write(self, call: CallRecord, usage: Usage, outcome: str, estimated: bool, seconds: float) -> None:
        done = replace(
            call,
            **asdict(usage),
            estimated=estimated,
            seconds=seconds,
            outcome=outcome,
            most_tokens=0,
            most_usd=0.0,
            until=None,
        )
        if call.background:
            self._ledger.settle(done)
        else:
            self._ledger.record(done)


# All other outcomes are refusals, for which no tokens were read.
_MAY_HAVE_COST = frozenset({OK, INTERRUPTED, ModelReplyError.__name__, ModelUnreachableError.__name__})


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


PURPOSE = "embeddings"
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
