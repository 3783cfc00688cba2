"""When a context is due to be compressed, by the provider's own count where there is one, and when it is of no use.

A context that stays too full after compression (a long system prompt, one huge message) would be compressed again at
every turn. So what compression achieved is noted as a `Progress`, which is kept with the conversation: it survives
restarts and the new session that compression begins.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from memoranda.llm.model import Message, Usage
from memoranda.llm.tokens import estimate_messages, estimate_text, estimate_tools
from memoranda.tools import Tool

_USELESS_IN_A_ROW = 2
# After that it is tried again when the context has grown by so much of the window.
_GROWN = 0.1


@dataclass(frozen=True, slots=True)
class TokenReading:
    """What the provider counted for a call and its answer; `last_id` is the last message that this covers."""

    tokens: int
    last_id: int

    @classmethod
    def of(cls, usage: Usage, last_id: int) -> "TokenReading | None":
        """The reading of one call; None when the provider told nothing."""
        return cls(usage.input_tokens + usage.output_tokens, last_id) if usage.input_tokens > 0 else None


def context_tokens(
    numbered: Sequence[tuple[int, Message]],
    reading: TokenReading | None,
    *,
    system: str = "",
    tools: Sequence[Tool] = (),
) -> int:
    """How many tokens the next call will send: the last reading and an estimate of what came since, or an estimate."""
    if reading is not None and any(number == reading.last_id for number, _ in numbered):
        return reading.tokens + estimate_messages(message for number, message in numbered if number > reading.last_id)
    return estimate_text(system) + estimate_tools(tools) + estimate_messages(message for _, message in numbered)


@dataclass(frozen=True, slots=True)
class CompressionProgress:
    """What compressing a conversation has achieved so far."""

    useless: int = 0
    """How many times in a row it did not help."""
    waiting: bool = False
    """It was compressed, and nobody has counted its tokens since."""
    stuck_at: int = 0
    """How many tokens there were when it last did not help."""
    window: int = 0
    """For which window; a model with another one is another case."""
    left: int = 0
    """How many tokens compression left, by estimate; 0 when nobody said."""

    def is_due(self, used: int, limit: int, window: int) -> bool:
        """Whether a context with so many tokens should be compressed now, without anybody asking for it."""
        if used < limit:
            return False
        if window != self.window:
            return True
        if self.waiting:
            # Some providers never count: then growth since the last compression is all there is to go by.
            return used >= (self.left or limit) + window * _GROWN
        return self.useless < _USELESS_IN_A_ROW or used >= self.stuck_at + window * _GROWN

    def after_compression(self, window: int, left: int = 0) -> "CompressionProgress":
        """It was compressed to about `left` tokens in all; the next reading tells whether that helped."""
        return replace(self._for(window), waiting=True, left=left)

    def after_failure(self, used: int, window: int) -> "CompressionProgress":
        """It could not be made shorter."""
        known = self._for(window)
        return replace(known, useless=known.useless + 1, stuck_at=used, waiting=False)

    def after_reading(self, used: int, limit: int, window: int) -> "CompressionProgress":
        """Somebody has counted the tokens of the context."""
        known = self._for(window)
        if used < limit:
            return CompressionProgress(window=window)
        return known.after_failure(used, window) if known.waiting else known

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "CompressionProgress":
        """What was kept; nothing is known when it cannot be read."""
        try:
            kept = json.loads(text) if text else {}
            numbers = [int(kept[name]) for name in ("useless", "waiting", "stuck_at", "window", "left")]
            return cls(numbers[0], bool(numbers[1]), *numbers[2:])
        except (ValueError, KeyError, TypeError):
            return cls()

    def _for(self, window: int) -> "CompressionProgress":
        return self if self.window == window else CompressionProgress(window=window)
