"""LangChain: a chat history whose messages are those of the record.

    chain = RunnableWithMessageHistory(runnable, lambda session_id: MemorandaChatHistory(session_id, memory))

Needs the package langchain-core (extra `langchain`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

from memoranda.integrations.frameworks import blocking_calls
from memoranda.integrations.frameworks.recorded_session import as_message, join_names, original_of

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

SOURCE = "langchain"
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "function": "tool", "system": "system"}
_TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class MemorandaChatHistory(BaseChatMessageHistory):
    """The history of one conversation; messages are durable when `add_messages` returns, and come back as they were."""

    def __init__(self, session_id: str, memory: "Memory") -> None:
        self.session_id = session_id
        self._memory = memory
        self.record_id = join_names(SOURCE, memory.user, session_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages of the conversation in their order."""
        if not self._exists:
            return []
        recorded = self._memory.sessions.get_messages(self.record_id)
        return messages_from_dict([found for message in recorded if (found := _original(message)) is not None])

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages, read outside the event loop."""
        return await blocking_calls.read(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages, all of them or none."""
        rows = [_message(message_to_dict(message)) for message in messages]
        db = self._memory.sessions
        if rows and db.get_session(self.record_id) is None:
            db.create_session(self.record_id, SOURCE)
        if rows:
            db.append_messages(self.record_id, rows)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages outside the event loop; a cancellation takes effect when they are recorded."""
        await blocking_calls.run_to_end(self.add_messages, messages)

    def clear(self) -> None:
        """Take all messages out of the conversation; `restore_replaced` of the store undoes it."""
        if self._exists:
            self._memory.sessions.replace_messages(self.record_id, [])

    async def aclear(self) -> None:
        """Take all messages out of the conversation, outside the event loop."""
        await blocking_calls.run_to_end(self.clear)

    @property
    def _exists(self) -> bool:
        return self._memory.services.has_record and self._memory.sessions.get_session(self.record_id) is not None


def _message(original: dict[str, Any]) -> dict[str, Any]:
    data = original["data"]
    fields: dict[str, Any] = {}
    if isinstance(data.get("tool_call_id"), str):
        fields["tool_call_id"] = data["tool_call_id"]
    if calls := data.get("tool_calls"):
        fields["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call.get("name"), "arguments": call.get("args")},
            }
            for call in calls
        ]
    return as_message(original, _ROLES.get(original["type"], "user"), ("data", "content"), **fields)


def _original(message: dict[str, Any]) -> dict[str, Any] | None:
    """The message as LangChain knows it; one that another program recorded has its role and its text."""
    found = original_of(message)
    if found is None and message["role"] in _TYPES:
        return {"type": _TYPES[message["role"]], "data": {"content": message["content"] or ""}}
    return found
