"""The turn of an agent: record, recall, ask the model, call tools, record the answer, compress.

Every step is durable before the next one starts: the user's message before the model is asked, a call before it is
executed, its result before the model sees it. An interrupt at any point loses nothing that was recorded; a turn that
was not done is not delivered to the external memory.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memoranda.agent.events import (
    AnswerTruncated,
    ContextCompressed,
    Event,
    ModelAnswered,
    PartialAnswerKept,
    ToolCalled,
    ToolReturned,
)
from memoranda.agent.model_messages import AnswerStream, partial_answer, visible_text
from memoranda.agent.session_views import AgentSession, AgentTurn, Compression
from memoranda.agent.settings import AgentSettings
from memoranda.agent.tool_dispatch import execute_call, result_as_text
from memoranda.errors import ContextTooLongError, MemorandaError, ModelReplyError, ModelUnreachableError
from memoranda.models.model import ChatModel, OnText, Reply, ToolCall, Usage
from memoranda.support.tool import JsonObject, Tool, tool_refusal

TURN_LIMIT_ANSWER = (
    "I have reached the limit of one turn without finding an answer. Say 'continue' and I continue from here."
)
_LIMIT_REACHED = (
    "This turn has used up its {limit}. Call no more tools; answer with what you have and say what is left to do."
)
# The share of a turn's time in which tools may be called; the rest is for the answer.
_TOOL_SHARE = 0.8

_log = logging.getLogger(__name__)


class Agent:
    """A model that works in one conversation."""

    def __init__(
        self,
        session: AgentSession,
        model: ChatModel,
        *,
        settings: AgentSettings | None = None,
        tools: Sequence[Tool] = (),
        read_only: bool = False,
        on_text: OnText | None = None,
        on_event: Callable[[Event], None] | None = None,
        after_turn: Callable[["Agent"], None] | None = None,
    ) -> None:
        """`tools` are offered in addition to those of the session; `after_turn` is called when a turn is recorded.

        With `read_only`, the session's tools that change memory are not offered.
        `usage` adds up all calls of this agent; `context_tokens` is how full the context was at the last call, None
        before the first call and after compression. `turns_begun` counts the user messages that were recorded.
        """
        self.session = session
        self.model = model
        self.settings = settings or AgentSettings()
        self.usage = Usage()
        self.context_tokens: int | None = None
        self.turns_begun = 0
        self._extra_tools = tuple(tools)
        self._read_only = read_only
        self._tools: tuple[str, tuple[Tool, ...]] | None = None
        self._on_text = on_text
        self._on_event = on_event
        self._after_turn = after_turn
        self._started_at = time.monotonic()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools that the model is offered; the same until compression, because a cached prefix begins with them."""
        if self._tools is None or self._tools[0] != self.session.id:
            own = (tool for tool in self.session.tools if tool.facts.read_only or not self._read_only)
            self._tools = (self.session.id, (*own, *self._extra_tools))
        return self._tools[1]

    def turn(self, text: Any, *, wait: float | None = None) -> str:
        """Answer a user message (text or structured content); raises ModelError when the model cannot.

        Raises SessionBusyError when another turn of the conversation is in progress for more than `wait` seconds.
        """
        with self.session.turn(text, wait=wait) as turn:
            self.turns_begun += 1
            self._started_at, steps = time.monotonic(), 0
            reply = self._ask(turn)
            while reply.tool_calls and steps <= self.settings.max_steps:
                steps += 1
                turn.record(**reply.message())
                for call in reply.tool_calls:
                    self._run_call(turn, call, steps)
                self._compress()
                reply = self._ask(turn)
            answer = _final_reply(reply)
            turn.done(answer.message())
        if reply.finish_reason == "length":
            self._emit(AnswerTruncated())
        self._finish()
        return visible_text(answer.text)

    def _ask(self, turn: AgentTurn) -> Reply:
        """Ask the model; a context that turns out too long is compressed once."""
        try:
            reply = self._query(turn)
        except ContextTooLongError:
            if not self._compress(force=True).done:
                raise
            reply = self._query(turn)
        self.usage += reply.usage
        self.context_tokens = reply.usage.input_tokens + reply.usage.output_tokens
        self.session.note_usage(reply.usage, model=reply.model or self.model.name, provider=self.model.provider)
        self._emit(ModelAnswered(reply.usage))
        return reply

    def _query(self, turn: AgentTurn) -> Reply:
        stream = AnswerStream(self._on_text) if self._on_text else None
        try:
            reply = self.model.reply(
                self.session.prompt,
                [dict(message) for message in turn.messages],
                self.tools,
                on_text=stream.feed if stream else None,
                deadline=self._deadline(),
            )
        except KeyboardInterrupt:
            if stream:
                self._keep_partial_answer(turn, stream.shown)
            raise
        if stream:
            stream.finish()
        return reply

    def _keep_partial_answer(self, turn: AgentTurn, text: str) -> None:
        """Record what was shown of an interrupted answer, with a note that no reader can take for a whole answer.

        The turn stays interrupted: no external memory receives it, and no review follows.
        """
        if self.settings.keep_interrupted and text.strip():
            turn.record(**partial_answer(text))
            self._emit(PartialAnswerKept(text))

    def _run_call(self, turn: AgentTurn, call: ToolCall, steps: int) -> None:
        """Execute one call and record its result."""
        self._emit(ToolCalled(call))
        limit = self._reached_limit(steps)
        result = tool_refusal("limit", _LIMIT_REACHED.format(limit=limit)) if limit else self._call(call)
        content = result_as_text(result, self.settings.result_chars)
        turn.record("tool", content, tool_call_id=call.id, tool_name=call.name)
        self._emit(ToolReturned(call, result))

    def _call(self, call: ToolCall) -> JsonObject:
        is_extra = any(tool.name == call.name for tool in self._extra_tools)
        return execute_call(call, self.tools, None if is_extra else self.session.call)

    def _reached_limit(self, steps: int) -> str:
        """The limit that the turn has reached, as words for a message; "" when it has reached none."""
        if steps > self.settings.max_steps:
            return f"{self.settings.max_steps} steps"
        seconds = self.settings.turn_seconds
        return f"{seconds:g} seconds" if seconds and time.monotonic() - self._started_at > seconds * _TOOL_SHARE else ""

    def _deadline(self) -> float:
        if self.settings.turn_seconds is None:
            return self.settings.call_seconds
        remaining = self._started_at + self.settings.turn_seconds - time.monotonic()
        if remaining <= 0:
            raise ModelUnreachableError(f"The turn took longer than its {self.settings.turn_seconds:g} seconds.")
        return min(remaining, self.settings.call_seconds)

    def _compress(self, *, force: bool = False) -> Compression:
        """Compress if the context is full; a failure is logged and does not fail the turn."""
        try:
            compression = self.session.compress(force=force)
        except (MemorandaError, OSError) as error:
            _log.exception("The context of session %s could not be compressed.", self.session.id)
            return Compression(done=False, why=str(error))
        if compression.done:
            self.context_tokens = None
            self._emit(ContextCompressed(compression))
        return compression

    def _finish(self) -> None:
        """Do what follows an answer that is recorded and shown; an error here no longer fails the turn."""
        self._compress()
        try:
            if self._after_turn:
                self._after_turn(self)
        except (MemorandaError, OSError):
            _log.exception("The work after a turn of session %s failed.", self.session.id)

    def _emit(self, event: Event) -> None:
        if self._on_event:
            self._on_event(event)


def _final_reply(reply: Reply) -> Reply:
    """The reply as the answer of a turn: text, without calls that will not be executed any more."""
    if reply.tool_calls:
        return replace(reply, tool_calls=(), text=reply.text or TURN_LIMIT_ANSWER, finish_reason="stop")
    if not visible_text(reply.text).strip():
        raise ModelReplyError(f"The model's answer is empty (finish reason: {reply.finish_reason}). Ask it again.")
    return reply
