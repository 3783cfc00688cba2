"""The agents of a home: their models, the ledger of what those use, delegated work, and the review after a turn."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from memoranda import config
from memoranda.agent.delegation import Delegation
from memoranda.agent.events import Event, ToolCalled
from memoranda.agent.loop import Agent
from memoranda.agent.session_views import Conversation
from memoranda.app.session import Session
from memoranda.errors import ModelError
from memoranda.llm.model import ChatModel, OnText
from memoranda.llm.model_factory import model_for
from memoranda.review.background import BackgroundReview
from memoranda.review.report import ReviewReport
from memoranda.review.reviewable_session import ReviewSnapshot
from memoranda.spending.ledger import Ledger
from memoranda.tools import Tool

if TYPE_CHECKING:
    from memoranda.app.memory import Memory


class Agents:
    """Makes agents, keeps the ledger of what they use, and has conversations reviewed in the background."""

    def __init__(self, memory: "Memory") -> None:
        self._memory = memory
        # The model of the agent that has just had a turn, which takes up reviews that others left.
        self._present = threading.local()
        # Who wants to hear of the review of which session.
        self._listeners: dict[str, Callable[[ReviewReport], None]] = {}
        self.ledger = Ledger(memory.home.root, memory.config.budget)
        self.review = BackgroundReview(
            memory.home.root, self._reviewing, memory.config.review, find=self._find, tell=self._tell
        )

    def configured_model(self) -> ChatModel:
        """The model that is configured; raises ModelError, saying how to set one up, when there is none."""
        return model_for(self._memory.config.model, config.credentials(self._memory.home))

    def make(
        self,
        model: ChatModel,
        session: Session,
        *,
        tools: Sequence[Tool] = (),
        on_text: OnText | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_review: Callable[[ReviewReport], None] | None = None,
    ) -> Agent:
        """An agent in a session; `tools` are yours, offered beside those of memory.

        `on_text` gets the answer as it is written, `on_event` what happens meanwhile, and `on_review` what a review in
        the background has saved, from its own thread.
        """
        session.use_model(model, reserved=self._memory.config.model.max_tokens)
        used: list[str] = []

        def listen(event: Event) -> None:
            if isinstance(event, ToolCalled):
                used.append(event.call.name)
            if on_event:
                on_event(event)

        def afterwards(agent: Agent) -> None:
            if on_review:
                self._listeners[session.id] = on_review
            self._present.model = model
            self.review.after_turn(session, used=tuple(used), tools=agent.tools)
            used.clear()

        delegation = Delegation(
            session, self.metered(model, "delegation", session), self._begin_delegate(session, model),
            settings=self._memory.config.delegation, tools=tuple(tools),
            delegated=session.delegated,
        )  # fmt: skip
        return Agent(
            session, self.metered(model, "chat", session), settings=self._memory.config.agent,
            tools=(*tools, *(each for each in delegation.definitions() if session.allows(each.name))),
            on_text=on_text, on_event=listen, after_turn=afterwards,
        )  # fmt: skip

    def metered(self, model: ChatModel, purpose: str, session: Session, *, background: bool = False) -> ChatModel:
        """The same model, whose calls are written down."""
        return self.ledger.metered(
            model, purpose, session_id=lambda: session.id, user_id=session.user or "", background=background
        )

    def close(self) -> None:
        """Let a review that is under way end, for a moment, and write down what waits."""
        self.review.close()
        self.ledger.close()

    def _tell(self, report: ReviewReport) -> None:
        if listener := self._listeners.pop(report.session_id, None):
            listener(report)

    def _begin_delegate(
        self, parent: Session, model: ChatModel
    ) -> Callable[[str], AbstractContextManager[Conversation]]:
        def begin(parent_id: str) -> AbstractContextManager[Conversation]:
            child = self._memory.session(
                source="subagent", model=parent.model, user=parent.user, parent=parent_id, platform=parent.source
            )
            child.use_model(model)
            return child

        return begin

    def _find(self, session_id: str, user: str | None) -> Session | None:
        """A session whose review was left undone; it is reviewed by the model that is at hand."""
        found = self._memory.recorded_session(session_id, user)
        if found is not None:
            found.chat_model = self._present.model
        return found

    def _reviewing(self, taken: ReviewSnapshot) -> ChatModel:
        model = taken.session.chat_model if isinstance(taken.session, Session) else None
        if model is None:
            raise ModelError(f"No model has answered in session {taken.id} yet.")
        return self.ledger.metered(model, "review", session_id=taken.id, user_id=taken.user or "", background=True)
