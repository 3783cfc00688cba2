"""Decides when a context is compressed, by the provider's token count if there is one.

A context that stays too full after compression (a long system prompt, one huge message) would be compressed again at
every turn. So `CompressionProgress` records what compression achieved. It is stored with the conversation and survives
restarts and compressions.

A context engine is the part of an agent that keeps track of a context across the sessions of a conversation.
Memoranda's own is the compressor. A developer who keeps a structure beside it, such as a graph of summaries, passes an
object with the same hook to `memory.session(context_engine=...)`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Protocol

from memoranda.models.model import Message, Usage
from memoranda.models.tokens import estimate_messages, estimate_text, estimate_tools
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import Tool

_MAX_USELESS = 2
# After that, compression is tried again when the context has grown by this share of the window.
_GROWTH = 0.1


@dataclass(frozen=True, slots=True)
class TokenReading:
    """The provider's token count of a call and its answer; `last_id` is the last message that it covers."""

    tokens: int
    last_id: int

    @classmethod
    def of(cls, usage: Usage, last_id: int) -> "TokenReading | None":
        """The reading of one call; None if the provider reported no usage."""
        return cls(usage.input_tokens + usage.output_tokens, last_id) if usage.input_tokens > 0 else None


def context_tokens(
    numbered: Sequence[tuple[int, Message]],
    reading: TokenReading | None,
    *,
    system: str = "",
    tools: Sequence[Tool] = (),
) -> int:
    """The tokens of the next call: the last reading plus an estimate of newer messages, or an estimate of all."""
    if reading is not None and any(number == reading.last_id for number, _ in numbered):
        return reading.tokens + estimate_messages(message for number, message in numbered if number > reading.last_id)
    return estimate_text(system) + estimate_tools(tools) + estimate_messages(message for _, message in numbered)


@dataclass(frozen=True, slots=True)
class CompressionProgress:
    """What compression has achieved in a conversation so far."""

    useless: int = 0
    """How many times in a row compression did not help."""
    waiting: bool = False
    """The context was compressed, and the provider has not counted its tokens since."""
    stuck_at: int = 0
    """The tokens of the context when compression last did not help."""
    window: int = 0
    """The window that the other fields are about; a model with another window starts from zero."""
    left: int = 0
    """The estimated tokens after compression; 0 if unknown."""

    def is_due(self, used: int, limit: int, window: int) -> bool:
        """Whether a context with `used` tokens should be compressed now."""
        if used < limit:
            return False
        if window != self.window:
            return True
        if self.waiting:
            # Some providers never report usage; then only the growth since the last compression counts.
            return used >= (self.left or limit) + window * _GROWTH
        return self.useless < _MAX_USELESS or used >= self.stuck_at + window * _GROWTH

    def after_compression(self, window: int, tokens_left: int = 0) -> "CompressionProgress":
        """The progress after a compression to about `tokens_left`; the next reading shows whether it helped."""
        return replace(self._for_window(window), waiting=True, left=tokens_left)

    def after_failure(self, used: int, window: int) -> "CompressionProgress":
        """The progress after a context could not be made shorter."""
        progress = self._for_window(window)
        return replace(progress, useless=progress.useless + 1, stuck_at=used, waiting=False)

    def after_reading(self, used: int, limit: int, window: int) -> "CompressionProgress":
        """The progress after the provider has counted the tokens of the context."""
        progress = self._for_window(window)
        if used < limit:
            return CompressionProgress(window=window)
        return progress.after_failure(used, window) if progress.waiting else progress

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "CompressionProgress":
        """Reads stored progress; returns the initial progress if the text is invalid."""
        try:
            stored = json.loads(text) if text else {}
            numbers = [int(stored[name]) for name in ("useless", "waiting", "stuck_at", "window", "left")]
            return cls(numbers[0], bool(numbers[1]), *numbers[2:])
        except (ValueError, KeyError, TypeError):
            return cls()

    def _for_window(self, window: int) -> "CompressionProgress":
        return self if self.window == window else CompressionProgress(window=window)


BoundaryReason = Literal["start", "resume", "reset", "branch", "compression"]


class ContextEngine(Protocol):
    """Is notified whenever a session of its conversation starts."""

    def on_session_start(
        self, session_id: str, *, boundary_reason: str, old_session_id: str | None = None, **facts: Any
    ) -> None:
        """A session starts, after it is in effect; `boundary_reason` says why, and `old_session_id` what it follows.

        The facts are those that a provider gets in `initialize`. An error is logged and does not stop the session.
        """
