"""A session as a background review sees it."""

from typing import TYPE_CHECKING, Any

from memoranda.api.session_state import SessionState
from memoranda.memory.curated.settings import Target
from memoranda.support.tool import Tool

if TYPE_CHECKING:
    from memoranda.models.model import ChatModel


class ReviewedSession:
    """The session of a `SessionState` for a review by `chat_model` (`agent.session_views.ReviewableSession`)."""

    def __init__(self, state: SessionState, chat_model: "ChatModel | None") -> None:
        self.chat_model = chat_model
        self._state = state

    @property
    def id(self) -> str:
        return self._state.id

    @property
    def user(self) -> str | None:
        return self._state.options.user

    @property
    def prompt(self) -> str:
        return self._state.prompt

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._state.tools

    def conversation(self) -> list[dict[str, Any]]:
        return self._state.conversation()

    def user_texts(self) -> list[str]:
        from memoranda.memory.record.message_rows import text_of

        return [text_of(message.message.get("content")) for message in self._state.record.user_messages()]

    def entries(self, target: Target) -> tuple[str, ...]:
        return self._state.store.entries(target)

    def review_tools(self) -> tuple[Tool, ...]:
        return self._state.toolbox.for_review(self.id)
