"""The status line of a chat: how full the context is, and the share of input tokens that came from the cache."""

from dataclasses import dataclass

from memoranda.agent.loop import Agent
from memoranda.models.tokens import estimate_request
from memoranda.support.tool import JsonObject


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """How the current conversation uses the context window and the cache."""

    session_id: str
    title: str | None
    model: str
    context_tokens: int
    estimated: bool
    window: int
    input_tokens: int
    cached_tokens: int

    def as_json(self) -> JsonObject:
        return {
            "session_id": self.session_id,
            "title": self.title,
            "model": self.model,
            "context_tokens": self.context_tokens,
            "estimated": self.estimated,
            "window": self.window,
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
        }

    def line(self) -> str:
        """Formats the line that is shown under an answer."""
        about = "about " if self.estimated else ""
        share = 100 * self.context_tokens / self.window if self.window else 0
        used, window = format_tokens(self.context_tokens), format_tokens(self.window)
        parts = [f"context {about}{used} of {window} tokens ({share:.0f} %)"]
        if self.input_tokens:
            parts.append(f"{100 * self.cached_tokens / self.input_tokens:.0f} % from cache")
        return " · ".join([*parts, self.model, *([self.title] if self.title else [])])


def build_status(agent: Agent, title: str | None, messages: list[JsonObject]) -> ChatStatus:
    """Builds the status of a conversation; before the first model call the context size is an estimate."""
    known = agent.context_tokens
    tokens = estimate_request(agent.session.prompt, messages, agent.tools) if known is None else known
    return ChatStatus(
        agent.session.id, title, agent.model.name, tokens, known is None, agent.model.window,
        agent.usage.input_tokens, agent.usage.cache_read_tokens,
    )  # fmt: skip


def format_tokens(number: int) -> str:
    """Formats a number of tokens briefly: 950, 12.3k, 200k, 1.05M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{number / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
