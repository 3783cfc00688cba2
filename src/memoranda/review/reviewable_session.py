"""What a review needs of a session, and the session as it was at the end of a turn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memoranda.curated.settings import Target
from memoranda.llm.model import Message
from memoranda.tools import Tool

MEMORY_TOOL = "memory"
SKILL_TOOL = "skill_manage"
SKILL_READERS = ("skills_list", "skill_view")
ALLOWED = frozenset({MEMORY_TOOL, SKILL_TOOL, *SKILL_READERS})


class ReviewableSession(Protocol):
    """A session that can be reviewed."""

    @property
    def id(self) -> str: ...

    @property
    def user(self) -> str | None:
        """The user of a gateway; None for the home itself."""

    @property
    def prompt(self) -> str:
        """The system prompt, byte for byte as it is sent."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as they are sent; a review sends the same ones and calls none of them."""

    def conversation(self) -> list[Message]:
        """The messages as they are sent, without what an external memory recalled."""

    def user_words(self) -> Sequence[str]:
        """What the user said in this conversation, message by message; summaries and notes are not the user's."""

    def entries(self, target: Target) -> Sequence[str]:
        """The live entries of curated memory as they may be shown."""

    def review_tools(self) -> Sequence[Tool]:
        """The memory and skill tools for the review alone: actor "review" in the journal, no external memory told."""


@dataclass(frozen=True, slots=True)
class ReviewSnapshot:
    """A session as it was when its review became due; its tools are live."""

    id: str
    user: str | None
    prompt: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    user_words: tuple[str, ...]
    review_tools: tuple[Tool, ...]
    session: ReviewableSession

    def entries(self, target: Target) -> tuple[str, ...]:
        return tuple(self.session.entries(target))


def take_snapshot(session: ReviewableSession) -> ReviewSnapshot:
    """Take a session as it is now."""
    return ReviewSnapshot(
        session.id,
        session.user,
        session.prompt,
        tuple(session.tools),
        tuple(session.conversation()),
        tuple(session.user_words()),
        tuple(tool for tool in session.review_tools() if tool.name in ALLOWED),
        session,
    )
