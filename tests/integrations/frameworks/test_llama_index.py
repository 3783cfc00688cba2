"""The memory of LlamaIndex keeps its messages in the record, archives them there, and recalls earlier conversations."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import memoranda
from tests.integrations.frameworks.earlier_conversation import ANSWER, QUESTION, UNRELATED, record_earlier_conversation
from tests.timing import GIVE_UP

pytest.importorskip("llama_index.core", reason="the package llama-index-core is not installed")
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ImageBlock,
    LLMMetadata,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms import MockLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from memoranda.integrations.frameworks import prompt_recall
from memoranda.integrations.frameworks.llama_index import SOURCE, MemorandaBlock, MemorandaChatStore, memory_tools

_ACTIVE, _ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


class _ScriptedModel(MockLLM, FunctionCallingLLM):  # type: ignore[misc]
    """A model that gives its replies in their order and keeps what it was sent."""

    replies: list[Any] = Field(default_factory=list)
    requests: list[str] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True)

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": [*(chat_history or []), *([user_msg] if user_msg else [])]}

    def get_tool_calls_from_response(self, response: Any, error_on_no_tool_call: bool = True, **_: Any) -> Any:
        calls = response.message.additional_kwargs.get("calls", [])
        return [ToolSelection(tool_id="c1", tool_name=name, tool_kwargs=arguments) for name, arguments in calls]

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        self.requests.append(str(chat_history))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            message = ChatMessage(role="assistant", content=reply if isinstance(reply, str) else "")
            if not isinstance(reply, str):
                message.additional_kwargs["calls"] = [reply]
            yield ChatResponse(message=message, delta="")

        return stream()


def _memory(memory: memoranda.Memory, **options: Any) -> Memory:
    blocks = [MemorandaBlock(memory, seconds=GIVE_UP)]
    store = MemorandaChatStore(memory)
    return Memory.from_defaults("oven", chat_store=store, memory_blocks=blocks, insert_method="user", **options)


def _texts(messages: list[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


def test_messages_come_back_as_they_were_and_are_found(memory: memoranda.Memory) -> None:
    """Images and extra arguments included; another user has another conversation."""
    messages = [
        ChatMessage(role="user", blocks=[TextBlock(text="The thermostat broke."), ImageBlock(image=b"\x00\xff")]),
        ChatMessage(role="tool", content="cold", additional_kwargs={"tool_call_id": "c1"}),
        ChatMessage(role="assistant", content="Replace it."),
    ]
    store = MemorandaChatStore(memory)

    async def main() -> None:
        assert await store.get_messages("oven") == [] and await store.get_keys() == []
        await store.add_messages("oven", messages)
        assert await store.get_messages("oven") == messages
        assert await store.get_messages("oven", limit=1, offset=1) == messages[1:2]
        assert await store.get_keys() == ["oven"] and await store.count_messages("oven") == 3
        assert await MemorandaChatStore(memory.for_user("ana")).get_messages("oven") == []

    asyncio.run(main())
    roles = [each["role"] for each in memory.sessions.get_messages(f"{SOURCE}:oven")]
    assert roles == ["user", "tool", "assistant"]
    assert memory.search("thermostat")["results"][0]["source"] == SOURCE


def test_messages_are_archived_replaced_and_deleted(memory: memoranda.Memory) -> None:
    """The oldest first; archived messages stay when the active ones are replaced, and are still found."""
    store = MemorandaChatStore(memory)
    messages = [ChatMessage(role="user", content=text) for text in ("ant", "bee", "cat", "dog")]

    async def main() -> None:
        await store.add_messages("k", messages)
        assert _texts(await store.archive_oldest_messages("k", 1)) == ["ant"]
        await store.set_messages("k", [*messages[1:], ChatMessage(role="assistant", content="elk")])
        assert _texts(await store.delete_oldest_messages("k", 1)) == ["bee"]
        deleted = await store.delete_message("k", 1)
        assert deleted is not None and deleted.content == "dog" and await store.delete_message("k", 9) is None
        assert _texts(await store.get_messages("k")) == ["cat", "elk"]
        assert _texts(await store.get_messages("k", _ARCHIVED)) == ["ant"]
        assert _texts(await store.get_messages("k", None)) == ["ant", "cat", "elk"]
        await store.add_message("k", ChatMessage(role="user", content="bat"), _ARCHIVED)
        await store.delete_messages("k", _ACTIVE)
        assert _texts(await store.get_messages("k", None)) == ["ant", "bat"]
        assert memory.search("ant")["count"] == 1 and memory.search("elk")["count"] == 0
        await store.delete_messages("k")
        assert await store.get_messages("k", None) == [] and await store.get_keys() == []

    asyncio.run(main())


def test_what_leaves_the_short_term_memory_is_still_found(memory: memoranda.Memory) -> None:
    """LlamaIndex archives the oldest messages when there are too many."""

    async def main() -> None:
        short_term = _memory(memory, token_limit=60, token_flush_size=10, chat_history_token_ratio=0.5)
        for number in range(12):
            await short_term.aput(ChatMessage(role="user", content=f"Note {number} about the oven, word{number}."))
            await short_term.aput(ChatMessage(role="assistant", content="Yes."))
        assert "word0" not in str(await short_term.aget())
        assert len(await short_term.aget_all()) == 24

    asyncio.run(main())
    assert memory.search("word0")["count"] == 1


# Its workflows read attributes that pydantic has deprecated.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_agent_continues_its_conversation_with_memory(
    memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It recalls once per turn, keeps the message, saves with the tool, and loses nothing when its model fails."""
    record_earlier_conversation(memory)
    fact = {"action": "add", "target": "memory", "content": "The oven is old."}
    model = _ScriptedModel()
    model.replies = [("memory", fact), "Saved.", "Waves.", RuntimeError("down"), "Yes."]
    searches: list[str] = []
    recall = prompt_recall.recall

    def count_searches(memory: memoranda.Memory, prompt: str, *arguments: Any, **options: Any) -> str:
        searches.append(prompt)
        return recall(memory, prompt, *arguments, **options)

    monkeypatch.setattr(prompt_recall, "recall", count_searches)

    async def main() -> None:
        agent = FunctionAgent(tools=memory_tools(memory), llm=model, streaming=True)
        for question in (QUESTION, UNRELATED):
            await agent.run(question, memory=_memory(memory))
        with pytest.raises(RuntimeError):
            await agent.run("Is the mixer broken?", memory=_memory(memory))
        await agent.run("Still?", memory=_memory(memory))

    asyncio.run(main())
    assert [request.count(ANSWER) for request in model.requests[:3]] == [1, 1, 0]
    assert searches == [QUESTION, UNRELATED, "Is the mixer broken?", "Still?"]
    assert "Is the mixer broken?" in model.requests[-1] and "Saved." in model.requests[-1]
    assert memory.entries("memory") == ("The oven is old.",)
    assert ANSWER not in str(memory.sessions.get_messages(f"{SOURCE}:oven"))


def test_a_call_that_was_interrupted_has_a_result_that_says_so(memory: memoranda.Memory) -> None:
    """Chat services refuse a call without one; messages are deleted by the numbers that they are shown with."""
    call = ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_call_id="c1", tool_name="read", tool_kwargs={})])
    said = [ChatMessage(role="user", content="Hello"), call, ChatMessage(role="user", content="Are you there?")]

    async def main() -> None:
        store = MemorandaChatStore(memory)
        await store.add_messages("oven", said)
        found = await store.get_messages("oven")
        assert [each.role.value for each in found] == ["user", "assistant", "tool", "user"]
        assert found[2].additional_kwargs["tool_call_id"] == "c1"
        await store.set_messages("oven", [*found, ChatMessage(role="assistant", content="Yes.")])
        assert await store.delete_message("oven", 3) == said[2]
        assert [each.role.value for each in await store.get_messages("oven")] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    asyncio.run(main())
