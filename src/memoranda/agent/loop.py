"""The turn of an agent: record, recall, ask, act, record, hand over, make room.

Every step is durable before the next one is taken: the user's words before the model is asked, a call before it is
carried out, its result before the model sees it. Whoever interrupts a turn, at whatever point, loses nothing that was
recorded; a turn that was not done is handed to nobody.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memoranda.agent.answer_stream import AnswerStream, visible_text
from memoranda.agent.api_messages import to_api_messages
from memoranda.agent.events import AnswerTruncated, ContextCompressed, Event, ModelAnswered, ToolCalled, ToolReturned
from memoranda.agent.session_views import Compression, Conversation, Exchange
from memoranda.agent.settings import AgentSettings
from memoranda.agent.tool_dispatch import execute_call, result_as_text
from memoranda.errors import ContextTooLongError, MemorandaError, ModelReplyError, ModelUnreachableError
from memoranda.llm.model import ChatModel, OnText, Reply, ToolCall, Usage
from memoranda.tools import JsonObject, Tool, tool_refusal

OUT_OF_ROOM = "I have used up what one turn allows without coming to an answer. Say 'go on' and I continue from here."
_ENOUGH = "This turn has used up its {limit}. Call no more tools; answer with what you have and say what is left to do."
# The share of a turn's time in which tools may be called; the rest is for the answer.
_ACTING = 0.8

_log = logging.getLogger(__name__)


class Agent:
    """A model at work in one conversation."""

    def __init__(
        self,
        session: Conversation,
        model: ChatModel,
        *,
        settings: AgentSettings | None = None,
        tools: Sequence[Tool] = (),
        on_text: OnText | None = None,
        on_event: Callable[[Event], None] | None = None,
        after_turn: Callable[["Agent"], None] | None = None,
    ) -> None:
        """`tools` are offered beside those of the session; `after_turn` is called when a turn is done and recorded.

        `usage` adds up all calls of this agent; `context_tokens` is how full the context was at the last call, None
        while that is not known: before the first one, and after compression.
        """
        self.session = session
        self.model = model
        self.settings = settings or AgentSettings()
        self.usage = Usage()
        self.context_tokens: int | None = None
        self._more_tools = tuple(tools)
        self._tools: tuple[str, tuple[Tool, ...]] | None = None
        self._on_text = on_text
        self._on_event = on_event
        self._after_turn = after_turn
        self._began = time.monotonic()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Everything that the model is offered; the same until compression, because a cached prefix begins with it."""
        if self._tools is None or self._tools[0] != self.session.id:
            self._tools = (self.session.id, (*self.session.tools, *self._more_tools))
        return self._tools[1]

    def turn(self, text: Any) -> str:
        """Answer what the user says (text or structured content); raises ModelError when the model cannot."""
        self._began, steps = time.monotonic(), 0
        with self.session.turn(text) as turn:
            reply = self._ask(turn)
            while reply.tool_calls and steps <= self.settings.max_steps:
                steps += 1
                turn.record(**reply.message())
                for call in reply.tool_calls:
                    self._act(turn, call, steps)
                self._make_room()
                reply = self._ask(turn)
            answer = _final(reply)
            turn.done(answer.message())
        if reply.finish_reason == "length":
            self._tell(AnswerTruncated())
        self._afterwards()
        return visible_text(answer.text)

    def _ask(self, turn: Exchange) -> Reply:
        """What the model says now; a context that turns out too long is compressed once."""
        try:
            reply = self._query(turn)
        except ContextTooLongError:
            if not self._make_room(force=True).done:
                raise
            reply = self._query(turn)
        self.usage += reply.usage
        self.context_tokens = reply.usage.input_tokens + reply.usage.output_tokens
        self.session.note_usage(reply.usage, model=reply.model or self.model.name, provider=self.model.provider)
        self._tell(ModelAnswered(reply.usage))
        return reply

    def _query(self, turn: Exchange) -> Reply:
        stream = AnswerStream(self._on_text) if self._on_text else None
        reply = self.model.reply(
            self.session.prompt,
            to_api_messages(turn.messages),
            self.tools,
            on_text=stream.feed if stream else None,
            deadline=self._deadline(),
        )
        if stream:
            stream.finish()
        return reply

    def _act(self, turn: Exchange, call: ToolCall, steps: int) -> None:
        """Carry out one call and record its result."""
        self._tell(ToolCalled(call))
        limit = self._used_up(steps)
        result = tool_refusal("limit", _ENOUGH.format(limit=limit)) if limit else self._call(call)
        content = result_as_text(result, self.settings.result_chars)
        turn.record("tool", content, tool_call_id=call.id, tool_name=call.name)
        self._tell(ToolReturned(call, result))

    def _call(self, call: ToolCall) -> JsonObject:
        ours = any(tool.name == call.name for tool in self._more_tools)
        return execute_call(call, self.tools, None if ours else self.session.call)

    def _used_up(self, steps: int) -> str:
        """The limit that a turn has reached, in words."""
        if steps > self.settings.max_steps:
            return f"{self.settings.max_steps} steps"
        seconds = self.settings.turn_seconds
        return f"{seconds:g} seconds" if seconds and time.monotonic() - self._began > seconds * _ACTING else ""

    def _deadline(self) -> float:
        if self.settings.turn_seconds is None:
            return self.settings.call_seconds
        left = self._began + self.settings.turn_seconds - time.monotonic()
        if left <= 0:
            raise ModelUnreachableError(f"The turn took longer than its {self.settings.turn_seconds:g} seconds.")
        return min(left, self.settings.call_seconds)

    def _make_room(self, *, force: bool = False) -> Compression:
        """Compress if the context is full; a failure of that is no failure of the turn."""
        try:
            compression = self.session.compress(force=force)
        except (MemorandaError, OSError) as error:
            _log.exception("The context of session %s could not be compressed.", self.session.id)
            return Compression(done=False, why=str(error))
        if compression.done:
            self.context_tokens = None
            self._tell(ContextCompressed(compression))
        return compression

    def _afterwards(self) -> None:
        """What follows an answer that is recorded and shown; it can no longer spoil it."""
        self._make_room()
        try:
            if self._after_turn:
                self._after_turn(self)
        except (MemorandaError, OSError):
            _log.exception("The work after a turn of session %s failed.", self.session.id)

    def _tell(self, event: Event) -> None:
        if self._on_event:
            self._on_event(event)


def _final(reply: Reply) -> Reply:
    """The reply as the answer of a turn: words, and no calls that nobody will carry out."""
    if reply.tool_calls:
        return replace(reply, tool_calls=(), text=reply.text or OUT_OF_ROOM, finish_reason="stop")
    if not visible_text(reply.text).strip():
        raise ModelReplyError(f"The model gave an empty answer (it stopped for: {reply.finish_reason}). Ask it again.")
    return reply
