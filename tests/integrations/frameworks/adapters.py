"""One turn of each framework with our adapter for it, for the contract of all adapters.

A function asks a question in a conversation, as the page of the framework shows it, and returns what the model was
sent. The model answers with `reply`, or fails with it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, NamedTuple, cast

import pytest

import memoranda
from memoranda.models.model import Reply as ModelReply
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Refuse
from tests.timing import GIVE_UP

Reply = str | Exception


class Request(NamedTuple):
    """What a model was sent: the messages, and the names of the tools."""

    messages: str
    tools: list[str]


def openai_agents(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("agents", reason="the package openai-agents is not installed")
    from agents import Agent, RunConfig, Runner
    from agents.models.interface import Model
    from agents.testing import ScriptedModel
    from openai.types.responses import ResponseOutputMessage

    from memoranda.integrations.frameworks.openai_agents import MemorandaSession, add_recall, memory_tools

    part = {"type": "output_text", "text": str(reply), "annotations": []}
    answer = {"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [part]}
    model = ScriptedModel()
    model.enqueue(reply if isinstance(reply, Exception) else [ResponseOutputMessage.model_validate(answer)])
    session = MemorandaSession(conversation, memory)
    agent = Agent(name="baker", model=cast("Model", model), tools=[*memory_tools(memory, session)])
    config = RunConfig(call_model_input_filter=cast("Any", add_recall(memory, session, seconds=GIVE_UP)))
    asyncio.run(_passing(Runner.run(agent, question, session=session, run_config=config), reply))
    return Request(str(model.calls[-1].input), [tool.name for tool in model.calls[-1].tools])


def langgraph(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("langchain.agents", reason="the package langchain is not installed")
    from langchain.agents import create_agent

    from memoranda.integrations.frameworks.langchain_agent import MemorandaMiddleware
    from memoranda.integrations.frameworks.langgraph import MemorandaSaver

    model = _langchain_model(reply)
    middleware = [MemorandaMiddleware(memory, seconds=GIVE_UP)]
    agent = create_agent(model, middleware=middleware, checkpointer=MemorandaSaver(memory))
    asked: Any = {"messages": [{"role": "user", "content": question}]}
    asyncio.run(_passing(agent.ainvoke(asked, {"configurable": {"thread_id": conversation}}), reply))
    return Request(model.sent[-1], model.offered)


def langgraph_in_threads(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    """The same without asyncio, and with a checkpointer of LangGraph: the middleware alone."""
    pytest.importorskip("langchain.agents", reason="the package langchain is not installed")
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from memoranda.integrations.frameworks.langchain_agent import MemorandaMiddleware

    model = _langchain_model(reply)
    middleware = [MemorandaMiddleware(memory, seconds=GIVE_UP)]
    agent = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    asked: Any = {"messages": [{"role": "user", "content": question}]}
    try:
        agent.invoke(asked, {"configurable": {"thread_id": conversation}})
    except RuntimeError:
        assert isinstance(reply, Exception)
    return Request(model.sent[-1], model.offered)


def langchain(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("langchain_core", reason="the package langchain-core is not installed")
    from langchain_core.runnables.history import RunnableWithMessageHistory

    from memoranda.integrations.frameworks.langchain_agent import add_recall, memory_tools
    from memoranda.integrations.frameworks.langchain_history import MemorandaChatHistory

    model = _langchain_model(reply)
    chain = RunnableWithMessageHistory(
        add_recall(memory, seconds=GIVE_UP) | model.bind_tools(memory_tools(memory)),
        lambda session_id: MemorandaChatHistory(session_id, memory),
    )
    asyncio.run(_passing(chain.ainvoke(question, {"configurable": {"session_id": conversation}}), reply))
    return Request(model.sent[-1], model.offered)


def _langchain_model(reply: Reply) -> Any:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Scripted(BaseChatModel):
        sent: list[str]
        offered: list[str]

        @property
        def _llm_type(self) -> str:
            return "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> Any:
            self.offered = [tool.name for tool in tools]
            return self

        def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            self.sent.append(str(messages))
            if isinstance(reply, Exception):
                raise reply
            return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])

    return Scripted(sent=[], offered=[])


def pydantic_ai(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("pydantic_ai", reason="the package pydantic-ai-slim is not installed")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from memoranda.integrations.frameworks.pydantic_ai import MemorandaCapability, load_history

    sent: list[Request] = []

    def respond(messages: Any, info: Any) -> ModelResponse:
        sent.append(Request(str(messages), [tool.name for tool in info.function_tools]))
        if isinstance(reply, Exception):
            raise reply
        return ModelResponse([TextPart(reply)])

    async def ask() -> None:
        agent = Agent(FunctionModel(respond), capabilities=[MemorandaCapability(memory, seconds=GIVE_UP)])
        history = await load_history(memory, conversation)
        await _passing(agent.run(question, conversation_id=conversation, message_history=history), reply)

    asyncio.run(ask())
    return sent[-1]


def agent_framework(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("agent_framework", reason="the package agent-framework-core is not installed")
    from agent_framework import Agent, BaseChatClient, ChatResponse, Message

    from memoranda.integrations.frameworks.agent_framework import MemorandaContext, MemorandaHistory

    sent: list[Request] = []

    class Client(BaseChatClient):  # type: ignore[misc,type-arg]
        async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            text = str([part.to_dict() for each in messages for part in each.contents])
            sent.append(Request(text, [tool.name for tool in options.get("tools") or []]))
            if isinstance(reply, Exception):
                raise reply
            return ChatResponse(messages=Message("assistant", [reply]))

    providers = [MemorandaHistory(memory), MemorandaContext(memory, seconds=GIVE_UP)]
    agent: Any = Agent(Client(), context_providers=providers)
    asyncio.run(_passing(agent.run(question, session=agent.create_session(session_id=conversation)), reply))
    return sent[-1]


def google_adk(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    """ADK names the user in each call, and takes a memory without one."""
    pytest.importorskip("google.adk", reason="the package google-adk is not installed")
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import Runner
    from google.genai import types

    from memoranda.integrations.frameworks.google_adk import MemorandaSessionService, RecallTool, memory_tools

    sent: list[Request] = []

    class Model(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[Any, None]:
            sent.append(Request(str(llm_request.contents), list(llm_request.tools_dict)))
            if isinstance(reply, Exception):
                raise reply
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=reply)]))

    home = memory.for_user(None)
    tools: Any = [*memory_tools(home), RecallTool(home, seconds=GIVE_UP)]
    agent = LlmAgent(name="baker", model=Model(model="scripted"), tools=tools)
    service = MemorandaSessionService(home)
    runner = Runner(app_name="bakery", agent=agent, session_service=service, auto_create_session=True)
    message = types.Content(role="user", parts=[types.Part(text=question)])

    async def ask() -> None:
        user = memory.user or "owner"
        async for _ in runner.run_async(user_id=user, session_id=conversation, new_message=message):
            pass

    asyncio.run(_passing(ask(), reply))
    return sent[-1]


def llama_index(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("llama_index.core", reason="the package llama-index-core is not installed")
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
    from llama_index.core.llms import MockLLM
    from llama_index.core.llms.function_calling import FunctionCallingLLM
    from llama_index.core.memory import Memory

    from memoranda.integrations.frameworks.llama_index import MemorandaBlock, MemorandaChatStore, memory_tools

    sent: list[Request] = []

    class Model(MockLLM, FunctionCallingLLM):  # type: ignore[misc]
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_function_calling_model=True)

        def _prepare_chat_with_tools(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        def get_tool_calls_from_response(self, *_: Any, **__: Any) -> Any:
            return []

        async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
            sent.append(Request(str(chat_history), [tool.metadata.name for tool in tools]))
            if isinstance(reply, Exception):
                raise reply

            async def stream() -> AsyncGenerator[ChatResponse, None]:
                yield ChatResponse(message=ChatMessage(role="assistant", content=reply), delta="")

            return stream()

    async def ask() -> None:
        blocks = [MemorandaBlock(memory, seconds=GIVE_UP)]
        store = MemorandaChatStore(memory)
        short_term = Memory.from_defaults(conversation, chat_store=store, memory_blocks=blocks, insert_method="user")
        agent = FunctionAgent(tools=cast("Any", memory_tools(memory, conversation)), llm=Model(), streaming=True)
        await _passing(agent.run(question, memory=short_term), reply)

    asyncio.run(ask())
    return sent[-1]


def strands(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    pytest.importorskip("strands", reason="the package strands-agents is not installed")
    from strands import Agent
    from strands.models import Model
    from strands.session import RepositorySessionManager

    from memoranda.integrations.frameworks.strands import MemorandaRecall, MemorandaRepository, memory_tools

    sent: list[Request] = []

    class Scripted(Model):
        def update_config(self, **_: Any) -> None:
            raise NotImplementedError

        def get_config(self) -> Any:
            return {}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, messages: Any, tool_specs: Any = None, *_: Any, **__: Any) -> AsyncIterator[Any]:
            sent.append(Request(str(messages), [each["name"] for each in tool_specs or []]))
            if isinstance(reply, Exception):
                raise reply
            yield {"messageStart": {"role": "assistant"}}
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}

    agent = Agent(
        Scripted(),
        agent_id="baker",
        tools=[*memory_tools(memory)],
        hooks=[MemorandaRecall(memory, seconds=GIVE_UP)],
        session_manager=RepositorySessionManager(conversation, MemorandaRepository(memory)),
        callback_handler=None,
    )
    asyncio.run(_passing(agent.invoke_async(question), reply))
    return sent[-1]


def claude_agent(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    """As the SDK calls its hooks, its server and its store; the real program runs in the tests of the adapter."""
    pytest.importorskip("claude_agent_sdk", reason="the package claude-agent-sdk is not installed")
    from mcp import Client

    from memoranda.integrations.frameworks.claude_agent import MemorandaSessionStore, memory_server, recall_hooks

    key: Any = {"project_key": "bakery", "session_id": conversation}
    (hook,) = recall_hooks(memory, seconds=GIVE_UP)["UserPromptSubmit"][0].hooks
    called = {"prompt": question, "session_id": conversation, "transcript_path": f"/p/bakery/{conversation}.jsonl"}

    async def ask() -> Request:
        await MemorandaSessionStore(memory).append(key, [_entry("user", question)])
        added: Any = await hook(cast("Any", called), None, cast("Any", {}))
        async with Client(memory_server(memory)["instance"]) as client:
            listed = await client.list_tools()
        if isinstance(reply, str):
            await MemorandaSessionStore(memory).append(key, [_entry("assistant", [{"type": "text", "text": reply}])])
        return Request(f"{question} {added}", [tool.name for tool in listed.tools])

    return asyncio.run(ask())


def anthropic_memory(memory: memoranda.Memory, conversation: str, question: str, reply: Reply) -> Request:
    """A native turn around Anthropic's tool runner, which offers the memory tool and no other."""
    pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    from anthropic import Anthropic, APIError

    from memoranda.integrations.frameworks.anthropic_memory import MemorandaMemoryTool
    from memoranda.integrations.frameworks.prompt_recall import recall

    steps = [ModelReply(reply) if isinstance(reply, str) else Refuse(400)]
    with ScriptedServer(steps) as server, Anthropic(api_key="k", base_url=server.url, max_retries=0) as client:
        session = memory.session(session_id=conversation if memory.user is None else f"{memory.user}-{conversation}")
        try:
            with session.turn(question) as turn:
                *earlier, asked = turn.messages
                context = f"{asked['content']}\n\n{recall(memory, question, session.id, seconds=GIVE_UP)}"
                runner = client.beta.messages.tool_runner(
                    model="any",
                    max_tokens=500,
                    system=session.prompt,
                    tools=[MemorandaMemoryTool(memory, session_id=session.id)],
                    messages=cast("Any", [*earlier, {**asked, "content": context}]),
                )
                turn.done(str(runner.until_done().content[-1].text))  # type: ignore[union-attr]
        except APIError:
            assert isinstance(reply, Exception)
        sent: Any = server.received[-1].json
        return Request(str(sent["messages"]), [tool["name"] for tool in sent["tools"]])


def _entry(role: str, content: Any) -> Any:
    return {"type": role, "message": {"role": role, "content": content}}


async def _passing(run: Any, reply: Reply) -> None:
    """Wait for a run, which fails if its model does."""
    try:
        await run
    except Exception:
        if isinstance(reply, str):
            raise


ADAPTERS: list[Callable[[memoranda.Memory, str, str, Reply], Request]] = [
    openai_agents,
    langgraph,
    langgraph_in_threads,
    langchain,
    pydantic_ai,
    agent_framework,
    google_adk,
    llama_index,
    strands,
    claude_agent,
    anthropic_memory,
]
