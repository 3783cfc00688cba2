"""LangGraph's store and LangChain's chat history over a home: durable, searchable, per user."""

import asyncio
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command

pytest.importorskip("langgraph.store.base", reason="the package langgraph-checkpoint is not installed")
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from memoranda.integrations.frameworks.langchain_history import MemorandaChatHistory
from memoranda.integrations.frameworks.langgraph import MemorandaStore
from tests.docs.pages import ROOT

pytestmark = pytest.mark.slow


def _fill(store: Any) -> None:
    for number, (namespace, value) in enumerate(
        [
            (("users", "ana", "notes"), {"text": "likes oolong tea", "year": 2024}),
            (("users", "ana", "facts"), {"text": "lives in Lisbon", "year": 2025}),
            (("users", "bob", "notes"), {"text": "drinks coffee", "year": 2026}),
            (("teams", "bakery"), {"text": "the oven shows E17", "year": 2026}),
        ]
    ):
        store.put(namespace, f"k{number}", value)


def test_the_store_answers_as_the_vendors_own_does(memory: memoranda.Memory) -> None:
    """The same calls give the same items, namespaces and errors as its store in memory."""
    ours, theirs = MemorandaStore(memory), InMemoryStore()
    for store in (ours, theirs):
        _fill(store)
        store.put(("users", "ana", "notes"), "k0", {"text": "likes green tea", "year": 2024})
        # Theirs lists a namespace after its last item is gone, so one stays.
        store.put(("users", "bob", "notes"), "k5", {"text": "drinks water", "year": 2020})
        store.delete(("users", "bob", "notes"), "k2")
        store.delete(("users", "bob", "notes"), "never")
    calls: list[Any] = [
        lambda store: store.get(("users", "ana", "notes"), "k0").value,
        lambda store: store.get(("users", "bob", "notes"), "k2"),
        lambda store: sorted(item.key for item in store.search(("users",))),
        lambda store: [item.value for item in store.search(("users",), filter={"year": {"$gte": 2025}})],
        lambda store: [item.value for item in store.search(("teams", "bakery"), filter={"year": 2026})],
        lambda store: len(store.search((), limit=1, offset=1)),
        lambda store: sorted(store.list_namespaces()),
        lambda store: sorted(store.list_namespaces(prefix=("users",), max_depth=2)),
        lambda store: sorted(store.list_namespaces(suffix=("notes",))),
        lambda store: sorted(store.list_namespaces(prefix=("*", "ana"), suffix=("facts",))),
        lambda store: sorted(store.list_namespaces(prefix=("nowhere",))),
    ]
    for call in calls:
        assert call(ours) == call(theirs)
    for store in (ours, theirs):
        with pytest.raises(InvalidNamespaceError):
            store.put((), "k", {"a": 1})


@pytest.mark.parametrize("name", ["SqliteStore", "AsyncSqliteStore"])
def test_the_page_names_what_only_the_vendors_own_store_has(name: str) -> None:
    """Each of its public names that ours does not have."""
    theirs = getattr(pytest.importorskip("langgraph.store.sqlite"), name)
    missing = {member for member in set(dir(theirs)) - set(dir(MemorandaStore)) if member[0] != "_"}
    page = (ROOT / "docs" / "how-to" / "use-with-langgraph.md").read_text("utf-8")
    assert missing and [member for member in sorted(missing) if f"`{member}`" not in page] == []


def test_the_store_finds_by_words_and_keeps_a_history(memory: memoranda.Memory) -> None:
    """Without embeddings; what is not indexed is not found."""
    store = MemorandaStore(memory)
    _fill(store)
    hits = store.search(("users",), query="oolong tea")
    assert [hit.key for hit in hits] == ["k0"] and hits[0].score
    store.put(("users", "ana", "notes"), "k9", {"text": "secret oolong"}, index=False)
    assert [hit.key for hit in store.search(("users",), query="oolong")] == ["k0"]
    store.put(("users", "ana", "notes"), "k0", {"text": "likes coffee"}, index=["$"])
    assert store.search(("users", "ana"), query="oolong") == []
    assert [version.event for version in memory.items.history(("users", "ana", "notes"), "k0")] == ["add", "update"]


def test_a_batch_reads_before_it_writes_and_answers_in_order(memory: memoranda.Memory) -> None:
    """All of its writes are one transaction, and a time to live is in minutes."""
    store, namespace = MemorandaStore(memory), ("n",)
    store.put(namespace, "old", {"v": 1})
    ops: Any = [
        PutOp(namespace, "new", {"v": 2}, ttl=2),
        GetOp(namespace, "new"),
        SearchOp(namespace),
        PutOp(namespace, "old", None),
        ListNamespacesOp((MatchCondition("prefix", ("n",)), MatchCondition("suffix", ("*",)))),
    ]
    results: Any = asyncio.run(store.abatch(ops))
    assert results[:2] == [None, None] and results[3] is None and results[4] == [namespace]
    assert [item.key for item in results[2]] == ["old"]
    assert [item.key for item in store.search(namespace)] == ["new"]
    item = memory.items.get(namespace, "new")
    assert item is not None and item.expires_at is not None and 60 < item.expires_at - item.updated_at <= 120


def test_stores_and_histories_of_two_users_are_separate(memory: memoranda.Memory) -> None:
    """Under the same namespace, key and session id."""
    ana = memory.for_user("ana")
    MemorandaStore(memory).put(("n",), "k", {"v": "owner"})
    MemorandaStore(ana).put(("n",), "k", {"v": "ana"})
    found = MemorandaStore(memory).get(("n",), "k")
    assert found is not None and found.value == {"v": "owner"}
    MemorandaChatHistory("s", memory).add_user_message("Hello")
    assert MemorandaChatHistory("s", ana).messages == []


def test_messages_of_langchain_come_back_as_they_were_and_are_found(memory: memoranda.Memory) -> None:
    """Tool calls, results and parts included; clearing can be undone."""
    history = MemorandaChatHistory("s", memory)
    calls: Any = [{"name": "weather", "args": {"place": "Kyoto"}, "id": "c1", "type": "tool_call"}]
    messages = [
        SystemMessage("Be brief."),
        HumanMessage([{"type": "text", "text": "What is the weather in Kyoto?"}], id="h1"),
        AIMessage("", tool_calls=calls, additional_kwargs={"x": 1}),
        ToolMessage("Drizzle until noon.", tool_call_id="c1"),
        AIMessage("It drizzles.", response_metadata={"model": "m"}),
    ]
    assert history.messages == []
    history.clear()
    asyncio.run(history.aadd_messages(messages))
    assert asyncio.run(MemorandaChatHistory("s", memory).aget_messages()) == messages
    assert memory.search("drizzle Kyoto")["results"][0]["source"] == "langchain"
    asyncio.run(history.aclear())
    assert history.messages == []
    memory.sessions.restore_replaced(history.record_id)
    assert history.messages == messages


def test_a_call_in_a_history_that_was_interrupted_has_a_result_that_says_so(memory: memoranda.Memory) -> None:
    """A chat model refuses a call without one; a result that is there stays the only one of its call."""
    history = MemorandaChatHistory("s", memory)
    calls = [ToolCall(name="read", args={}, id=each) for each in ("a", "b")]
    history.add_messages([HumanMessage("Hello"), AIMessage("", tool_calls=calls), ToolMessage("{}", tool_call_id="b")])
    history.add_user_message("Go on")
    results = [message.tool_call_id for message in history.messages if isinstance(message, ToolMessage)]
    assert results == ["b", "a"] and [message.type for message in history.messages[-2:]] == ["tool", "human"]
    history.add_messages([AIMessage("", tool_calls=calls[:1]), ToolMessage("{}", tool_call_id="a")])
    assert [message.content for message in history.messages if isinstance(message, ToolMessage)].count("{}") == 2


def test_the_prompt_of_an_agent_has_curated_memory_after_its_own_text(memory: memoranda.Memory) -> None:
    """As it was when the thread began; a call without a thread is not recorded, and has it too."""
    agents = pytest.importorskip("langchain.agents", reason="the package langchain is not installed")
    from langchain_core.language_models import FakeMessagesListChatModel

    from memoranda.integrations.frameworks.langchain_agent import MemorandaMiddleware

    sent: list[str] = []

    class Model(FakeMessagesListChatModel):
        def _generate(self, messages: Any, *arguments: Any, **options: Any) -> Any:
            sent.append(str(messages[0].content))
            return super()._generate(messages, *arguments, **options)

    memory.remember("The bakery opens at six.")
    middleware = [MemorandaMiddleware(memory, tools=False)]
    agent = agents.create_agent(Model(responses=[AIMessage("Yes.")]), system_prompt="You bake.", middleware=middleware)
    for config in ({"configurable": {"thread_id": "t"}}, {"configurable": {"thread_id": "t"}}, {}):
        agent.invoke({"messages": [HumanMessage("Do you bake rye bread?")]}, config)
        memory.remember(f"The oven number {len(sent)} is old.")
    assert sent[0] == sent[1] and sent[0].startswith("You bake.\n\n") and "opens at six" in sent[0]
    assert "number 2 is old" in sent[2]
    assert [row["id"] for row in memory.sessions.list_sessions_rich()] == ["langgraph:t"]


@pytest.mark.parametrize("namespace", [("users.ana",), ("users", ""), ("users", 1)])
def test_a_batch_refuses_what_the_methods_refuse(memory: memoranda.Memory, namespace: Any) -> None:
    """LangGraph allows no dot in a label; of a batch with such an operation nothing is carried out."""
    store = MemorandaStore(memory)
    for op in (
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {"a": 1}),
        SearchOp(namespace),
        ListNamespacesOp((MatchCondition("prefix", namespace),)),
    ):
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(("users",), "k", {"a": 1}), op])
    assert store.get(("users",), "k") is None


def test_items_of_its_own_store_are_found_after_an_import(memory: memoranda.Memory, tmp_path: Path) -> None:
    """Our store answers for an imported file as LangGraph's own store does, times included."""
    sqlite = pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    file = tmp_path / "store.sqlite"
    with sqlite.SqliteStore.from_conn_string(str(file)) as theirs:
        theirs.setup()
        _fill(theirs)
        theirs.put(("users", "ana"), "city", {"text": "Lisbon"}, ttl=60)
        theirs.put(("users", "ana"), "gone", {"text": "Paris"})
        theirs.delete(("users", "ana"), "gone")
        arguments = ["import", "langgraph", "--home", str(tmp_path / "home"), "--source", str(file), "--yes"]
        assert CliRunner().invoke(command, arguments).exit_code == 0
        ours = MemorandaStore(memory)
        # Theirs are in UTC and do not say so.
        found, wanted = (
            {
                (item.namespace, item.key): (item.value, item.created_at.replace(tzinfo=UTC), item.score)
                for item in store.search((), limit=20)
            }
            for store in (ours, theirs)
        )
    assert len(wanted) == 5 and found == wanted
    assert ours.search(("users",), query="oolong")[0].key == "k0"
    ours.put(("users", "ana"), "city", {"text": "Porto"})
    assert CliRunner().invoke(command, [*arguments, "--rescan"]).exit_code == 0
    item = ours.get(("users", "ana"), "city")
    assert item is not None and item.value == {"text": "Porto"}
