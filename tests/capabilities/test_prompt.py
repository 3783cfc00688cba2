"""The working context (L0): a prompt in tiers that stays the same, and recall that never enters the record."""

from pathlib import Path

import pytest

import memoranda
from memoranda.models.model import Reply
from memoranda.testing.scripted.model import ScriptedModel
from tests.capabilities.conversations import fill_context, take_turn
from tests.external.diary import diary_home


@pytest.mark.slow
def test_the_prompt_is_stored_and_changes_only_with_compression(tmp_path: Path) -> None:
    """Turns, memory writes, a restart and a changed project file change no byte; compression builds it again."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Run the tests with make.")
    with memoranda.open(tmp_path / "home") as memory:
        session = memory.session(source="cli", directory=project)
        prompt = session.prompt
        take_turn(session, "Hello.")
        session.call("memory", {"action": "add", "target": "memory", "content": "The port is 8443."})
        (project / "AGENTS.md").write_text("Run the tests with tox.")
        assert session.prompt == prompt
        session.end()
        row = memory.sessions.get_session(session.id)
        assert row is not None and row["system_prompt"] == prompt
    with memoranda.open(tmp_path / "home") as memory:
        session = memory.session(source="cli", directory=project, session_id=session.id)
        model = ScriptedModel([Reply("Yes.")])
        memory.agent(model, session=session).turn("And now?")
        assert model.requests[0].system == session.prompt == prompt
        session.end()
        session = memory.session(source="cli", directory=project, session_id=session.id)
        fill_context(session)
        assert session.compress(force=True).done
        assert session.prompt != prompt
        assert "The port is 8443." in session.prompt and "with tox" in session.prompt


def test_the_prompt_goes_from_identity_to_platform(tmp_path: Path) -> None:
    """What rarely changes comes first, so that the cached prefix of a model vendor is as long as possible."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Run the tests with make.")
    home = diary_home(tmp_path / "home")
    (home / "SOUL.md").write_text("You are Ada, a careful engineer.")
    with memoranda.open(home) as memory:
        memory.remember("Project uses pytest with xdist.")
        memory.remember("Prefers concise responses.", "user")
        prompt = memory.session(source="telegram", directory=project, instructions="Answer in English.").prompt
    parts = [
        "You are Ada",
        "session_search",
        "skill_view",
        "Answer in English.",
        "Run the tests with make.",
        "MEMORY (your personal notes) [1% — 31/2,200 chars]",
        "Project uses pytest with xdist.",
        "USER PROFILE (who the user is) [1% — 26/1,375 chars]",
        "Prefers concise responses.",
        "There is a diary.",
        "This conversation began on",
        "Telegram",
    ]
    assert [part for part in parts if part not in prompt] == []
    assert sorted(parts, key=prompt.index) == parts


def test_without_an_own_identity_there_is_a_default_one(tmp_path: Path) -> None:
    """The prompt never begins with nothing."""
    with memoranda.open(tmp_path) as memory:
        assert memory.session(source="cli").prompt.strip()


def test_recall_is_fenced_into_a_copy_of_the_message(tmp_path: Path) -> None:
    """The model reads it in one block inside the user's message; the record, search and the provider never have it."""
    home = diary_home(tmp_path)
    with memoranda.open(home) as memory:
        session = memory.session(source="cli")
        model = ScriptedModel([Reply("Otto.")])
        memory.agent(model, session=session).turn("What is the zebra called?")
        sent = model.requests[0].messages[-1]["content"]
        assert sent.count("<memory-context>") == sent.count("</memory-context>") == 1
        assert sent.index("What is the zebra called?") >= 0 and "The zebra is called Otto." in sent
        assert "The zebra is called Otto." not in model.requests[0].system
        assert [message["content"] for message in session.conversation()] == ["What is the zebra called?", "Otto."]
        assert memory.sessions.search_messages("memory-context OR previous") == []
        session.end()
    assert "called Otto" not in (home / "diary.jsonl").read_text()
