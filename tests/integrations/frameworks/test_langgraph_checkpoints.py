"""LangGraph's checkpointer over a home: its conformance suite, whole graphs, crashes, and several writers."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from memoranda.errors import HomeError, StorageError

pytest.importorskip("langgraph.graph", reason="the package langgraph is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="langgraph-checkpoint-conformance is not installed")
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command, interrupt

from memoranda.integrations.frameworks.langgraph import MemorandaSaver, MemorandaStore
from tests.forked import Forked, Say, forking
from tests.timing import GIVE_UP

# Importing the framework takes seconds; `make test-frameworks` runs this file too.
pytestmark = pytest.mark.slow

_THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[memoranda.Memory]:
    with memoranda.open(tmp_path / "home") as memory:
        yield memory


@pytest.fixture
def server_memory(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[memoranda.Memory]:
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    with memoranda.open(tmp_path / "node") as memory:
        yield memory


def _conformance(memory: memoranda.Memory) -> Any:
    @checkpointer_test(name="MemorandaSaver")
    async def savers() -> AsyncIterator[MemorandaSaver]:
        yield MemorandaSaver(memory)

    return asyncio.run(validate(savers))


def _put(saver: Any, number: int, *, thread: str = "t", parent: Any = None, run_id: str | None = None) -> Any:
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    if parent is not None:
        config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"number": number, "constant": "x" * 5_000}
    metadata: Any = {"source": "loop", "step": number} | ({} if run_id is None else {"run_id": run_id})
    return saver.put(config, checkpoint, metadata, {})


def _values(saver: Any, thread: str = "t") -> list[int]:
    found = saver.list({"configurable": {"thread_id": thread}})
    return [each.checkpoint["channel_values"]["number"] for each in found]


def test_all_eight_capabilities_of_the_conformance_suite_pass(memory: memoranda.Memory) -> None:
    """Extended ones included; every test of every capability ran."""
    report = _conformance(memory)
    assert {name for name, result in report.results.items() if result.passed} == {
        each.value for each in ALL_CAPABILITIES
    }
    assert not [failure for result in report.results.values() for failure in result.failures]
    assert (memory.home.root / "checkpoints.db").stat().st_mode & 0o777 == 0o600


def test_the_conformance_suite_passes_on_a_server(server_memory: memoranda.Memory) -> None:
    """The same eight capabilities with tables on PostgreSQL, and no file in the home."""
    report = _conformance(server_memory)
    assert {name for name, result in report.results.items() if result.passed} == {
        each.value for each in ALL_CAPABILITIES
    }
    assert not (server_memory.home.root / "checkpoints.db").exists()


def test_reading_creates_no_file(memory: memoranda.Memory) -> None:
    """Until the first checkpoint there is nothing to read, to list or to delete."""
    saver = MemorandaSaver(memory)
    assert saver.get_tuple(_THREAD) is None and list(saver.list(None)) == []
    saver.delete_thread("t")
    saver.prune(["t"])
    saver.copy_thread("t", "u")
    saver.delete_for_runs(["r"])
    assert not (memory.home.root / "checkpoints.db").exists()


def test_equal_values_are_stored_once_and_removed_with_their_last_checkpoint(memory: memoranda.Memory) -> None:
    """A hundred checkpoints share one large value; a pruned thread keeps what its latest checkpoint needs."""
    saver = MemorandaSaver(memory)
    for number in range(100):
        _put(saver, number)
    engine = memory.services.checkpoints_for(None).engine

    def stored() -> int:
        with engine.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM checkpoint_values").fetchone()[0])

    assert stored() == 101
    assert _values(saver) == list(range(99, -1, -1))
    saver.prune(["t"])
    assert _values(saver) == [99] and stored() == 2
    saver.delete_thread("t")
    assert stored() == 0
    with pytest.raises(ValueError, match="keep_latest, delete"):
        saver.prune(["t"], strategy="keep_some")


def test_threads_of_two_users_are_separate(memory: memoranda.Memory) -> None:
    """Under the same thread id, in reads, lists, copies and deletions."""
    ours, theirs = MemorandaSaver(memory), MemorandaSaver(memory.for_user("ana"))
    _put(ours, 1, run_id="r")
    _put(theirs, 2, run_id="r")
    assert _values(ours) == [1] and _values(theirs) == [2]
    assert len(list(theirs.list(None))) == 1
    ours.delete_for_runs(["r"])
    ours.delete_thread("t")
    assert _values(ours) == [] and _values(theirs) == [2]


def test_use_after_close_raises(tmp_path: Path) -> None:
    """The saver does not open a closed home again; pickle is refused when the saver is created."""
    memory = memoranda.open(tmp_path / "home")
    saver = MemorandaSaver(memory)
    _put(saver, 1)
    with pytest.raises(ValueError, match="pickle"):
        MemorandaSaver(memory, serde=JsonPlusSerializer(pickle_fallback=True))
    memory.close()
    with pytest.raises(HomeError, match="closed"):
        saver.get_tuple(_THREAD)


def _extend(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


class _State(TypedDict):
    items: Annotated[list[str], DeltaChannel(_extend, snapshot_frequency=3)]
    turn: str


def _delta_graph(saver: Any) -> Any:
    builder: Any = StateGraph(_State)
    builder.add_node("first", lambda state: {"items": [f"a{state['turn']}"]})
    builder.add_node("second", lambda state: {"items": [f"b{state['turn']}"]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    return builder.compile(checkpointer=saver)


def test_delta_channels_are_read_as_the_vendors_saver_reads_them(memory: memoranda.Memory) -> None:
    """Their history is complete after many turns, after a copy, and after a prune that keeps what they need."""
    ours, theirs = MemorandaSaver(memory), InMemorySaver()
    for saver in (ours, theirs):
        for number in range(4):
            _delta_graph(saver).invoke({"turn": str(number)}, _THREAD)
    expected = _delta_graph(theirs).get_state(_THREAD).values
    assert expected["items"] == ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"]
    assert _delta_graph(ours).get_state(_THREAD).values == expected
    ours.copy_thread("t", "copy")
    ours.prune(["t"])
    assert len(list(ours.list(_THREAD))) < len(list(ours.list({"configurable": {"thread_id": "copy"}})))
    for thread in ("t", "copy"):
        config = {"configurable": {"thread_id": thread}}
        assert _delta_graph(ours).get_state(config).values == expected
        assert _delta_graph(ours).invoke({"turn": "4"}, config)["items"][-2:] == ["a4", "b4"]


def test_a_run_that_later_checkpoints_need_is_not_deleted(memory: memoranda.Memory) -> None:
    """The call raises, and the state of the thread is as it was."""
    saver = MemorandaSaver(memory)
    graph = _delta_graph(saver)
    for number in range(3):
        graph.invoke({"turn": str(number)}, {**_THREAD, "metadata": {"run_id": f"run-{number}"}})
    before = graph.get_state(_THREAD).values
    with pytest.raises(StorageError, match="Nothing was deleted"):
        saver.delete_for_runs(["run-0"])
    assert graph.get_state(_THREAD).values == before
    saver.delete_for_runs(["run-0", "run-1", "run-2"])
    assert saver.get_tuple(_THREAD) is None


def _chat_graph(memory: memoranda.Memory, answers: list[str]) -> Any:
    model = FakeMessagesListChatModel(responses=[AIMessage(answer) for answer in answers])

    def answer(state: Any, *, store: BaseStore) -> Any:
        known = store.search(("users", "ana"), query=state["messages"][-1].content)
        store.put(("users", "ana"), str(len(state["messages"])), {"text": state["messages"][-1].content})
        reply = model.invoke(state["messages"])
        return {"messages": [AIMessage(f"{reply.content} ({len(known)} known)")]}

    def approve(state: Any) -> Any:
        return {"messages": [AIMessage(f"approved: {interrupt('send it?')}")]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("approve", approve)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "approve")
    builder.add_edge("approve", END)
    return builder.compile(checkpointer=MemorandaSaver(memory), store=MemorandaStore(memory))


def test_a_graph_is_interrupted_and_resumed_after_the_home_was_closed(tmp_path: Path) -> None:
    """The finished node does not run again, and its store remembers."""
    with memoranda.open(tmp_path / "home") as memory:
        asked = HumanMessage("The oolong tea is in Kyoto.")
        found = _chat_graph(memory, ["Noted."]).invoke({"messages": [asked]}, _THREAD)
        assert found["__interrupt__"][0].value == "send it?"
    with memoranda.open(tmp_path / "home") as memory:
        graph = _chat_graph(memory, ["Never asked."])
        assert graph.get_state(_THREAD).next == ("approve",)
        done = graph.invoke(Command(resume="yes"), _THREAD)
        texts = [message.content for message in done["messages"]]
        assert texts == ["The oolong tea is in Kyoto.", "Noted. (0 known)", "approved: yes"]
        again = _chat_graph(memory, ["In Kyoto."]).invoke({"messages": [HumanMessage("Where is the oolong?")]}, _THREAD)
        assert again["messages"][-1].content == "In Kyoto. (1 known)"
        assert [hit["source"] for hit in memory.search("oolong")["results"]] == ["langgraph"]


def test_time_travel_forks_a_thread_and_keeps_its_history(memory: memoranda.Memory) -> None:
    """A past state is resumed with another value; both branches stay readable."""

    class Counter(TypedDict):
        total: int

    builder: Any = StateGraph(Counter)
    builder.add_node("add", lambda state: {"total": state["total"] + 1})
    builder.add_node("double", lambda state: {"total": state["total"] * 2})
    builder.add_edge(START, "add")
    builder.add_edge("add", "double")
    builder.add_edge("double", END)
    graph = builder.compile(checkpointer=MemorandaSaver(memory))
    assert graph.invoke({"total": 1}, _THREAD)["total"] == 4
    history = list(graph.get_state_history(_THREAD))
    assert [state.values.get("total") for state in history] == [4, 2, 1, None]
    fork = graph.update_state(history[1].config, {"total": 10})
    assert graph.invoke(None, fork)["total"] == 20
    assert graph.get_state(history[0].config).values == {"total": 4}
    assert graph.get_state(history[1].config).values == {"total": 2}
    assert graph.get_state(_THREAD).values == {"total": 20}


def test_a_graph_runs_in_an_event_loop(memory: memoranda.Memory) -> None:
    """Invoke, stream and history, all asynchronous."""

    async def run() -> list[Any]:
        graph = _chat_graph(memory, ["Hello."])
        await graph.ainvoke({"messages": [HumanMessage("Hi there.")]}, _THREAD)
        await graph.ainvoke(Command(resume="ok"), _THREAD)
        return [state async for state in graph.aget_state_history(_THREAD)]

    history = asyncio.run(run())
    assert [message.content for message in history[0].values["messages"]][-1] == "approved: ok"
    assert len(history) == 4


def _put_many(home: Path, first: int, count: int, say: Say) -> None:
    with memoranda.open(home) as memory:
        saver, parent = MemorandaSaver(memory), None
        for number in range(first, first + count):
            parent = _put(saver, number, parent=parent)
            saver.put_writes(parent, [("channel", number)], "task")
            say(b"%d\n" % number)


@forking
def test_an_acknowledged_checkpoint_survives_kill_9(tmp_path: Path) -> None:
    """With its values and its writes, in ten processes that are killed one after the other."""
    acknowledged: list[int] = []
    for first in range(0, 10_000, 1_000):
        writer = Forked(partial(_put_many, tmp_path / "home", first, 1_000))
        said = writer.heard() + writer.heard()
        acknowledged += [int(line) for line in (said + writer.kill()).split(b"\n")[:-1]]
    assert len(acknowledged) >= 20
    with memoranda.open(tmp_path / "home") as memory:
        listed = MemorandaSaver(memory).list({"configurable": {"thread_id": "t"}})
        found = {each.checkpoint["channel_values"]["number"]: each for each in listed}
        for number in acknowledged:
            assert found[number].pending_writes == [("task", "channel", number)]
            assert found[number].checkpoint["channel_values"]["constant"] == "x" * 5_000


@forking
def test_processes_and_threads_write_to_one_thread_id(tmp_path: Path) -> None:
    """None loses a checkpoint of another, while a third prunes another thread."""
    home = tmp_path / "home"
    processes = [Forked(partial(_put_many, home, first, 40)) for first in (1_000, 2_000)]
    with memoranda.open(home) as memory:
        saver = MemorandaSaver(memory)

        def put_many(first: int) -> None:
            for number in range(first, first + 40):
                _put(saver, number)

        workers = [threading.Thread(target=put_many, args=(first,)) for first in (3_000, 4_000)]
        for worker in workers:
            worker.start()
        for number in range(20):
            _put(saver, number, thread="other")
            saver.prune(["other"])
            assert _values(saver, "other") == [number]
        for worker in workers:
            worker.join(GIVE_UP)
        for process in processes:
            process.rest()
        expected = [first + each for first in (1_000, 2_000, 3_000, 4_000) for each in range(40)]
        assert sorted(_values(saver)) == expected


def _chat_builder(answer: str) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _: {"messages": [AIMessage(answer)]})
    builder.add_edge(START, "answer")
    return builder


def _chat(saver: Any, question: str, answer: str, thread: Any = _THREAD) -> list[Any]:
    graph = _chat_builder(answer).compile(checkpointer=saver)
    return list(graph.invoke(cast("Any", {"messages": [HumanMessage(question)]}), thread)["messages"])


def test_the_messages_in_checkpoints_are_a_conversation_of_the_record(memory: memoranda.Memory) -> None:
    """Each is recorded once and found, without its credentials; the state of the graph is as it was."""
    saver, secret = MemorandaSaver(memory), "sk-ant-abcDEF0123456789abcDEF0123"
    _chat(saver, f"The oven shows error E17, my key is {secret}.", "Replace its thermostat.")
    assert secret in _chat(saver, "Where is it?", "Behind the door.")[0].content
    (found,) = memory.search("thermostat E17")["results"]
    assert found["source"] == "langgraph" and found["session_id"] == "langgraph:t"
    said = memory.sessions.get_messages("langgraph:t")
    assert [each["role"] for each in said] == ["user", "assistant"] * 2 and secret not in str(said)


def test_a_deleted_thread_is_not_found_and_one_that_is_not_recorded_never_was(memory: memoranda.Memory) -> None:
    """The conversations of other threads and users stay."""
    other: Any = {"configurable": {"thread_id": "u"}}
    _chat(MemorandaSaver(memory), "The oven is cold.", "Light it.")
    _chat(MemorandaSaver(memory), "The mixer is loud.", "Oil it.", other)
    _chat(MemorandaSaver(memory.for_user("ana")), "The oven is new.", "Good.")
    _chat(MemorandaSaver(memory, record=False), "The fridge is warm.", "Shut it.", {"configurable": {"thread_id": "v"}})
    MemorandaSaver(memory).delete_thread("t")
    assert [memory.search(each)["count"] for each in ("oven", "mixer", "fridge")] == [0, 1, 0]
    assert memory.for_user("ana").search("oven")["count"] == 1


class _Approval(TypedDict):
    note: str
    approved: str


@pytest.fixture
def their_file(tmp_path: Path) -> Path:
    pytest.importorskip("langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed")
    return tmp_path / "checkpoints.sqlite"


def _their_saver(file: Path) -> Any:
    from langgraph.checkpoint.sqlite import SqliteSaver

    return SqliteSaver.from_conn_string(str(file))


def _import_command(memory: memoranda.Memory, *arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(command, ["import", *arguments, "--home", str(memory.home.root), "--yes", "--json"])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.output))


def _import(memory: memoranda.Memory, file: Path) -> tuple[str, int]:
    """Import a file; returns the id of the import, and how many states are new."""
    done = _import_command(memory, "langgraph", "--source", str(file))
    return done["import"], done["sources"][0]["states"]


def test_an_imported_thread_continues_from_its_state(memory: memoranda.Memory, their_file: Path) -> None:
    """Every checkpoint of LangGraph's own file is one of ours under its names, and each message is recorded once."""
    with _their_saver(their_file) as theirs:
        _chat(theirs, "The oven shows error E17.", "Replace its thermostat.")
        _chat(theirs, "Is it warm?", "Yes.", {"configurable": {"thread_id": "u"}})
        expected = list(theirs.list(None))
    saver = MemorandaSaver(memory)
    assert _import(memory, their_file)[1] == len(expected)
    # LangGraph's own saver leaves the paths of tasks out of what it returns, and so does ours.
    assert sorted(saver.list(None), key=str) == sorted(expected, key=str)
    _chat(saver, "Where is it?", "Behind the door.")
    contents = [each["content"] for each in memory.sessions.get_messages("langgraph:t")]
    assert contents == ["The oven shows error E17.", "Replace its thermostat.", "Where is it?", "Behind the door."]
    assert _import(memory, their_file)[1] == 0


def test_an_imported_thread_resumes_where_it_was_interrupted(memory: memoranda.Memory, their_file: Path) -> None:
    """What its tasks wrote before the interrupt is imported too, so that none runs again."""
    runs: list[str] = []

    def fetch(state: Any) -> dict[str, str]:
        runs.append("fetch")
        return {"note": "fetched"}

    builder = StateGraph(_Approval)
    builder.add_node("fetch", fetch)
    builder.add_node("ask", lambda state: {"approved": interrupt("Buy it?")})
    for name in ("fetch", "ask"):
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    with _their_saver(their_file) as theirs:
        builder.compile(checkpointer=theirs).invoke(cast("Any", {"note": ""}), _THREAD)
    _import(memory, their_file)
    graph = builder.compile(checkpointer=MemorandaSaver(memory))
    assert [each.value for each in graph.get_state(_THREAD).interrupts] == ["Buy it?"]
    assert graph.invoke(Command(resume="yes"), _THREAD) == {"note": "fetched", "approved": "yes"}
    assert runs == ["fetch"]


def test_imported_delta_channels_are_read_as_before(memory: memoranda.Memory, their_file: Path) -> None:
    """A checkpoint without a value finds it at its imported ancestors."""
    with _their_saver(their_file) as theirs:
        for number in range(4):
            _delta_graph(theirs).invoke({"turn": str(number)}, _THREAD)
        expected = _delta_graph(theirs).get_state(_THREAD).values
    _import(memory, their_file)
    graph = _delta_graph(MemorandaSaver(memory))
    assert graph.get_state(_THREAD).values == expected
    assert graph.invoke({"turn": "4"}, _THREAD)["items"] == [*expected["items"], "a4", "b4"]


def test_undo_removes_imported_states_unless_the_thread_continued(memory: memoranda.Memory, their_file: Path) -> None:
    """A thread that continued here keeps its history; the others can be imported again."""
    other: Any = {"configurable": {"thread_id": "u"}}
    with _their_saver(their_file) as theirs:
        _chat(theirs, "The oven is cold.", "Light it.")
        _chat(theirs, "The mixer is loud.", "Oil it.", other)
    saver = MemorandaSaver(memory)
    import_id, states = _import(memory, their_file)
    _chat(saver, "Where is it?", "Behind the door.")
    before = len(list(saver.list(_THREAD)))
    undone = _import_command(memory, "undo", import_id)
    assert (undone["states_removed"], undone["states_kept"]) == (states // 2, states // 2)
    assert saver.get_tuple(other) is None and len(list(saver.list(_THREAD))) == before
    assert _import(memory, their_file)[1] == states // 2
    assert saver.get_tuple(other) is not None


def test_states_of_a_deleted_or_partly_forgotten_conversation_do_not_return(
    memory: memoranda.Memory, their_file: Path
) -> None:
    """The later states in the file repeat what was removed here."""
    other: Any = {"configurable": {"thread_id": "u"}}
    saver = MemorandaSaver(memory)
    with _their_saver(their_file) as theirs:
        _chat(theirs, "The oven is cold, says Mallory.", "Light it.")
        _chat(theirs, "The mixer is loud.", "Oil it.", other)
        _import(memory, their_file)
        arguments = ["forget", "Mallory", "--home", str(memory.home.root), "--yes"]
        assert CliRunner().invoke(command, arguments).exit_code == 0
        saver.delete_thread("u")
        _chat(theirs, "Where is it?", "Behind the door.")
        _chat(theirs, "Is it warm?", "Yes.", other)
    assert _import(memory, their_file)[1] == 0
    assert saver.get_tuple(other) is None and "Mallory" not in str(saver.get_tuple(_THREAD))
