"""A model whose calls are written down: to everybody else it is the model itself."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from memoranda.errors import BudgetSpentError, ConfigError, ModelError, ModelReplyError, ModelUnreachableError
from memoranda.llm.context_windows import max_answer_tokens
from memoranda.llm.model import ChatModel, Message, OnText, Reply, Usage
from memoranda.llm.tokens import estimate_request, estimate_text
from memoranda.spending.call_record import INTERRUPTED, OK, RUNNING, CallRecord
from memoranda.spending.prices import Price
from memoranda.tools import Tool

# Background work gets limits where its caller gives none, because its budget is reserved by them.
MOST_OUTPUT = 16_384
LONGEST_CALL = 600.0
_GRACE = 30.0
_USUAL_OUTPUT = 500
# What is sent beside the text itself: roles, separators, the vendor's own words about tools.
_BESIDE_THE_TEXT = 4_096
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class LedgerAccess:
    """What a metered model needs of the ledger."""

    price: Callable[[str, str], Price | None]
    record: Callable[[CallRecord], None]
    reserve: Callable[[CallRecord, float], None]
    settle: Callable[[CallRecord], None]
    clock: Callable[[], float]


class MeteredModel:
    """A model of the same name; each call becomes a row, and background calls begin only within the budget."""

    def __init__(
        self, model: ChatModel, books: LedgerAccess, call: CallRecord, session_id: str | Callable[[], str] = ""
    ) -> None:
        self._model = model
        self._session_id = session_id
        self._books = books
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
        """Answer as the model does; raises BudgetSpentError when background work may spend no more today."""
        session_id = self._session_id if isinstance(self._session_id, str) else self._session_id()
        call = replace(
            self._call, at=self._books.clock(), provider=self.provider, model=self.name, key=CallRecord("", 0).key,
            session_id=session_id,
        )  # fmt: skip
        if call.background:
            max_tokens, deadline = max_tokens or self._most_output(), deadline or LONGEST_CALL
            call = self._reserved(call, system, messages, tools, max_tokens, deadline)
        began = time.monotonic()
        outcome, usage = INTERRUPTED, Usage()
        heard: list[str] = []
        try:
            reply = self._model.reply(
                system, messages, tools, on_text=_listening(on_text, heard), max_tokens=max_tokens, deadline=deadline
            )
            outcome, usage = OK, reply.usage
            heard[:] = [reply.text, *(each.arguments for each in reply.tool_calls)]
            return reply
        except ModelError as error:
            outcome = type(error).__name__
            raise
        finally:
            estimated = usage == Usage() and outcome in _MAY_HAVE_COST
            if estimated:
                said = estimate_text("".join(heard))
                usage = Usage(estimate_request(system, messages, tools), said)
            self._write(call, usage, outcome, estimated, time.monotonic() - began)

    def _most_output(self) -> int:
        """What a background call may answer: no more than the model can, and than leaves room for the question."""
        return max(1, min(MOST_OUTPUT, max_answer_tokens(self.name), self.window // 4))

    def _reserved(
        self,
        call: CallRecord,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        output: int,
        deadline: float,
    ) -> CallRecord:
        """The call as it is written down before it is made, with the most that it can use."""
        try:
            price = self._books.price(call.provider, call.model)
        except ConfigError as error:
            raise BudgetSpentError(f"What background work costs is not known: {error}") from error
        most = _most_tokens(system, messages, tools)
        usage = Usage(estimate_request(system, messages, tools), min(output, _USUAL_OUTPUT))
        reserved = replace(
            call,
            **asdict(usage),
            estimated=True,
            cost_usd=None if price is None else price.cost(usage),
            outcome=RUNNING,
            most_tokens=most + output,
            most_usd=0.0 if price is None else price.most(most, output),
            until=call.at + deadline + _GRACE,
        )
        self._books.reserve(reserved, min(deadline, _PATIENCE))
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
            self._books.settle(done)
        else:
            self._books.record(done)


# Everything else was turned away before a token was read.
_MAY_HAVE_COST = frozenset({OK, INTERRUPTED, ModelReplyError.__name__, ModelUnreachableError.__name__})


def _listening(on_text: OnText | None, heard: list[str]) -> OnText | None:
    """Hear what is streamed, so that an interrupted answer can be counted; without a listener nothing is streamed."""
    if on_text is None:
        return None

    def hear(text: str) -> None:
        heard.append(text)
        on_text(text)

    return hear


def _most_tokens(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
    """More tokens than this a request cannot have: no tokenizer makes more than one of a byte."""
    everything = [system, list(messages), [tool.openai_schema() for tool in tools]]
    return len(json.dumps(everything, ensure_ascii=False, default=str).encode("utf-8", "replace")) + _BESIDE_THE_TEXT
