"""LangChain: a chat history whose messages are those of the record.

    chain = RunnableWithMessageHistory(runnable, lambda session_id: MemorandaChatHistory(session_id, memory))

Needs the package langchain-core (extra `langchain`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.external.external_memory import guarded
from memoranda.integrations.frameworks import blocking_calls
from memoranda.integrations.frameworks.recorded_session import (
    RecordedSession,
    answer_calls,
    as_message,
    call_ids,
    result_ids,
    tool_call,
)
from memoranda.memory.record.framework_objects import original_of

if TYPE_CHECKING:
    from memoranda.api.memory import Memory

SOURCE = "langchain"
THREADS = "langgraph"
"""The source of conversations that are threads of LangGraph."""
_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "system": "system",
}
_TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class MemorandaChatHistory(BaseChatMessageHistory):
    """The history of one conversation; messages are durable when `add_messages` returns, and come back as they were."""

    def __init__(self, session_id: str, memory: "Memory") -> None:
        self.session_id = session_id
        self._session = RecordedSession.of(memory, SOURCE, session_id)

    @property
    def record_id(self) -> str:
        return self._session.id

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages of the conversation in their order."""
        messages = answer_calls(self._session.messages(), call_ids, result_ids, _interrupted)
        originals = [_original(message) for message in messages]
        return messages_from_dict([found for found in originals if found is not None])

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages, read outside the event loop."""
        return await blocking_calls.read(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Record messages, all of them or none."""
        self._session.append(map(as_row, messages))

    def clear(self) -> None:
        """Take all messages out of the conversation; `restore_replaced` of the store undoes it."""
        if self._session.row() is not None:
            self._session.replace([])

    aadd_messages = blocking_calls.asynchronous(add_messages)
    aclear = blocking_calls.asynchronous(clear)


# The program has its messages elsewhere too, and hands all of them over again with the next one.
@guarded(None, "The record of a thread")
def record_thread(session: RecordedSession, messages: Sequence[BaseMessage], channel: str = "messages") -> None:
    """Record the messages of a thread of LangGraph that are not recorded yet."""
    if not session.is_known or not messages:
        return
    named = {each.id or f"{channel}/{number}": each for number, each in enumerate(messages)}
    recorded = session.recorded_ids(list(named))
    session.append({**as_row(named[name]), "external_id": name} for name in named if name not in recorded)


def as_row(message: BaseMessage) -> dict[str, Any]:
    """A message of LangChain as a message of the record."""
    original = message_to_dict(message)
    data = original["data"]
    fields: dict[str, Any] = {}
    if isinstance(data.get("tool_call_id"), str):
        fields["tool_call_id"] = data["tool_call_id"]
    if calls := data.get("tool_calls"):
        fields["tool_calls"] = [tool_call(call.get("id"), call.get("name"), call.get("args")) for call in calls]
    return as_message(original, _ROLES.get(original["type"], "user"), ("data", "content"), **fields)


def _interrupted(_message: dict[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    return [as_row(ToolMessage(INTERRUPTED_CALL, tool_call_id=each)) for each in ids]


def _original(message: dict[str, Any]) -> dict[str, Any] | None:
    """The message as LangChain knows it; one that another program recorded has its role and its text."""
    found = original_of(message)
    if found is None and message["role"] in _TYPES:
        return {"type": _TYPES[message["role"]], "data": {"content": message["content"] or ""}}
    return found
