"""How full the context is and what the cache served, in a line."""

from dataclasses import dataclass

from memoranda.agent.loop import Agent
from memoranda.llm.tokens import estimate_request
from memoranda.tools import JsonObject


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """Where a conversation stands."""

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
        """The status line under an answer."""
        about = "about " if self.estimated else ""
        share = 100 * self.context_tokens / self.window if self.window else 0
        parts = [f"context {about}{short(self.context_tokens)} of {short(self.window)} tokens ({share:.0f} %)"]
        if self.input_tokens:
            parts.append(f"{100 * self.cached_tokens / self.input_tokens:.0f} % from cache")
        return " · ".join([*parts, self.model, *([self.title] if self.title else [])])


def status_of(agent: Agent, title: str | None, messages: list[JsonObject]) -> ChatStatus:
    """The status of a conversation; before the first call of the model the context is estimated."""
    known = agent.context_tokens
    tokens = estimate_request(agent.session.prompt, messages, agent.tools) if known is None else known
    return ChatStatus(
        agent.session.id, title, agent.model.name, tokens, known is None, agent.model.window,
        agent.usage.input_tokens, agent.usage.cache_read_tokens,
    )  # fmt: skip


def short(number: int) -> str:
    """A number of tokens as people say it: 950, 12.3k, 200k, 1.05M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{number / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"
