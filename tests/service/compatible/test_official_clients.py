"""The official clients of mem0, LangGraph and OpenAI, through a real socket."""

import asyncio
import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.http.running_service import RunningService

pytestmark = [
    pytest.mark.slow,
    # Some of these clients cannot be closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No client reports anything to its vendor, or writes outside of the test's directory."""
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "mem0"))
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    monkeypatch.setenv("LANGSMITH_API_KEY", "")
    yield
    # Some of these clients cannot be closed; their sockets must not be noticed in a later test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_client_of_mem0(compatible: RunningService, key: str) -> None:
    """Adds, finds, lists, updates, rates and deletes memories, one by one, in batches and by entity."""
    mem0 = pytest.importorskip("mem0")
    errors = pytest.importorskip("mem0.exceptions")
    client = mem0.MemoryClient(api_key=key, host=compatible.url)
    messages = [{"role": "user", "content": "Ana likes oolong tea."}, {"role": "assistant", "content": "Noted."}]
    (event,) = client.add(messages, user_id="ana", metadata={"kind": "taste"})["results"]
    client.add("Bo drives a van.", user_id="bo", agent_id="cook")
    assert event["event"] == "ADD"
    assert client.get(event["id"])["memory"] == "Ana likes oolong tea."
    (hit,) = client.search("Which tea?", filters={"AND": [{"user_id": "ana"}]}, top_k=3, threshold=0.1)["results"]
    assert hit["id"] == event["id"]
    assert 0.1 <= hit["score"] <= 1
    listed = client.get_all(filters={"user_id": "*"}, page=1, page_size=1)
    assert (listed["count"], len(listed["results"]), listed["previous"]) == (2, 1, None)
    assert client.update(event["id"], text="Ana likes green tea.")["memory"] == "Ana likes green tea."
    assert [each["event"] for each in client.history(event["id"])] == ["ADD", "UPDATE"]
    assert client.feedback(event["id"], "positive", "right")["feedback"] == "POSITIVE"
    assert {entity["type"]: entity["name"] for entity in client.users()["results"]} == {"user": "bo", "agent": "cook"}
    client.batch_update([{"memory_id": event["id"], "text": "Ana likes white tea."}])
    client.batch_delete([{"memory_id": event["id"]}])
    with pytest.raises(errors.MemoryNotFoundError):
        client.get(event["id"])
    with pytest.raises(errors.ValidationError):
        client.search("x", filters={"user_id": {"like": "a"}})
    with pytest.raises(errors.MemoryError, match="/v1/export"):
        client.create_memory_export("{}")
    client.delete(client.add("Ana has a cat.", user_id="ana")["results"][0]["id"])
    client.add("Ana has a dog.", user_id="ana")
    client.delete_all(user_id="ana")
    client.delete_users(user_id="bo")
    assert client.get_all()["count"] == 0
    client.add("One more.", user_id="ana")
    client.reset()
    assert client.get_all()["count"] == 0
    with pytest.raises(ValueError, match="API key"):
        mem0.MemoryClient(api_key="mk_wrong", host=compatible.url)


def test_the_asynchronous_client_of_mem0(compatible: RunningService, key: str) -> None:
    """The same routes, from an event loop."""
    mem0 = pytest.importorskip("mem0")

    async def use() -> Any:
        async with mem0.AsyncMemoryClient(api_key=key, host=compatible.url) as client:
            added = await asyncio.gather(*(client.add(f"Fact {number}.", user_id="ana") for number in range(5)))
            assert len({answer["results"][0]["id"] for answer in added}) == 5
            await client.update(added[0]["results"][0]["id"], text="Fact zero.")
            await client.delete(added[1]["results"][0]["id"])
            await client.history(added[0]["results"][0]["id"])
            found = await client.search("zero", filters={"user_id": "ana"})
            return [memory["memory"] for memory in found["results"]], (await client.get_all())["count"]

    assert asyncio.run(use()) == (["Fact zero."], 4)


def test_the_clients_of_langgraph(compatible: RunningService, key: str) -> None:
    """The synchronous and the asynchronous store client, with the key in x-api-key."""
    sdk = pytest.importorskip("langgraph_sdk")
    store = sdk.get_sync_client(url=compatible.url, api_key=key).store
    store.put_item(["docs", "ana"], "k", {"text": "oolong tea", "n": 1}, index=["text"], ttl=60)
    store.put_item(["docs", "bo"], "k", {"text": "van", "n": 2})
    assert store.get_item(["docs", "ana"], "k")["value"] == {"text": "oolong tea", "n": 1}
    assert store.get_item(["docs", "ana"], "other", refresh_ttl=False) is None
    (hit,) = store.search_items(["docs"], query="which tea", limit=5)["items"]
    assert (hit["namespace"], hit["score"]) == (["docs", "ana"], 1.0)
    assert len(store.search_items(["docs"], filter={"n": {"$gt": 1}})["items"]) == 1
    assert store.list_namespaces(prefix=["docs"], max_depth=2)["namespaces"] == [["docs", "ana"], ["docs", "bo"]]
    store.delete_item(["docs", "bo"], "k")
    with pytest.raises(sdk.errors.UnprocessableEntityError):
        store.search_items(["docs"], filter={"n": {"$in": [1]}})

    async def use() -> Any:
        client = sdk.get_client(url=compatible.url, api_key=key)
        await client.store.put_item(["docs", "eve"], "k", {"text": "ferry"})
        found = await client.store.search_items(["docs"], query="ferry")
        namespaces = await client.store.list_namespaces()
        await client.store.delete_item(["docs", "eve"], "k")
        return found["items"][0]["key"], namespaces["namespaces"], await client.store.get_item(["docs", "eve"], "k")

    assert asyncio.run(use()) == ("k", [["docs", "ana"], ["docs", "eve"]], None)


def test_the_client_of_openai(compatible: RunningService, key: str) -> None:
    """Conversations and items of several types, automatic paging, and its exceptions."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{compatible.url}/v1", api_key=key) as client:
        conversation = client.conversations.create(
            metadata={"topic": "tea"}, items=[{"type": "message", "role": "user", "content": "Hello"}]
        )
        assert conversation.metadata == {"topic": "tea"}
        items = [
            {"type": "function_call", "call_id": "c1", "name": "brew", "arguments": "{}", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Tea is ready."}]},
        ]
        added = client.conversations.items.create(conversation.id, items=items)
        assert [item.type for item in added.data] == ["function_call", "function_call_output", "message"]
        pages = client.conversations.items.list(conversation.id, order="asc", limit=2)
        assert [item.type for item in pages] == ["message", "function_call", "function_call_output", "message"]
        last = client.conversations.items.retrieve(added.last_id, conversation_id=conversation.id)
        assert last.content[0].text == "Tea is ready."
        client.conversations.items.delete(added.last_id, conversation_id=conversation.id)
        assert client.conversations.update(conversation.id, metadata={"topic": "coffee"}).metadata == {
            "topic": "coffee"
        }
        assert client.conversations.retrieve(conversation.id).id == conversation.id
        assert client.conversations.delete(conversation.id).deleted
        with pytest.raises(openai.NotFoundError, match="not found"):
            client.conversations.retrieve(conversation.id)
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="mk_wrong").conversations.retrieve(conversation.id)


def test_an_agent_of_the_openai_sdk(compatible: RunningService, key: str) -> None:
    """Two turns of an agent with a tool: the second request has the whole first turn, and our search finds it."""
    agents = pytest.importorskip("agents")
    openai = pytest.importorskip("openai")
    responses = pytest.importorskip("openai.types.responses")
    received: list[Any] = []

    def find_tea(city: str) -> str:
        """Finds a tea house."""
        return f"The tea house of {city} is called Axolotl."

    def say(text: str) -> Any:
        part = responses.ResponseOutputText(type="output_text", text=text, annotations=[])
        return responses.ResponseOutputMessage(
            id=f"msg_{len(received)}", type="message", role="assistant", status="completed", content=[part]
        )

    script = [
        lambda: responses.ResponseFunctionToolCall(
            type="function_call", call_id="call_1", name="find_tea", arguments='{"city": "Lisbon"}'
        ),
        lambda: say("Go to Axolotl."),
        lambda: say("It is called Axolotl, as I said."),
    ]

    class ScriptedModel(agents.Model):  # type: ignore[misc, name-defined]
        async def get_response(self, *arguments: Any, **options: Any) -> Any:
            received.append(options["input"])
            return agents.ModelResponse(output=[script[len(received) - 1]()], usage=agents.Usage(), response_id=None)

        def stream_response(self, *arguments: Any, **options: Any) -> Any:
            raise NotImplementedError

    async def talk() -> tuple[str, Any, Any, Any]:
        conversations = openai.AsyncOpenAI(base_url=f"{compatible.url}/v1", api_key=key)
        tools = [agents.function_tool(find_tea)]
        agent = agents.Agent("Guide", instructions="Be brief.", model=ScriptedModel(), tools=tools)
        session = agents.OpenAIConversationsSession(openai_client=conversations)
        await agents.Runner.run(agent, "Where can I drink tea in Lisbon?", session=session)
        answer = await agents.Runner.run(agent, "What was its name?", session=session)
        everything = await session.get_items()
        newest = await session.get_items(limit=2)
        popped = await session.pop_item()
        name = session.session_id
        left = await session.get_items()
        assert [item["id"] for item in left] == [item["id"] for item in everything[:-1]]
        return name, answer.final_output, newest, popped

    name, final, newest, popped = asyncio.run(talk())
    assert final == "It is called Axolotl, as I said."
    kinds = [item.get("type", "message") for item in received[-1]]
    assert kinds == ["message", "function_call", "function_call_output", "message", "message"]
    assert "Axolotl" in str(received[-1][2])
    assert popped == newest[-1]
    found = compatible.client(key).post("/v1/search", json={"query": "tea in Lisbon"}).json()["results"]
    assert [hit["session_id"] for hit in found] == [name]
