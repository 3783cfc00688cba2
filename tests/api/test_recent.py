"""What was going on: for a person, for the first prompt of a session, and for no other prompt."""

import json
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

import memoranda
from memoranda.errors import SessionError

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory that is a project of its own."""
    directory = tmp_path / "atlas"
    directory.mkdir()
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    return directory


@pytest.fixture
def memory(tmp_path: Path, project: Path) -> Iterator[memoranda.Memory]:
    """A home with a conversation in the project, one elsewhere, and one that nothing answered."""
    with memoranda.open(tmp_path / "home") as opened:
        for source, directory, asked, answered in (
            ("codex", None, "Plan the trip to Oslo.", "The ferry leaves at nine."),
            ("claude-code", project, "Fix the deadlock in the queue.", "Fixed: the lock is released first."),
            ("codex", project, "Now write the test for it.", ""),
        ):
            with opened.session(source=source, directory=directory) as session, session.turn(asked) as turn:
                if answered:
                    turn.done(answered)
        yield opened


def test_recent_tells_what_was_asked_and_how_it_ended(memory: memoranda.Memory) -> None:
    """Newest first, over all agents."""
    found = memory.recent()["conversations"]
    assert [(each["agent"], each["asked"], each["ended"]) for each in found] == [
        ("codex", "Now write the test for it.", ""),
        ("claude-code", "Fix the deadlock in the queue.", "Fixed: the lock is released first."),
        ("codex", "Plan the trip to Oslo.", "The ferry leaves at nine."),
    ]


def test_recent_is_limited_to_a_project(memory: memoranda.Memory, project: Path) -> None:
    """By its directory, or as that of the working directory."""
    asked = [each["asked"] for each in memory.recent(str(project))["conversations"]]
    assert asked == ["Now write the test for it.", "Fix the deadlock in the queue."]


def test_this_outside_of_a_project_is_refused(memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of answering with the work of all projects."""
    monkeypatch.chdir("/")
    with pytest.raises(SessionError):
        memory.recent("this")


def test_the_block_for_a_prompt_has_at_most_800_characters(memory: memoranda.Memory) -> None:
    """However long the messages were."""
    for number in range(3):
        with memory.session() as session, session.turn(f"Explain part {number}: " + "words " * 500) as turn:
            turn.done("Because " * 500)
    text = memory.recent()["text"]
    assert 0 < len(text) <= 800
    assert "Explain part 2" in text


def test_the_first_prompt_that_asks_to_continue_gets_the_work_of_its_project(
    memory: memoranda.Memory, project: Path
) -> None:
    """In the copy for the model, not in the record; the work elsewhere stays out."""
    with memory.session(directory=project) as session, session.turn("go on") as turn:
        shown = str(turn.messages[-1]["content"])
        assert "Fix the deadlock" in shown
        assert "Oslo" not in shown
        turn.done("I will write the test.")
        assert "deadlock" not in str(memory.sessions.get_messages(session.id))


def test_other_prompts_get_nothing_of_it(memory: memoranda.Memory, project: Path) -> None:
    """Neither a task, nor a "go on" in the middle of a conversation."""
    with memory.session(directory=project) as session:
        for prompt in ("Write a haiku about locks.", "go on"):
            with session.turn(prompt) as turn:
                assert turn.messages[-1]["content"] == prompt
                turn.done("Done.")
        with session.turn("What did we do last time?") as turn:
            assert "Fix the deadlock" in str(turn.messages[-1]["content"])


def test_open_tasks_are_told(memory: memoranda.Memory) -> None:
    """Those that are not completed."""
    with memory.session() as session, session.turn("Release 2.0.") as turn:
        tasks = [
            {"id": "a", "content": "Write the notes", "status": "completed"},
            {"id": "b", "content": "Tag it", "status": "pending"},
        ]
        memory.sessions.save_conversation_todos(session.id, json.dumps(tasks))
        turn.done("Notes are written.")
    assert memory.recent()["conversations"][0]["open_tasks"] == ["Tag it"]


def test_an_empty_home_has_nothing_recent(tmp_path: Path) -> None:
    """And asking creates no record."""
    with memoranda.open(tmp_path / "home") as memory:
        assert memory.recent()["conversations"] == []
        assert memory.recent()["text"] == ""
        assert not memory.services.has_record


def test_recall_answers_a_question_about_the_last_work(memory: memoranda.Memory, project: Path) -> None:
    """Whose words match nothing that was said, so the search finds nothing; other questions get none of it."""
    result = memory.recall("where were we?")
    assert result.is_known
    assert "Now write the test for it." in result.block()
    assert len(result.block(400)) <= 400
    assert "Oslo" not in memory.recall("where were we?", project=str(project)).block()
    assert memory.recall("When does the ferry leave?").recent is None


def test_a_question_about_a_time_gets_the_work_of_that_time(
    memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much was done since; nothing if nothing was done then."""
    noon = datetime(2024, 3, 5, 12).timestamp()
    monkeypatch.setattr("memoranda.api.recent.time", SimpleNamespace(time=lambda: noon + 86_400))
    for number in range(31):
        # The first was yesterday, the others are of today.
        said = {"role": "user", "content": f"Start part {number}.", "timestamp": noon + 86_400 * bool(number) + number}
        memory.sessions.create_session(f"part{number}", "cli", started_at=said["timestamp"])
        memory.sessions.append_messages(f"part{number}", [said])
    recent = memory.recall("what did we do yesterday?").recent
    assert recent is not None
    assert [each["asked"] for each in recent["conversations"]] == ["Start part 0."]
    assert memory.recall("what did we do last year?").recent is None


def test_last_week_is_the_week_before_this_one(memory: memoranda.Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work of yesterday is not of last week, unless today is Monday."""
    noon = datetime(2024, 3, 7, 12).timestamp()
    monkeypatch.setattr("memoranda.api.recent.time", SimpleNamespace(time=lambda: noon))
    for days in (1, 4, 10, 11):
        said = {"role": "user", "content": f"Start part {days}.", "timestamp": noon - 86_400 * days}
        memory.sessions.create_session(f"part{days}", "cli", started_at=said["timestamp"])
        memory.sessions.append_messages(f"part{days}", [said])
    recent = memory.recall("what did we do last week?").recent
    assert recent is not None
    assert [each["asked"] for each in recent["conversations"]] == ["Start part 4.", "Start part 10."]
