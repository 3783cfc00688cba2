"""Pydantic AI: a capability that records runs, recalls earlier conversations, and offers curated memory and the tools.

    agent = Agent(model, capabilities=[MemorandaCapability(memory)])
    history = await load_history(memory, "oven")
    result = await agent.run("When do we open?", conversation_id="oven", message_history=history)

Needs the package pydantic-ai-slim or pydantic-ai (extra `pydantic-ai`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memoranda.agent.model_messages import INTERRUPTED_CALL
from memoranda.integrations.frameworks import blocking_calls, prompt_recall
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import RecordedSession, answer_calls, as_message, tool_call
from memoranda.memory.record.framework_objects import original_of

try:
    from pydantic_ai import FunctionToolset, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        TextPart,
        ToolReturnPart,
        UserPromptPart,
    )
except ModuleNotFoundError as error:
    _missing = missing_framework("pydantic-ai", error)
    AbstractCapability = FunctionToolset = Tool = _missing
    ModelMessage = ModelMessagesTypeAdapter = ModelRequest = ModelResponse = TextPart = UserPromptPart = _missing
    RetryPromptPart = ToolReturnPart = _missing

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool as MemoryTool

SOURCE = "pydantic-ai"


@dataclass
class MemorandaCapability(AbstractCapability[Any]):
    """Memory of an agent: each run is recorded in the session of its `conversation_id`.

    A request is durable before the model is called, and a response before the next step. Curated memory is part of the
    instructions and stays the same for a conversation. What is recalled is added to the request that is sent, never to
    the history.
    """

    memory: "Memory"
    _: KW_ONLY
    seconds: float = prompt_recall.RECALL_SECONDS
    tools: bool = True
    _run: "_Run | None" = field(default=None, repr=False)

    async def for_run(self, ctx: "RunContext[Any]") -> AbstractCapability[Any]:
        """A copy with the instructions of the conversation, and what belongs to one run."""
        session = RecordedSession.of(self.memory, SOURCE, str(ctx.conversation_id))
        return replace(self, _run=_Run(session, await blocking_calls.run_to_end(session.prompt)))

    def get_instructions(self) -> str | None:
        """Curated memory as it was when the conversation began."""
        return self._run.prompt or None if self._run is not None else None

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The memory tools and those of the providers, unless they are switched off."""
        session = RecordedSession.of(self.memory, SOURCE) if self._run is None else self._run.session
        return FunctionToolset([_tool(session, tool) for tool in session.tools]) if self.tools else None

    async def before_model_request(
        self, ctx: "RunContext[Any]", request_context: "ModelRequestContext"
    ) -> "ModelRequestContext":
        """Record what the model is about to be sent, and add what is recalled to the request only."""
        await self._record(ctx, ctx.messages)
        if self._run is None:
            return request_context
        if self._run.recalled is None:
            search = self._run.session.recall
            self._run.recalled = await blocking_calls.read(search, _text(ctx.prompt), self.seconds)
        if self._run.recalled:
            request_context.messages = _with_block(request_context.messages, self._run.recalled)
        return request_context

    async def after_node_run(self, ctx: "RunContext[Any]", *, node: Any, result: Any) -> Any:
        """Record the response before its tools are called."""
        await self._record(ctx, ctx.messages)
        return result

    async def after_run(self, ctx: "RunContext[Any]", *, result: "AgentRunResult[Any]") -> "AgentRunResult[Any]":
        """Record what the steps of the run have not, as those of a stream."""
        await self._record(ctx, result.all_messages())
        return result

    async def _record(self, ctx: "RunContext[Any]", messages: Sequence[ModelMessage]) -> None:
        if self._run is None:
            return
        of_run = [message for message in messages if message.run_id == ctx.run_id]
        recorded = self._run.recorded
        rows = [_message(each, f"{ctx.run_id}/{number}") for number, each in enumerate(of_run) if number >= recorded]
        await blocking_calls.run_to_end(self._run.session.append, rows)
        self._run.recorded = max(recorded, len(of_run))


@dataclass
class _Run:
    session: RecordedSession
    prompt: str
    recalled: str | None = None
    recorded: int = 0


async def load_history(memory: "Memory", conversation_id: str, *, deferred: bool = False) -> list[ModelMessage]:
    """The messages of a conversation, for `message_history`; none of one that is new.

    Instructions are not part of it: the agent adds its own to each request. A call that was interrupted gets a result
    that says so, without which the next prompt would be refused; with `deferred`, calls keep waiting for the
    `deferred_tool_results` of the next run.
    """
    session = RecordedSession.of(memory, SOURCE, conversation_id)
    messages = await blocking_calls.read(session.messages)
    found = [each for message in messages if (each := _model_message(message)) is not None]
    return found if deferred else answer_calls(found, _call_ids, _result_ids, _interrupted)


def _tool(session: RecordedSession, tool: "MemoryTool") -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        return await blocking_calls.run_to_end(session.call, tool.name, arguments)

    return Tool.from_schema(call, tool.name, tool.description, tool.parameters)


def _with_block(messages: Sequence[ModelMessage], block: str) -> list[ModelMessage]:
    """A copy of the messages with a block at the end of the user's latest prompt."""
    copied = list(messages)
    for number in reversed(range(len(copied))):
        message = copied[number]
        if not isinstance(message, ModelRequest):
            continue
        prompts = [index for index, part in enumerate(message.parts) if isinstance(part, UserPromptPart)]
        if prompts:
            parts: list[Any] = list(message.parts)
            parts.insert(prompts[-1] + 1, UserPromptPart(block))
            copied[number] = replace(message, parts=parts)
            return copied
    return copied


def _text(prompt: Any) -> str:
    """The text of a prompt, which may have images and other parts."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return "\n".join(part for part in prompt if isinstance(part, str))


def _message(message: ModelMessage, external_id: str) -> dict[str, Any]:
    (original,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    original.pop("instructions", None)
    fields: dict[str, Any] = {"external_id": external_id}
    if isinstance(message, ModelResponse):
        calls = [tool_call(each.tool_call_id, each.tool_name, each.args) for each in message.tool_calls]
        return as_message(original, "assistant", ("parts",), **({"tool_calls": calls} if calls else {}), **fields)
    kinds = [part.part_kind for part in message.parts]
    role = "user" if "user-prompt" in kinds else "system" if kinds == ["system-prompt"] else "tool"
    call_ids = [part["tool_call_id"] for part in original["parts"] if part.get("tool_call_id")]
    return as_message(original, role, ("parts",), **({"tool_call_id": call_ids[0]} if call_ids else {}), **fields)


def _call_ids(message: ModelMessage) -> list[str]:
    return [call.tool_call_id for call in message.tool_calls] if isinstance(message, ModelResponse) else []


def _result_ids(message: ModelMessage) -> list[str]:
    if not isinstance(message, ModelRequest):
        return []
    return [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart | RetryPromptPart)]


def _interrupted(message: ModelMessage, ids: Sequence[str]) -> list[ModelMessage]:
    names = {call.tool_call_id: call.tool_name for call in message.tool_calls}
    return [ModelRequest([ToolReturnPart(names[each], INTERRUPTED_CALL, each) for each in ids])]


def _model_message(message: Mapping[str, Any]) -> ModelMessage | None:
    """The message as Pydantic AI knows it; one that another program recorded has its role and its text."""
    original = original_of(message)
    if original is not None:
        return ModelMessagesTypeAdapter.validate_python([original])[0]
    if message["role"] == "user":
        return ModelRequest([UserPromptPart(str(message["content"] or ""))])
    return ModelResponse([TextPart(str(message["content"] or ""))]) if message["role"] == "assistant" else None
