"""Microsoft Agent Framework: the history of its sessions in Memoranda, and curated memory, recall and tools as context.

    agent = Agent(client, context_providers=[MemorandaHistory(memory), MemorandaContext(memory)])
    answer = await agent.run("When do we open?", session=agent.create_session(session_id="oven"))

Needs the package agent-framework-core, which agent-framework installs (extra `agent-framework`).
"""

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import RecordedSession, answer_calls, as_message, tool_call
from memoranda.memory.record.framework_objects import original_of

try:
    from agent_framework import Content, ContextProvider, FunctionTool, HistoryProvider, Message
except ModuleNotFoundError as error:
    Content = ContextProvider = FunctionTool = HistoryProvider = Message = missing_framework("agent-framework", error)

if TYPE_CHECKING:
    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool

SOURCE = "agent-framework"
_ROLES = ("user", "assistant", "system", "tool")
# In the state of a run: its input is recorded already.
_RECORDED = "input_is_recorded"


class MemorandaHistory(HistoryProvider):
    """A `HistoryProvider`: what the user says is durable before the model is called, the answer when the run ends."""

    def __init__(self, memory: "Memory", source_id: str = "memoranda_history", **options: Any) -> None:
        """The options are those of `HistoryProvider`."""
        super().__init__(source_id, **options)
        self._memory = memory

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        messages = await blocking_calls.read(_session(self._memory, session_id).messages)
        found = [each for message in messages if (each := _framework_message(message)) is not None]
        return answer_calls(
            found, partial(_ids, kind="function_call"), partial(_ids, kind="function_result"), _interrupted
        )

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Record messages, all of them or none."""
        rows = [_message(message) for message in messages]
        await blocking_calls.run_to_end(_session(self._memory, session_id).append, rows)

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Load the history, then record what the user says, so that a failing model does not lose it."""
        await super().before_run(agent=agent, session=session, context=context, state=state)
        if self.store_inputs and context.input_messages:
            await self.save_messages(context.session_id, context.input_messages, state=state)
            state[_RECORDED] = True

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Record the answer, and the input if it is not recorded yet."""
        if state.pop(_RECORDED, False):
            context = copy.copy(context)
            context.input_messages = []
        await super().after_run(agent=agent, session=session, context=context, state=state)


class MemorandaContext(ContextProvider):
    """A `ContextProvider`: curated memory as instructions, relevant earlier conversations, and the memory tools.

    The instructions stay the same for a session. What is recalled comes after the history and is not stored with it.
    """

    def __init__(
        self,
        memory: "Memory",
        source_id: str = "memoranda",
        *,
        seconds: float = prompt_recall.RECALL_SECONDS,
        tools: bool = True,
    ) -> None:
        """After `seconds` the model is called without what would be recalled."""
        super().__init__(source_id)
        self._memory = memory
        self._seconds = seconds
        self._tools = tools

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Add instructions, what is recalled, and tools to the context of a run."""
        recorded = _session(self._memory, context.session_id)
        if prompt := await blocking_calls.run_to_end(recorded.prompt):
            context.extend_instructions(self.source_id, prompt)
        question = "\n".join(message.text for message in context.input_messages if message.role == "user")
        if block := await blocking_calls.read(recorded.recall, question, self._seconds):
            context.extend_messages(self, [Message("user", [block])])
        if self._tools:
            context.extend_tools(self.source_id, await blocking_calls.read(_tools_of, recorded))


def memory_tools(memory: "Memory") -> list[FunctionTool]:
    """The memory tools, and those of the providers, as function tools of the framework."""
    return _tools_of(RecordedSession.of(memory, SOURCE))


def _tools_of(session: RecordedSession) -> list[FunctionTool]:
    def wrap(tool: "Tool") -> FunctionTool:
        async def call(**arguments: Any) -> str:
            return await blocking_calls.run_to_end(session.call, tool.name, arguments)

        return FunctionTool(name=tool.name, description=tool.description, func=call, input_model=tool.parameters)

    return [wrap(tool) for tool in session.tools]


def _session(memory: "Memory", session_id: str | None) -> RecordedSession:
    return RecordedSession.of(memory, SOURCE, session_id or "")


def _message(message: Message) -> dict[str, Any]:
    original = message.to_dict()
    contents: list[dict[str, Any]] = original["contents"]
    path: tuple[str | int, ...] = ("contents",)
    fields: dict[str, Any] = {}
    role = original["role"] if original["role"] in _ROLES else "assistant"
    if results := [part for part in contents if part.get("type") == "function_result"]:
        role, fields["tool_call_id"] = "tool", results[0].get("call_id")
        if len(contents) == 1 and isinstance(results[0].get("result"), str):
            path = ("contents", 0, "result")
    if calls := [part for part in contents if part.get("type") == "function_call"]:
        fields["tool_calls"] = [
            tool_call(each.get("call_id"), each.get("name"), each.get("arguments")) for each in calls
        ]
    return as_message(original, role, path, **fields)


def _ids(message: Message, kind: str) -> list[str]:
    return [part.call_id for part in message.contents if part.type == kind and part.call_id]


def _interrupted(_message: Message, ids: Sequence[str]) -> list[Message]:
    return [Message("tool", [Content.from_function_result(each, result=INTERRUPTED_CALL) for each in ids])]


def _framework_message(message: Mapping[str, Any]) -> Message | None:
    """The message as the framework knows it; one that another program recorded has its role and its text."""
    original = original_of(message)
    if original is not None:
        return Message.from_dict(original)
    if message["role"] in _ROLES[:3] and message["content"] is not None:
        return Message(message["role"], [str(message["content"])])
    return None
