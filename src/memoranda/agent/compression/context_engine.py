"""The context engine: the part of an agent that keeps track of a context across the sessions of a conversation.

Memoranda's own is the compressor. A developer who keeps a structure beside it, such as a graph of summaries, passes an
object with the same hook to `memory.session(context_engine=...)`.
"""

from typing import Any, Literal, Protocol

BoundaryReason = Literal["start", "resume", "reset", "branch", "compression"]


class ContextEngine(Protocol):
    """Is notified whenever a session of its conversation starts."""

    def on_session_start(
        self, session_id: str, *, boundary_reason: str, old_session_id: str | None = None, **facts: Any
    ) -> None:
        """A session starts, after it is in effect; `boundary_reason` says why, and `old_session_id` what it follows.

        The facts are those that a provider gets in `initialize`. An error is logged and does not stop the session.
        """
