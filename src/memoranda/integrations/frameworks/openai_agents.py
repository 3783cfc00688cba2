"""OpenAI Agents SDK: a session whose items are messages of the record, recall for its prompts, and the memory tools.

    session = MemorandaSession("conversation-1", memory)
    agent = Agent(name="Assistant", instructions=session.prompt(), tools=memory_tools(memory, session))
    config = RunConfig(call_model_input_filter=add_recall(memory, session))
    await Runner.run(agent, "…", session=session, run_config=config)

Needs the package openai-agents (extra `openai-agents`).
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.recorded_session import RecordedSession, answer_calls, as_message, tool_call
from memoranda.memory.record.framework_objects import original_of
from memoranda.memory.record.message_rows import text_of

if TYPE_CHECKING:
    from agents import FunctionTool, SessionSettings, TResponseInputItem
    from agents.run_config import CallModelData, ModelInputData

    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool

SOURCE = "openai-agents"
# Calls whose result is a text.
_CALLS = ("function_call", "custom_tool_call")
_ROLES = ("user", "assistant", "system", "developer", "tool")


class MemorandaSession:
    """A `Session` of the SDK; its items are durable when `add_items` returns, and come back as they were.

    Two objects with the same id, in any process, are the same conversation. A secret in an item is replaced, as
    everywhere in the record.
    """

    def __init__(
        self, session_id: str, memory: "Memory", *, session_settings: "SessionSettings | dict[str, Any] | None" = None
    ) -> None:
        """`session_settings` are those of the SDK; their `limit` is how many items a run gets of the history."""
        from agents.memory.session_settings import SessionSettings, coerce_session_settings  # noqa: PLC0415

        self.session_id = session_id
        self.session_settings: SessionSettings | None = (
            SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        )
        self.recorded = RecordedSession.of(memory, SOURCE, session_id)
        self._memory = memory

    @property
    def record_id(self) -> str:
        return self.recorded.id

    def prompt(self) -> str:
        """Curated memory for the instructions, as it was when the conversation began."""
        return self.recorded.prompt()

    async def get_items(self, limit: int | None = None) -> "list[TResponseInputItem]":
        """The items of the conversation in their order; with a limit, the latest ones."""
        from agents.memory.session_settings import resolve_session_limit  # noqa: PLC0415

        return await blocking_calls.read(self._read, resolve_session_limit(limit, self.session_settings))

    async def add_items(self, items: "list[TResponseInputItem]") -> None:
        """Record items, all of them or none."""
        if items:
            await blocking_calls.run_to_end(self.recorded.append, [_message(dict(item)) for item in items])

    @blocking_calls.asynchronous
    def pop_item(self) -> "TResponseInputItem | None":
        """Take back the latest item and return it; None when there is none. The store's `restore_rewound` undoes it."""
        message = self._memory.sessions.pop_message(self.record_id) if self.recorded.row() is not None else None
        return cast("TResponseInputItem", _item(message)) if message is not None else None

    @blocking_calls.asynchronous
    def clear_session(self) -> None:
        """Take all items out of the conversation; `restore_replaced` of the store undoes it."""
        if self.recorded.row() is not None:
            self.recorded.replace([])

    def close(self) -> None:
        """Nothing to do: every item was durable when it was added, and closing the memory closes the rest."""

    def _read(self, limit: int | None) -> Any:
        if limit is not None and limit <= 0:
            return []
        items = [item for message in self.recorded.messages() if (item := _item(message)) is not None]
        found = answer_calls(items, _call_ids, _result_ids, _interrupted)
        return found if limit is None else found[-limit:]


def add_recall(
    memory: "Memory", session: MemorandaSession | None = None, *, seconds: float = prompt_recall.RECALL_SECONDS
) -> "Callable[[CallModelData[Any]], Awaitable[ModelInputData]]":
    """A `call_model_input_filter`: the model reads what is relevant to the user's message in a copy of that message.

    The session keeps the message as it was; the `session` itself is not recalled. All calls of one turn get the same.
    """
    recorded = _recorded(memory, session)

    async def add(data: "CallModelData[Any]") -> "ModelInputData":
        items: list[Any] = list(data.model_data.input)
        number = max((index for index, item in enumerate(items) if item.get("role") == "user"), default=None)
        if number is None:
            return data.model_data
        prompt = text_of(items[number].get("content"))
        if recalled := await blocking_calls.read(recorded.recall, prompt, seconds, (number, prompt)):
            items[number] = _with_block(items[number], recalled)
        return type(data.model_data)(input=items, instructions=data.model_data.instructions)

    return add


def memory_tools(memory: "Memory", session: MemorandaSession | None = None) -> "list[FunctionTool]":
    """The memory tools, and those of the providers, as function tools of the SDK.

    With the session, what the user says in it supports what the model wants to remember.
    """
    from agents import FunctionTool  # noqa: PLC0415

    recorded = _recorded(memory, session)

    def wrap(tool: "Tool") -> "FunctionTool":
        async def call(context: Any, arguments: str) -> str:
            try:
                parsed = json.loads(arguments or "{}")
            except ValueError:
                parsed = None  # The tool answers that its arguments are not usable.
            return await blocking_calls.run_to_end(recorded.call, tool.name, parsed)

        return FunctionTool(tool.name, tool.description, tool.parameters, call, strict_json_schema=False)

    return [wrap(tool) for tool in recorded.tools]


def _recorded(memory: "Memory", session: MemorandaSession | None) -> RecordedSession:
    return RecordedSession.of(memory, SOURCE) if session is None else session.recorded


def _with_block(item: dict[str, Any], block: str) -> dict[str, Any]:
    """A copy of a user's message with a block at its end."""
    content = item.get("content")
    if isinstance(content, list):
        return {**item, "content": [*content, {"type": "input_text", "text": block}]}
    return {**item, "content": f"{content}\n\n{block}"}


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """An item as a message: who said it, and its text; calls are stored so that a search finds their arguments."""
    kind, role = str(item.get("type") or "message"), item.get("role")
    if kind == "function_call":
        call = tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        return as_message(item, "assistant", tool_calls=[call])
    if "output" in item and kind.endswith("_output"):
        call_id = item.get("call_id")
        return as_message(item, "tool", ("output",), **({"tool_call_id": call_id} if isinstance(call_id, str) else {}))
    stored_role = role if role in _ROLES else "assistant"
    return as_message(item, str(stored_role), ("content",) if "content" in item else ())


def _call_ids(item: Mapping[str, Any]) -> list[str]:
    call_id = item.get("call_id") if item.get("type") in _CALLS else None
    return [call_id] if isinstance(call_id, str) else []


def _result_ids(item: Mapping[str, Any]) -> list[str]:
    call_id = item.get("call_id") if str(item.get("type")).endswith("_output") else None
    return [call_id] if isinstance(call_id, str) else []


def _interrupted(item: Mapping[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": f"{item['type']}_output", "call_id": each, "output": INTERRUPTED_CALL} for each in ids]


def _item(message: Mapping[str, Any]) -> Any:
    """The item of a message; one that another program recorded in the conversation is a plain message."""
    item = original_of(message)
    if item is None and message.get("content") is not None and message["role"] in _ROLES[:4]:
        return {"role": message["role"], "content": message["content"]}
    return item
