"""A session through its public methods: compression, undo, branches, and what its provider is notified of."""

import json
import subprocess
from pathlib import Path

import pytest

import memoranda
from memoranda.agent.session_views import UndoneTurn
from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.errors import SessionError
from memoranda.models.model import Reply, ToolCall, Usage
from memoranda.testing.scripted.model import ScriptedModel
from tests.external.diary import diary_home, told, told_in_time

LONG = "The harbour office keeps its ledgers in the cellar, and the cellar floods in March. "


def talk(session: Session, turns: int, *, words: str = LONG) -> None:
    for number in range(turns):
        with session.turn(f"Question {number}: {words * 4}") as turn:
            turn.done(f"Answer {number}: {words * 4}")


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return memoranda.open(tmp_path / "home")


def test_a_compressed_conversation_goes_on_under_another_id(memory: Memory) -> None:
    """The same object, a linked session, and the same title with a number."""
    session = memory.session(source="cli")
    talk(session, 12)
    session.rename("Ledgers")
    first, prompt = session.id, session.prompt
    result = session.compress(force=True)
    assert (result.done, result.how) == (True, "extract")
    assert 0 < result.tokens_after < result.tokens_before
    assert session.id != first
    assert session.title == "Ledgers #2"
    assert session.prompt == prompt
    talk(session, 1)
    db = memory.sessions
    assert db.get_compression_lineage(session.id) == [first, session.id]
    old, new = db.get_session(first), db.get_session(session.id)
    assert old and new
    assert (old["end_reason"], new["parent_session_id"], new["relation"]) == ("compression", first, "compression")
    assert len(db.get_messages_as_conversation(session.id, include_ancestors=True)) == 26


def test_the_prompt_takes_in_what_was_saved_when_a_conversation_is_compressed(memory: Memory) -> None:
    """And not earlier; from then on there is nothing to note any more."""
    session = memory.session()
    talk(session, 12)
    memory.remember("The ledgers are bound in green cloth.")
    with session.turn("And now?") as turn:
        assert "green cloth" not in session.prompt
        assert "green cloth" in turn.messages[-1]["content"]
        turn.done("Noted.")
    assert session.compress(force=True).done
    assert "green cloth" in session.prompt
    with session.turn("And now?") as turn:
        assert turn.messages[-1]["content"] == "And now?"
    assert all("green cloth" not in str(message["content"]) for message in session.conversation())


def test_a_session_taken_up_again_has_the_prompt_it_had(tmp_path: Path) -> None:
    """Also after compression, in another process, and when memory has changed since."""
    with memoranda.open(tmp_path) as memory:
        session = memory.session(session_id="s")
        talk(session, 12)
        memory.remember("The ledgers are bound in green cloth.")
        session.compress(force=True)
        name, prompt = session.id, session.prompt
        memory.remember("The cellar is dry.")
    with memoranda.open(tmp_path) as memory:
        again = memory.session(session_id=name)
        assert again.prompt == prompt
        with again.turn("Still there?") as turn:
            assert "The cellar is dry." in turn.messages[-1]["content"]
            assert "green cloth" not in turn.messages[-1]["content"]


def test_a_compressed_conversation_is_taken_up_where_it_stands(memory: Memory) -> None:
    """By the id of any of its sessions."""
    session = memory.session(session_id="s")
    talk(session, 12)
    assert session.compress(force=True).done
    assert memory.session(session_id="s").id == session.id != "s"


def test_what_the_session_saved_itself_is_not_noted_as_news(memory: Memory) -> None:
    """The model has seen it in the result of its own call."""
    with memory.session() as session:
        assert session.call("memory", {"action": "add", "target": "memory", "content": "Tea at four."})["success"]
        with session.turn("Hello") as turn:
            assert turn.messages[-1]["content"] == "Hello"


def test_an_empty_session_is_not_compressed(memory: Memory) -> None:
    """There is nothing to do, and nothing is recorded."""
    session = memory.session()
    assert not session.compress(force=True).done
    assert not memory.home.state_db.exists()


def test_a_context_with_room_is_left_alone(memory: Memory) -> None:
    """By the provider's count where there is one, else by an estimate."""
    session = memory.session()
    session.use_model(ScriptedModel([Reply("no summary")], window=8_000))
    talk(session, 8)
    assert session.compress().why == "The context has room left."
    session.note_usage(Usage(7_900, 10), model="m", provider="scripted")
    session.record("assistant", "A long answer.")
    assert session.compress().done


def test_the_tokens_of_a_call_are_added_to_its_session(memory: Memory) -> None:
    """With the model and who bills for it."""
    session = memory.session()
    talk(session, 1)
    session.note_usage(Usage(100, 10, cache_read_tokens=80), model="m", provider="p")
    row = memory.sessions.get_session(session.id)
    assert row
    assert (row["input_tokens"], row["output_tokens"], row["cache_read_tokens"]) == (100, 10, 80)
    assert (row["api_call_count"], row["model"], row["billing_provider"]) == (1, "m", "p")


def test_the_last_turn_can_be_taken_back(memory: Memory) -> None:
    """The caller gets the user's text back; search finds it no more."""
    session = memory.session()
    assert session.undo() is None
    talk(session, 1)
    with session.turn("The zebra question") as turn:
        turn.done("The zebra answer")
    assert session.undo() == UndoneTurn("The zebra question", 2)
    assert len(session.conversation()) == 2
    assert memory.search("zebra")["count"] == 0
    session.undo()
    assert session.undo() is None


def test_a_branch_begins_with_the_same_context_and_prompt(memory: Memory) -> None:
    """And each goes its own way from there."""
    session = memory.session()
    talk(session, 2)
    branch = session.branch("Another way")
    assert branch.prompt == session.prompt
    assert branch.conversation() == session.conversation()
    talk(branch, 1)
    assert len(branch.conversation()) == len(session.conversation()) + 2
    row = memory.sessions.get_session(branch.id)
    assert row and (row["relation"], row["parent_session_id"], row["title"]) == ("branch", session.id, "Another way")


def test_a_title_that_is_taken_is_refused(memory: Memory) -> None:
    """And the session keeps the one it has."""
    first, second = memory.session(), memory.session()
    assert first.title is None
    assert first.rename(" My   talk ") == "My talk"
    second.rename("Other")
    with pytest.raises(SessionError):
        second.rename("My talk")
    assert second.title == "Other"


@pytest.mark.slow
def test_an_external_memory_is_notified_of_compression_in_order(tmp_path: Path) -> None:
    """Asked first, then notified of the old session's end and of the new id; a turn across both is delivered once."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session(source="cli") as session:
        talk(session, 12)
        old = session.id
        with session.turn("Which ledger?") as turn:
            turn.record("assistant", None, tool_calls=[
                {"id": "c", "type": "function", "function": {"name": "session_search", "arguments": "{}"}}
            ])  # fmt: skip
            turn.record("tool", "nothing", tool_call_id="c", tool_name="session_search")
            assert session.compress(force=True).done
            turn.done("The green one.")
        told_in_time(home, ["turn", "Which ledger?", "The green one."], ["switch", session.id, old, "compression"])
    heard = [line for line in told(home) if line[0] in ("turn", "end", "switch", "compress")]
    assert heard.count(["turn", "Which ledger?", "The green one."]) == 1
    kinds = [line[0] for line in heard]
    assert kinds.index("compress") < kinds.index("end") < kinds.index("switch")
    assert heard[kinds.index("end")] == ["end", 24]


@pytest.mark.slow
def test_delegated_work_is_linked_and_told(tmp_path: Path) -> None:
    """The delegate reads memory, writes none, and the external memory is notified of the result."""
    home = diary_home(tmp_path)
    steps = [
        Reply(tool_calls=(ToolCall("c", "delegate_task", '{"task": "Count the boxes."}'),)),
        Reply("There are seven."),
        Reply("Seven boxes."),
    ]
    with memoranda.open(home) as memory, ScriptedModel(steps) as model:
        agent = memory.agent(model, session=memory.session(source="cli"))
        assert agent.turn("How many boxes?") == "Seven boxes."
        told_in_time(home, ["delegation", "Count the boxes.", "There are seven."])
        assert ["delegation", "Count the boxes.", "There are seven."] in told(home)
        delegates = [
            row for row in memory.sessions.list_sessions_rich(include_children=True) if row["source"] == "subagent"
        ]
        assert [(row["parent_session_id"], row["relation"]) for row in delegates] == [(agent.session.id, "delegation")]
        names = {tool.name for tool in model.requests[1].tools}
        assert "memory" not in names and "session_search" in names
        assert "`memory`" not in model.requests[1].system
    assert ["turn", "Count the boxes.", "There are seven."] not in told(home)


def test_two_processes_in_one_conversation_stay_together(tmp_path: Path) -> None:
    """A session that another process has compressed continues in its continuation."""
    with memoranda.open(tmp_path) as one, memoranda.open(tmp_path) as other:
        first = one.session(session_id="s")
        talk(first, 12)
        second = other.session(session_id="s")
        assert second.compress(force=True).done
        with first.turn("Still here?") as turn:
            turn.done("Yes.")
        assert first.id == second.id != "s"
        assert second.conversation()[-2:] == first.conversation()[-2:]
        assert second.conversation()[-1]["content"] == "Yes."


def test_taking_back_never_takes_a_summary_with_it(memory: Memory) -> None:
    """What was compressed stays; there is an end to taking back."""
    session = memory.session()
    talk(session, 12)
    assert session.compress(force=True).done
    taken = 0
    while session.undo():
        taken += 1
    assert taken < 12
    live = memory.sessions.live_context(session.id)
    assert [each for each in live if each.is_summary]


def test_recalled_memory_is_recorded_nowhere_that_the_model_repeats_it(tmp_path: Path) -> None:
    """Neither in its text, nor in its reasoning, nor in what it calls a tool with."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session() as session:
        with session.turn("Who is Otto?") as turn:
            fence = turn.messages[-1]["content"].removeprefix("Who is Otto?")
            assert "zebra" in fence
            arguments = json.dumps({"task": f"Look for him.{fence}"})
            turn.record(
                "assistant", f"Let me see.{fence}", reasoning=f"Hm.{fence}",
                reasoning_details=[{"type": "thinking", "thinking": fence}],
                tool_calls=[{"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}}],
            )  # fmt: skip
        stored = memory.sessions.get_messages(session.id)[-1]
    assert "zebra" not in json.dumps(stored)
    assert json.loads(stored["tool_calls"][0]["function"]["arguments"])["task"].startswith("Look for him.")


def test_a_credential_in_the_prompt_is_sent_as_it_is_stored(tmp_path: Path) -> None:
    """So that taking the session up again changes no byte."""
    (tmp_path / ".env").write_text("DB_HOST=heron-seven.internal\n")
    with memoranda.open(tmp_path) as memory:
        memory.remember("The database is on heron-seven.internal.")
        session = memory.session(session_id="s")
        talk(session, 1)
        prompt = session.prompt
    with memoranda.open(tmp_path) as memory:
        assert memory.session(session_id="s").prompt == prompt


def test_news_in_one_file_is_told_although_the_other_was_just_written(memory: Memory) -> None:
    """The result of a call shows one file only."""
    session = memory.session()
    memory.remember("Lives in Lisbon.", "user")
    session.call("memory", {"action": "add", "target": "memory", "content": "Tea at four."})
    with session.turn("Hello") as turn:
        assert "Lisbon" in turn.messages[-1]["content"]
        assert "Tea at four" not in turn.messages[-1]["content"]


@pytest.mark.slow
def test_an_external_memory_receives_nothing_twice_and_nothing_unfinished(tmp_path: Path) -> None:
    """Neither a summary, nor what the session before delivered, nor a turn that was interrupted."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session(source="cli") as session:
        talk(session, 12)
        with session.turn("Interrupted"):
            pass
        assert session.compress(force=True).done
        talk(session, 1)
    told_in_time(home, ["end", 2])
    heard = [line for line in told(home) if line[0] in ("compress", "end")]
    assert heard == [["compress", 24], ["end", 24], ["end", 2]]


def test_the_tools_of_an_external_memory_stay_when_it_is_gone(tmp_path: Path) -> None:
    """They stand first in what is cached; a call of one that is not there is answered."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory, memory.session(session_id="s") as session:
        talk(session, 1)
        before = [tool.openai_schema() for tool in session.tools]
    (home / "plugins" / "diary" / "__init__.py").write_text("raise RuntimeError('down')")
    with memoranda.open(home) as memory, memory.session(session_id="s") as session:
        assert [tool.openai_schema() for tool in session.tools] == before
        assert session.call("diary_read", {})["success"] is False


def test_a_session_knows_the_project_it_is_about(memory: Memory, tmp_path: Path) -> None:
    """By the repository of the directory that the user works in."""
    place = tmp_path / "work"
    place.mkdir()
    for words in (["init", "-q"], ["remote", "add", "origin", "https://example.org/ana/bakery.git"]):
        subprocess.run(["git", *words], cwd=place, check=True)
    session = memory.session(directory=place)
    talk(session, 1)
    row = memory.sessions.get_session(session.id)
    assert row and "ana/bakery" in row["project"]


def test_a_first_turn_with_too_much_output_is_made_shorter(memory: Memory) -> None:
    """There is nothing to summarise yet, but the output can be cut."""
    session = memory.session()
    session.use_model(ScriptedModel([], window=8_192))
    with session.turn("Read it all.") as turn:
        turn.record("assistant", None, tool_calls=[
            {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        ])  # fmt: skip
        turn.record("tool", LONG * 800, tool_call_id="c", tool_name="read")
        assert session.compress(force=True).how == "pruned"
        assert len(str(turn.messages)) < 20_000
    assert memory.search("ledgers cellar floods")["count"] == 1


def test_a_delegate_has_no_more_tools_than_its_platform(tmp_path: Path) -> None:
    """And a platform that is not allowed to delegate cannot."""
    (tmp_path / "config.yaml").write_text("tools:\n  telegram: [memory]\n  signal: [delegate_task, skills_list]\n")
    with memoranda.open(tmp_path) as memory:
        agent = memory.agent(ScriptedModel([]), session=memory.session(source="telegram"))
        assert [tool.name for tool in agent.tools] == ["memory"]
        steps = [
            Reply(tool_calls=(ToolCall("c", "delegate_task", '{"task": "Count."}'),)), Reply("Seven."), Reply("Seven.")
        ]  # fmt: skip
        with ScriptedModel(steps) as model:
            memory.agent(model, session=memory.session(source="signal")).turn("How many?")
        assert {tool.name for tool in model.requests[1].tools} == {"skills_list", "scratch"}


def test_what_was_saved_in_a_turn_that_is_taken_back_is_told_again(memory: Memory) -> None:
    """The entry stays, and the model has not seen it any more."""
    session = memory.session()
    talk(session, 1)
    with session.turn("Remember tea.") as turn:
        session.call("memory", {"action": "add", "target": "memory", "content": "Tea at four."})
        turn.done("Saved.")
    session.undo()
    with session.turn("Hello") as turn:
        assert "Tea at four." in turn.messages[-1]["content"]


@pytest.mark.slow
def test_another_process_that_compressed_is_followed_by_everything(tmp_path: Path) -> None:
    """Also by taking back, branching and naming; the session that was left stays ended."""
    with memoranda.open(tmp_path) as one, memoranda.open(tmp_path) as other:
        for step in ("undo", "branch", "rename"):
            first = one.session(session_id=step)
            talk(first, 12)
            assert other.session(session_id=step).compress(force=True).done
            getattr(first, step)(*(["A name"] if step == "rename" else []))
            assert first.id != step
            left = one.sessions.get_session(step)
            assert left and left["end_reason"] == "compression"


def test_no_false_note_follows_a_restart_when_memory_names_a_credential(tmp_path: Path) -> None:
    """What is shown, stored and compared is the same text."""
    (tmp_path / ".env").write_text("DB_HOST=heron-seven.internal\n")
    with memoranda.open(tmp_path) as memory:
        memory.remember("The database is on heron-seven.internal.")
        talk(memory.session(session_id="s"), 1)
    with memoranda.open(tmp_path) as memory, memory.session(session_id="s").turn("Hello") as turn:
        assert turn.messages[-1]["content"] == "Hello"


def test_a_turn_goes_on_where_another_process_compressed_it(tmp_path: Path) -> None:
    """Also when that happens between the question and the answer."""
    with memoranda.open(tmp_path) as one, memoranda.open(tmp_path) as other:
        first = one.session(session_id="s")
        talk(first, 12)
        with first.turn("And now?") as turn:
            assert other.session(session_id="s").compress(force=True).done
            turn.done("Still here.")
        assert first.id != "s"
        assert first.conversation()[-1]["content"] == "Still here."


def test_a_credential_in_a_summary_reaches_neither_the_record_nor_the_next_context(tmp_path: Path) -> None:
    """Neither one that this machine holds nor one that looks like one, in whatever message; the counts say so."""
    known, token = "harbour-crane-77-key", "ghp" + "_AbC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a"
    (tmp_path / ".env").write_text(f"CRANE_KEY={known}\n")
    summary = "\n\n".join(
        f"## {name}\n- The ledgers are opened with {known}, and the cellar with {token}."
        for name in ("Goal", "Constraints", "Decisions", "State", "Files", "Open points")
    )
    with memoranda.open(tmp_path) as memory:
        session = memory.session(source="cli")
        talk(session, 12)
        session.use_model(ScriptedModel(lambda *_: Reply(summary)))
        assert session.compress(force=True).how == "model"
        with session.turn("And now?") as turn:
            sent = json.dumps(turn.messages)
            turn.done("Go on.")
        assert sent.count("[redacted:") == 12
        assert known not in sent and token not in sent
        assert memory.sessions.statistics()["redacted_secrets"] == 12
        assert memory.search("ledgers cellar opened")["success"]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != ".env")
    assert known.encode() not in kept and token.encode() not in kept
