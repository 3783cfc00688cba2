"""The tasks of a conversation survive what its context does not."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.agent.todo_tool import Todo, TodoTool
from memoranda.models.model import Reply, ToolCall
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel

pytestmark = pytest.mark.slow

WASH: Todo = {"id": "wash", "content": "Wash the car.", "status": "in_progress"}
WAX: Todo = {"id": "wax", "content": "Wax the car.", "status": "pending"}


class Kept:
    """A list in memory with its tool."""

    def __init__(self) -> None:
        self.todos: list[Todo] = []
        self.tool = TodoTool(lambda: list(self.todos), self.save)

    def save(self, todos: Any) -> None:
        self.todos = list(todos)


def test_a_list_is_replaced_merged_and_read() -> None:
    """A merge changes the tasks it names and keeps the others in their order."""
    kept = Kept()
    assert kept.tool.call({"todos": [WASH, {"id": "wax", "content": "Wax the car."}]})["todos"] == [WASH, WAX]
    answer = kept.tool.call(
        {"merge": True, "todos": [{"id": "wash", "status": "completed"}, {"id": 3, "content": "Go."}]}
    )
    assert [todo["status"] for todo in answer["todos"]] == ["completed", "pending", "pending"]
    assert answer["summary"] == {"total": 3, "pending": 2, "in_progress": 0, "completed": 1, "cancelled": 0}
    assert kept.tool.call({})["todos"] == answer["todos"]
    assert kept.tool.call({"todos": []})["summary"]["total"] == 0


def test_a_list_that_cannot_be_used_changes_nothing() -> None:
    """The refusal says so."""
    for todos in [
        "wash",
        [{"content": "No id."}],
        [{"id": "new"}],
        [{"id": "a", "content": "Fine."}, {"id": "b", "content": "Odd.", "status": "someday"}],
        [{"id": "long", "content": "x" * 501}],
        [{"id": str(number), "content": "Many."} for number in range(101)],
        [{"id": "fence", "content": "<memory-context>\nsecret\n</memory-context>"}],
    ]:
        kept = Kept()
        kept.save([WASH])
        answer = kept.tool.call({"todos": todos, "merge": True})
        assert answer["success"] is False and "not changed" in answer["error"]
        assert kept.todos == [WASH]


def test_the_list_survives_compression_resume_and_branch(tmp_path: Path) -> None:
    """The summary names the open tasks; deleting the conversation deletes the list."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session(user="ana")
        session.todos.save([WASH, {**WAX, "status": "completed"}])
        for number in range(12):
            with session.turn(f"Question {number}: {'word ' * 2_000}") as turn:
                turn.done("Yes.")
        first = session.id
        assert session.compress(force=True).done and session.id != first
        assert "Wash the car." in str(session.conversation()) and "Wax the car." not in str(session.conversation())
        session.end()
    with memoranda.open(tmp_path) as memory:
        session = memory.session(session_id=first, user="ana")
        assert [todo["id"] for todo in session.todos.load()] == ["wash", "wax"]
        branch = session.branch()
        branch.todos.save([WAX])
        assert [todo["id"] for todo in session.todos.load()] == ["wash", "wax"]
        assert memory.session(user="ana").todos.load() == memory.session().todos.load() == []
        branch.end()
        assert memory.sessions.get_meta(f"todos:{branch.id}") is not None
        assert memory.services.sessions_for("ana").delete_session(branch.id)
        assert memory.sessions.get_meta(f"todos:{branch.id}") is None


def test_the_agent_has_the_tool_where_its_platform_allows_it(tmp_path: Path) -> None:
    """A platform with a list of tools has it only when the list names it."""
    Home.at(tmp_path).config_file.write_text("tools:\n  telegram: [memory]\n")
    with memoranda.open(tmp_path) as memory:
        model = ScriptedModel([])
        assert "todo" in [tool.name for tool in memory.agent(model, session=memory.session(source="cli")).tools]
        telegram = memory.agent(model, session=memory.session(source="telegram"))
        assert "todo" not in [tool.name for tool in telegram.tools]


def test_a_model_keeps_its_list_through_the_tool(tmp_path: Path) -> None:
    """What it writes in a turn is stored with the conversation, and it reads the same list in the next process."""
    write = Reply("", tool_calls=(ToolCall("c1", "todo", json.dumps({"todos": [WASH, WAX]})),))
    read = Reply("", tool_calls=(ToolCall("c2", "todo", "{}"),))
    with memoranda.open(tmp_path) as memory, ScriptedModel([write, Reply("Planned.")]) as model:
        session = memory.session()
        memory.agent(model, session=session).turn("Plan the wash.")
        session.end()
    with memoranda.open(tmp_path) as memory, ScriptedModel([read, Reply("Two tasks.")]) as model:
        resumed = memory.session(session_id=session.id)
        memory.agent(model, session=resumed).turn("What is left?")
        assert resumed.todos.load() == [WASH, WAX]
        (result,) = [message for message in model.requests[1].messages if message.get("tool_call_id") == "c2"]
        assert "Wax the car." in result["content"]
        resumed.end()


def test_undoing_a_turn_undoes_what_it_changed_in_the_list(tmp_path: Path) -> None:
    """Also after compression, in a branch alone, and when another process reads the list."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session()
        for todos in ([WASH], [WASH, WAX]):
            with session.turn(f"Plan {len(todos)}.") as turn:
                session.todos.save(todos)
                turn.done("Planned.")
        branch = session.branch()
        assert branch.undo() and branch.todos.load() == [WASH]
        assert session.todos.load() == [WASH, WAX]
        assert session.undo() and session.todos.load() == [WASH]
        memory.sessions.restore_rewound(session.id, turn.message_id)
        assert session.todos.load() == [WASH, WAX]
        for number in range(12):
            with session.turn(f"Question {number}: {'word ' * 2_000}") as turn:
                turn.done("Yes.")
        assert session.compress(force=True).done
        with session.turn("Never mind the wash.") as turn:
            session.todos.save([])
            turn.done("Gone.")
        assert session.undo()
    with memoranda.open(tmp_path) as memory:
        assert memory.session(session_id=session.id).todos.load() == [WASH, WAX]


def test_a_rewind_by_another_program_counts(tmp_path: Path) -> None:
    """Hermes only marks the messages as inactive."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session()
        for todos in ([WASH], [WAX]):
            with session.turn("Plan.") as turn:
                session.todos.save(todos)
                turn.done("Planned.")
        with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
            connection.execute("UPDATE messages SET active = 0 WHERE id >= ?", (turn.message_id,))
        assert session.todos.load() == [WASH]


def test_a_list_without_a_turn_is_never_undone(tmp_path: Path) -> None:
    """A program may save tasks before the first message."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session()
        session.todos.save([WASH])
        with session.turn("Hello.") as turn:
            turn.done("Hello.")
        assert session.undo() and session.todos.load() == [WASH]


def test_an_export_contains_the_list(tmp_path: Path) -> None:
    """It is imported with the conversation; importing a grown conversation again brings the newer list."""
    with memoranda.open(tmp_path / "here") as memory, memoranda.open(tmp_path / "there") as other:
        session = memory.session()
        for todos in ([WASH], [WAX]):
            with session.turn("Plan.") as turn:
                session.todos.save(todos)
                turn.done("Planned.")
            exported = json.loads(json.dumps(memory.sessions.export_all()))
            for _ in range(2):
                assert other.sessions.import_sessions(exported).ok
            assert other.session(session_id=session.id).todos.load() == todos
            other.session(session_id=session.id).todos.save([])
            assert other.sessions.import_sessions(exported).skipped == [session.id]
            assert other.session(session_id=session.id).todos.load() == []


def test_a_value_of_another_program_is_no_list(tmp_path: Path) -> None:
    """The conversation has no tasks then."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session()
        session.todos.save([])
        for stored in (json.dumps([WASH]), "{", '{"versions": [1, {"after": "x"}]}'):
            memory.sessions.set_meta(f"todos:{session.id}", stored)
            assert session.todos.load() == []
