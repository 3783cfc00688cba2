"""LangChain and LangGraph: memory for an agent of `create_agent`, or for a chain, in one line.

    agent = create_agent(model, middleware=[MemorandaMiddleware(memory)], checkpointer=MemorandaSaver(memory))
    chain = RunnableWithMessageHistory(add_recall(memory) | model, lambda name: MemorandaChatHistory(name, memory))

The middleware needs the package langchain, the rest langchain-core (extra `langchain`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import StructuredTool

from memoranda.integrations.frameworks import blocking_calls, langchain_history, prompt_recall
from memoranda.integrations.frameworks.langchain_history import THREADS, record_thread
from memoranda.integrations.frameworks.missing_framework import missing_framework
from memoranda.integrations.frameworks.recorded_session import RecordedSession
from memoranda.memory.record.message_rows import text_of

try:
    from langchain.agents.middleware import AgentMiddleware
except ModuleNotFoundError as error:
    AgentMiddleware = missing_framework("langchain", error)
try:
    from langgraph.config import get_config
except ModuleNotFoundError as error:
    get_config = missing_framework("langgraph", error)

if TYPE_CHECKING:
    from memoranda.api.memory import Memory
    from memoranda.support.tool import Tool


class MemorandaMiddleware(AgentMiddleware):
    """Middleware of `create_agent`: each thread is a conversation of the record, with recall, prompt and tools.

    What the user says is durable before the model is called, and what the model says before the next step. Curated
    memory is part of the system prompt and stays the same for a thread. What is recalled is added to the request only.
    """

    def __init__(self, memory: "Memory", *, seconds: float = prompt_recall.RECALL_SECONDS, tools: bool = True) -> None:
        """After `seconds` the model is called without what would be recalled."""
        super().__init__()
        self._memory = memory
        self._seconds = seconds
        self.tools = memory_tools(memory) if tools else []

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Record what was said so far, and call the model with memory."""
        return handler(self._with_memory(request, _thread(self._memory, get_config())))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call` outside the event loop."""
        session = _thread(self._memory, get_config())
        return await handler(await blocking_calls.run_to_end(self._with_memory, request, session))

    def after_model(self, state: Any, runtime: Any) -> None:
        """Record what the model said."""
        record_thread(_thread(self._memory, get_config()), state["messages"])

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """`after_model` outside the event loop."""
        await blocking_calls.run_to_end(record_thread, _thread(self._memory, get_config()), state["messages"])

    def _with_memory(self, request: Any, session: RecordedSession) -> Any:
        record_thread(session, request.state["messages"])
        said = request.system_message.content if request.system_message else ""
        # Without a thread, nothing says that a later call is of the same conversation.
        if prompt := session.prompt() if session.is_known else prompt_recall.memory_prompt(self._memory):
            text = {"type": "text", "text": prompt}
            said = [*said, text] if isinstance(said, list) else f"{said}\n\n{prompt}".strip()
        return request.override(
            system_message=SystemMessage(said) if said else None,
            messages=_with_recall(request.messages, session, self._seconds),
        )


def add_recall(
    memory: "Memory", *, seconds: float = prompt_recall.RECALL_SECONDS
) -> "Runnable[Any, list[BaseMessage]]":
    """A step of a chain before its model: the user's message gets what is recalled for it.

    In a `RunnableWithMessageHistory` it knows the conversation by its `session_id`; the history keeps the message as
    it was.
    """

    def add(value: Any, config: RunnableConfig) -> list[BaseMessage]:
        names = [str(config["configurable"][name]) for name in ("session_id",) if name in config["configurable"]]
        session = RecordedSession.of(memory, langchain_history.SOURCE, *names)
        return _with_recall(value.to_messages() if isinstance(value, PromptValue) else value, session, seconds)

    async def add_async(value: Any, config: RunnableConfig) -> list[BaseMessage]:
        return await blocking_calls.read(add, value, config)

    return RunnableLambda(add, add_async)


def memory_tools(memory: "Memory") -> list[StructuredTool]:
    """The memory tools, and those of the providers, as tools of LangChain; a call acts in the thread of its graph."""

    def wrap(tool: "Tool") -> StructuredTool:
        def call(config: RunnableConfig, **arguments: Any) -> str:
            return _thread(memory, config).call(tool.name, arguments)

        async def call_async(config: RunnableConfig, **arguments: Any) -> str:
            return await blocking_calls.run_to_end(_thread(memory, config).call, tool.name, arguments)

        return StructuredTool(
            name=tool.name, description=tool.description, args_schema=tool.parameters, func=call, coroutine=call_async
        )

    return [wrap(tool) for tool in RecordedSession.of(memory, THREADS).tools]


def _thread(memory: "Memory", config: RunnableConfig) -> RecordedSession:
    thread = (config.get("configurable") or {}).get("thread_id")
    return RecordedSession.of(memory, THREADS, *([] if thread is None else [str(thread)]))


def _with_recall(messages: Sequence[BaseMessage], session: RecordedSession, seconds: float) -> list[BaseMessage]:
    """A copy of the messages with what is recalled at the end of the user's latest message."""
    copied = list(messages)
    asked = [number for number, message in enumerate(copied) if isinstance(message, HumanMessage)]
    if not asked:
        return copied
    content = copied[asked[-1]].content
    prompt = text_of(content)
    if block := session.recall(prompt, seconds, (len(asked), prompt)):
        parts = [*content, {"type": "text", "text": block}] if isinstance(content, list) else f"{content}\n\n{block}"
        copied[asked[-1]] = copied[asked[-1]].model_copy(update={"content": parts})
    return copied
