"""A snapshot of a session at the end of a turn, which a review works on."""

from dataclasses import dataclass

from memoranda.agent.session_views import ReviewableSession
from memoranda.memory.curated.settings import Target
from memoranda.models.model import Message
from memoranda.support.tool import Tool

MEMORY_TOOL = "memory"
SKILL_TOOL = "skill_manage"
SKILL_READERS = ("skills_list", "skill_view")
REVIEW_TOOLS = frozenset({MEMORY_TOOL, SKILL_TOOL, *SKILL_READERS})


@dataclass(frozen=True, slots=True)
class ReviewSnapshot:
    """A session as it was when its review became due; its tools write to the current state."""

    id: str
    user: str | None
    prompt: str
    tools: tuple[Tool, ...]
    messages: tuple[Message, ...]
    user_texts: tuple[str, ...]
    review_tools: tuple[Tool, ...]
    session: ReviewableSession

    def entries(self, target: Target) -> tuple[str, ...]:
        return tuple(self.session.entries(target))


def take_snapshot(session: ReviewableSession) -> ReviewSnapshot:
    """A snapshot of the session's current state."""
    return ReviewSnapshot(
        session.id,
        session.user,
        session.prompt,
        tuple(session.tools),
        tuple(session.conversation()),
        tuple(session.user_texts()),
        tuple(tool for tool in session.review_tools() if tool.name in REVIEW_TOOLS),
        session,
    )
