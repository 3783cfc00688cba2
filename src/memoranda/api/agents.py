"""The agents of a home: their models, delegated work, and the review after a turn."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from memoranda.agent.delegation import Delegation
from memoranda.agent.events import Event, ToolCalled
from memoranda.agent.loop import Agent
from memoranda.agent.review.background import BackgroundReview
from memoranda.agent.review.report import ReviewReport, ReviewSnapshot
from memoranda.agent.session_views import AgentSession
from memoranda.agent.todo_tool import TodoTool
from memoranda.api.services import HomeServices
from memoranda.api.session import Session
from memoranda.api.session_parts.options import SessionOptions
from memoranda.api.session_parts.state import ReviewedSession
from memoranda.errors import ModelError
from memoranda.home import config
from memoranda.models.model import ChatModel, OnText
from memoranda.models.model_factory import model_for
from memoranda.safety.fence import screen_tools
from memoranda.support.tool import Tool


class Agents:
    """Creates agents, and has their conversations reviewed in the background."""

    def __init__(self, services: HomeServices, start_session: Callable[..., Session]) -> None:
        """`start_session` starts a session as `Memory.session` does, for delegated work."""
        self._services = services
        self._start_session = start_session
        # The model of the agent whose turn just ended; it also runs reviews that other processes left undone.
        self._latest = threading.local()
        # The callback for the review of each session, by its id.
        self._listeners: dict[str, Callable[[ReviewReport], None]] = {}
        self.review = BackgroundReview(
            services.home.root,
            self._model_for_review,
            services.config.review,
            server_url=services.server_url,
            find=self._find_session,
            on_report=self._report,
        )

    def configured_model(self) -> ChatModel:
        """The model that is configured; raises ModelError, saying how to set one up, when there is none."""
        return model_for(self._services.config.model, config.credentials(self._services.home))

    def create_agent(
        self,
        model: ChatModel,
        session: Session,
        *,
        tools: Sequence[Tool] = (),
        on_text: OnText | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_review: Callable[[ReviewReport], None] | None = None,
    ) -> Agent:
        """An agent in a session; `tools` are the caller's own, offered in addition to those of memory.

        `on_text` receives the answer as it is written, `on_event` the events of a turn, and `on_review` what a
        background review has saved, from its own thread.
        """
        settings = self._services.config
        session.use_model(model, reserved=settings.model.max_tokens)
        used_tools: list[str] = []

        def track_tools(event: Event) -> None:
            if isinstance(event, ToolCalled):
                used_tools.append(event.call.name)
            if on_event:
                on_event(event)

        def review(agent: Agent) -> None:
            if on_review:
                self._listeners[session.id] = on_review
            self._latest.model = model
            self.review.after_turn(session.for_review(model), used=tuple(used_tools), tools=agent.tools)
            used_tools.clear()

        def report_result(task: str, result: str, child_id: str) -> None:
            # The session's external memory now: ending and resuming the session replaces it.
            session.external.delegated(task, result, child_id)

        delegation = Delegation(
            session,
            self._metered(model, "delegation", session),
            self._start_delegate(session, model),
            settings=settings.delegation,
            tools=tuple(tools),
            on_result=report_result,
        )
        todo = TodoTool(session.todos.load, session.todos.save)
        # The caller's own tool of that name takes precedence.
        own = () if any(tool.name == "todo" for tool in tools) else todo.definitions()
        own = screen_tools((*own, *delegation.definitions()))
        return Agent(
            session,
            self._metered(model, "chat", session),
            settings=settings.agent,
            tools=(*tools, *(tool for tool in own if session.allows(tool.name))),
            on_text=on_text,
            on_event=track_tools,
            after_turn=review,
        )

    def close(self) -> None:
        """Wait briefly for a review that is running; one that does not end in time is due again."""
        self.review.close()

    def _metered(self, model: ChatModel, purpose: str, session: Session) -> ChatModel:
        return self._services.metered(model, purpose, lambda: session.id, session.user)

    def _report(self, report: ReviewReport) -> None:
        if listener := self._listeners.pop(report.session_id, None):
            listener(report)

    def _start_delegate(
        self, parent: Session, model: ChatModel
    ) -> Callable[[str], AbstractContextManager[AgentSession]]:
        def start(parent_id: str) -> AbstractContextManager[AgentSession]:
            child = self._start_session(
                source="subagent", model=parent.model, user=parent.user, parent=parent_id, platform=parent.source
            )
            child.use_model(model)
            return child

        return start

    def _find_session(self, session_id: str, user: str | None) -> ReviewedSession | None:
        """A session whose review was left undone, to be reviewed by the latest model; None when it has no row."""
        row = self._services.sessions_for(user).get_session(session_id)
        if row is None:
            return None
        options = SessionOptions(row["source"], user, external=False)
        return Session(self._services, session_id, options, is_new=False).for_review(self._latest.model)

    def _model_for_review(self, snapshot: ReviewSnapshot) -> ChatModel:
        model = snapshot.session.chat_model if isinstance(snapshot.session, ReviewedSession) else None
        if model is None:
            raise ModelError(f"No model has answered in session {snapshot.id} yet.")
        return self._services.metered(model, "review", snapshot.id, snapshot.user, background=True)
