"""Narrow views of a session: one protocol for each part of the program that uses it.

`memoranda.api.Session` and the state behind it are the only real session; these protocols let the loop,
compression and reviews use it without importing it. A conversation may continue under a new id after `compress`, even
in the middle of a turn: object and turn stay the same, and `id`, `prompt` and `messages` are then those of the
continuation.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from memoranda.memory.curated.settings import Target
from memoranda.models.model import Message, Usage
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject, Tool


@dataclass(frozen=True, slots=True)
class Compression:
    """The result of asking for a shorter context: done, or why not."""

    done: bool
    why: str
    how: str = ""  # "model" or "extract"
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class SavedChange:
    """Something that a turn saved: a change in the journal of curated memory or of skills, with a description."""

    part: Literal["memory", "skills"]
    number: int
    text: str

    @property
    def command(self) -> str:
        """The command that reverts it."""
        return f"memoranda {self.part} undo {self.number}"


@dataclass(frozen=True, slots=True)
class RevertedChange:
    """The result of reverting a change: done, or why not."""

    change: SavedChange
    done: bool
    message: str


@dataclass(frozen=True, slots=True)
class UndoneTurn:
    """A turn that was undone: the user's text, and how many messages were removed from the context.

    `saved` is what the turn saved in memory and skills, which stays until `Session.revert` reverts it.
    """

    text: str
    messages: int
    saved: tuple[SavedChange, ...] = ()


class SessionView(Protocol):
    """The members that every view of a session has."""

    @property
    def id(self) -> str: ...

    @property
    def prompt(self) -> str:
        """The whole system prompt, byte-identical until compression."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered."""


class AgentTurn(Protocol):
    """One turn of a conversation; the user's message was durable when the turn began."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The context as the model gets it: the record, with recalled memory in a copy of the last question."""

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step; it is durable when this returns."""

    def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer, and deliver the turn to the external memory."""


class AgentSession(SessionView, Protocol):
    """A session as the agent's loop sees it."""

    def turn(self, text: Any, *, wait: float | None = None) -> AbstractContextManager[AgentTurn]:
        """Begin a turn; raises SessionBusyError when another one is in progress for more than `wait` seconds."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject: ...

    def note_usage(self, usage: Usage, *, model: str, provider: str) -> None:
        """Store what a call used, which also says how full the context is; never raises, never waits for long."""

    def compress(self, *, force: bool = False, focus: str = "") -> Compression:
        """Shorten the context if it is due, or at once when `force`; quick when there is nothing to do."""


class CompressibleSession(SessionView, Protocol):
    """A session as compression sees it."""

    def before_compression(self) -> str:
        """The text that the external memory adds to the summary."""

    def flush_provider(self) -> None:
        """Notify the external memory of the turns so far, before the session ends."""

    def new_prompt_columns(self) -> dict[str, Any]:
        """Build the prompt of the continuation, as columns of its row."""

    def continue_as(self, session_id: str) -> None:
        """Become the session that continues the conversation."""


class ReviewableSession(SessionView, Protocol):
    """A session as a background review sees it."""

    @property
    def user(self) -> str | None:
        """The user of a gateway; None for the home itself."""

    def conversation(self) -> list[Message]:
        """The messages as they are sent to the model, without recalled memory."""

    def user_texts(self) -> Sequence[str]:
        """The user's own messages in this conversation; summaries and notes are not the user's."""

    def entries(self, target: Target) -> Sequence[str]:
        """The live entries of curated memory as they may be shown."""

    def review_tools(self) -> Sequence[Tool]:
        """The memory and skill tools of the review: actor "review" in the journal, not mirrored to the provider."""
