"""What the loop needs of a conversation, and nothing more.

`memoranda.app.Session` and `Turn` are the one real pair; the protocols keep the loop below the composition root. A
conversation may go on under a new id after `compress`: object and turn stay the same, `id`, `prompt` and `messages`
are then those of the continuation. That can happen in the middle of a turn.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from memoranda.llm.model import Message, Usage
from memoranda.tools import JsonObject, Tool


@dataclass(frozen=True, slots=True)
class Compression:
    """What came of asking for a shorter context: done, or why not."""

    done: bool
    why: str
    how: str = ""  # "model" or "extract"
    tokens_before: int = 0
    tokens_after: int = 0


@dataclass(frozen=True, slots=True)
class UndoneTurn:
    """A turn that was undone: what the user had said, and how many messages went."""

    text: str
    messages: int


class Exchange(Protocol):
    """One turn of a conversation, begun when the user's words were on the disk."""

    @property
    def messages(self) -> list[Message]:
        """The context as it is sent: the record, with what was recalled fenced into a copy of the last user message."""

    def record(self, role: str, content: Any = None, **fields: Any) -> int:
        """Record a step; it is durable when this returns."""

    def done(self, reply: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[int]:
        """Record the answer and hand the turn over to whoever is to hear of it."""


class Conversation(Protocol):
    """A session as the loop sees it."""

    @property
    def id(self) -> str: ...

    @property
    def prompt(self) -> str:
        """The whole system prompt, byte-identical until compression."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...

    def turn(self, text: Any) -> AbstractContextManager[Exchange]: ...

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject: ...

    def note_usage(self, usage: Usage, *, model: str, provider: str) -> None:
        """Remember what a call used, which also says how full the context is; never raises, never waits for long."""

    def compress(self, *, force: bool = False, focus: str = "") -> Compression:
        """Make the context shorter if it is due, or at once when `force`; quick when there is nothing to do."""
