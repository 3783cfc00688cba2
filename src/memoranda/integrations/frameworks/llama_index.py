"""LlamaIndex: the messages of its memory in Memoranda, a block that recalls, and the memory tools.

    short_term = Memory.from_defaults(
        session_id="oven",
        chat_store=MemorandaChatStore(memory),
        memory_blocks=[MemorandaBlock(memory)],
        insert_method="user",
    )
    response = await agent.run("When do we open?", memory=short_term)

Needs the package llama-index-core, which llama-index installs (extra `llama-index`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import (
    RecordedSession,
    answer_calls,
    as_message,
    call_ids,
    result_ids,
    split_names,
    tool_call,
)
from memoranda.memory.record.framework_objects import join_names, original_of

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from llama_index.core.tools import FunctionTool, ToolMetadata
except ModuleNotFoundError as error:
    _missing = missing_framework("llama-index", error)
    ChatMessage = BaseMemoryBlock = AsyncDBChatStore = FunctionTool = ToolMetadata = _missing

    class MessageStatus:  # type: ignore[no-redef]
        """What the defaults of parameters refer to."""

        ACTIVE = "active"

    def PrivateAttr() -> Any:  # type: ignore[no-redef]
        """Declares an attribute where the framework is installed."""


if TYPE_CHECKING:
    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool

SOURCE = "llama-index"
_ROLES = {"user": "user", "assistant": "assistant", "model": "assistant", "chatbot": "assistant",
          "tool": "tool", "function": "tool"}  # fmt: skip
# The field of a session's row that counts its archived messages, which come first.
_ARCHIVED = "llama_archived"
_PAGE = 500


class MemorandaChatStore(AsyncDBChatStore):
    """A chat store for `Memory.from_defaults(chat_store=…)`: each key is a conversation of the record.

    A message is durable when the call returns. Archived messages have left the short-term memory and are still found.
    """

    _memory: Any = PrivateAttr()

    def __init__(self, memory: "Memory") -> None:
        super().__init__()
        self._memory = memory

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex serializes the class by."""
        return "MemorandaChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """The messages of a conversation that are active, or archived, or all for None."""
        return await blocking_calls.read(self._get, key, status, limit, offset)

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages a conversation has."""
        return len(await self.get_messages(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        await self.add_messages(key, [message], status)

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace the active or the archived messages; the store's `restore_replaced` undoes it."""
        await blocking_calls.run_to_end(self._set, key, messages, status)

    @blocking_calls.asynchronous
    def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Record messages, all of them or none."""
        if not _is_active(status):
            self._set(key, [*self._get(key, status, None, None), *messages], status)
        else:
            self._session(key).append([_message(message) for message in messages])

    @blocking_calls.asynchronous
    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Take an active message out of the conversation by its number, and return it."""
        stored, archived = self._read(key)
        if not 0 <= idx < len(stored) - archived:
            return None
        removed = stored[archived + idx]
        self._replace(key, stored, [_copy(message) for message in stored if message is not removed], archived)
        return _chat_message(removed)

    @blocking_calls.asynchronous
    def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Take the messages out of the conversation; the store's `restore_replaced` undoes it."""
        stored, _ = self._read(key)
        if stored and status is None:
            self._replace(key, stored, [], 0)
        elif stored and status is not None:
            self._set(key, [], status)

    @blocking_calls.asynchronous
    def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Take the oldest active messages out of the conversation, and return them."""
        stored, archived = self._read(key)
        removed = stored[archived : archived + n]
        if removed:
            rows = [*stored[:archived], *stored[archived + n :]]
            self._replace(key, stored, [_copy(message) for message in rows], archived)
        return [_chat_message(message) for message in removed]

    @blocking_calls.asynchronous
    def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and return them."""
        stored, archived = self._read(key)
        moved = stored[archived : archived + n]
        if moved:
            self._memory.sessions.set_extra_fields(self._session(key).id, **{_ARCHIVED: archived + len(moved)})
        return [_chat_message(message) for message in moved]

    @blocking_calls.asynchronous
    def get_keys(self) -> list[str]:
        """The conversations that have messages."""
        if not self._memory.services.has_record:
            return []
        prefix, rows = join_names(SOURCE, self._memory.user), list[dict[str, Any]]()
        while page := self._memory.sessions.list_sessions_with_prefix(
            prefix, _PAGE, after=rows[-1]["id"] if rows else None
        ):
            rows += page
        return [split_names(row["id"])[0] for row in rows if row["message_count"]]

    def _session(self, key: str) -> RecordedSession:
        return RecordedSession.of(self._memory, SOURCE, key)

    def _read(self, key: str) -> tuple[list[dict[str, Any]], int]:
        """The messages of a conversation, and how many of them are archived."""
        session = self._session(key)
        messages = answer_calls(session.messages(), call_ids, result_ids, _interrupted)
        return messages, min(int((session.row() or {}).get(_ARCHIVED) or 0), len(messages))

    def _get(self, key: str, status: MessageStatus | None, limit: int | None, offset: int | None) -> list[ChatMessage]:
        messages, archived = self._read(key)
        wanted = messages if status is None else messages[archived:] if _is_active(status) else messages[:archived]
        start = offset or 0
        return [_chat_message(each) for each in wanted[start : None if limit is None else start + limit]]

    def _set(self, key: str, messages: list[ChatMessage], status: MessageStatus) -> None:
        stored, archived = self._read(key)
        rows = [_message(message) for message in messages]
        current = stored[archived:] if _is_active(status) else stored[:archived]
        unchanged = [_chat_message(message) for message in current] == messages[: len(current)]
        if unchanged and _is_active(status):
            self._session(key).append(rows[len(current) :])
        elif _is_active(status):
            self._replace(key, stored, [*map(_copy, stored[:archived]), *rows], archived)
        else:
            self._replace(key, stored, [*rows, *map(_copy, stored[archived:])], len(rows))

    def _replace(self, key: str, stored: list[dict[str, Any]], rows: list[dict[str, Any]], archived: int) -> None:
        session = self._session(key)
        # What was added for an interrupted call has no id.
        last_seen = max((message["id"] for message in stored if "id" in message), default=0)
        session.replace(rows, last_seen=last_seen, **{_ARCHIVED: archived})


class MemorandaBlock(BaseMemoryBlock[str]):  # type: ignore[misc]
    """A memory block: relevant earlier conversations for the user's latest message, within a deadline.

    With `insert_method="user"` they are added to that message, so nothing before it changes. All model calls of a turn
    get the same, and only the first one searches. What LlamaIndex moves out of its short-term memory is not recorded by
    this block, because `MemorandaChatStore` has it already.
    """

    name: str = "earlier_conversations"
    accept_short_term_memory: bool = False
    seconds: float = prompt_recall.RECALL_SECONDS
    _memory: Any = PrivateAttr()

    def __init__(self, memory: "Memory", **fields: Any) -> None:
        """`fields` are those of a memory block; after `seconds` the model is called without what would be recalled."""
        super().__init__(**fields)
        self._memory = memory

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        prompts = [message.content or "" for message in messages or [] if message.role == "user"]
        if not prompts:
            return ""
        session = RecordedSession.of(self._memory, SOURCE, str(block_kwargs.get("session_id") or ""))
        while len(prompts) > 1 and prompts[-1] == prompts[-2]:
            # After a call of a tool, agents pass the user's message in addition to the history, which has it already.
            prompts.pop()
        # The last prompt, by its position: all model calls of one turn have it, and the next turn has another one.
        turn = (len(prompts), prompts[-1])
        return await blocking_calls.read(session.recall, prompts[-1], self.seconds, turn)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Nothing to do: the chat store has recorded the messages."""


def memory_tools(memory: "Memory", session_id: str | None = None) -> list[FunctionTool]:
    """The memory tools, and those of the providers, as function tools of LlamaIndex.

    With the session, what the user says in it supports what the model wants to remember.
    """
    session = RecordedSession.of(memory, SOURCE, *([] if session_id is None else [session_id]))

    def wrap(tool: "Tool") -> FunctionTool:
        def call(**arguments: Any) -> str:
            return session.call(tool.name, arguments)

        async def call_async(**arguments: Any) -> str:
            return await blocking_calls.run_to_end(session.call, tool.name, arguments)

        return FunctionTool(call, _Metadata(tool), call_async)

    return [wrap(tool) for tool in session.tools]


class _Metadata(ToolMetadata):
    """What a model learns about a tool: its own schema, not one made from a function."""

    def __init__(self, tool: "Tool") -> None:
        super().__init__(tool.description, tool.name)
        self._parameters = tool.parameters

    def get_parameters_dict(self) -> dict[str, Any]:
        return dict(self._parameters)


def _is_active(status: MessageStatus) -> bool:
    return bool(status == MessageStatus.ACTIVE)


def _message(message: ChatMessage) -> dict[str, Any]:
    original = message.model_dump(mode="json")
    fields: dict[str, Any] = {}
    extra = original.get("additional_kwargs") or {}
    calls = [block for block in original["blocks"] if block.get("block_type") == "tool_call"]
    if calls:
        fields["tool_calls"] = [
            tool_call(each.get("tool_call_id"), each.get("tool_name"), each.get("tool_kwargs")) for each in calls
        ]
    if isinstance(extra.get("tool_call_id"), str):
        fields["tool_call_id"] = extra["tool_call_id"]
    return as_message(original, _ROLES.get(original["role"], "system"), ("blocks",), **fields)


def _interrupted(_call: Mapping[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    return [
        _message(ChatMessage(role="tool", content=INTERRUPTED_CALL, additional_kwargs={"tool_call_id": each}))
        for each in ids
    ]


def _chat_message(message: Mapping[str, Any]) -> ChatMessage:
    """The message as LlamaIndex knows it; one that another program recorded has its role and its text."""
    original = original_of(message)
    if original is not None:
        return ChatMessage.model_validate(original)
    return ChatMessage(role=message["role"], content=str(message["content"] or ""))


def _copy(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as it was recorded, to be recorded again in a replaced conversation."""
    return _message(_chat_message(message))
