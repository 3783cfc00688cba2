"""The memory of a project in sessions: in the prompt from the first request, and byte-stable while it is written."""

from pathlib import Path

import pytest

import memoranda
from memoranda.errors import SessionError
from memoranda.integrations.memory_text import MemoryText, read_memory_text
from tests.support.projects.repositories import make_repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _directory(tmp_path: Path, name: str) -> Path:
    directory = tmp_path / "work" / name
    directory.mkdir(parents=True)
    return directory


def test_a_session_in_a_project_shows_and_writes_its_memory(home: Path, tmp_path: Path) -> None:
    """The prompt of the running session does not change by a byte, also when it is resumed without the directory."""
    heron, crane = _directory(tmp_path, "heron"), _directory(tmp_path, "crane")
    with memoranda.open(home) as memory:
        with memory.session(directory=heron) as session:
            session.record("user", "hello")
            before = session.prompt
            answer = session.call("memory", {"target": "project", "action": "add", "content": "Uses tabs here."})
            assert answer["success"] and session.prompt == before
            assert session.remember("Uses make here.", "project")["success"]
        resumed = memory.session(session_id=session.id)
        assert resumed.prompt == before and resumed.entries("project") == ("Uses tabs here.", "Uses make here.")
        later = memory.session(directory=heron).prompt
        assert "Uses tabs here." in later and later.index("PROJECT MEMORY") > 0
        assert "tabs" not in memory.session(directory=crane).prompt + memory.session().prompt


def test_what_another_session_saves_reaches_a_running_one_as_a_note(home: Path, tmp_path: Path) -> None:
    """As for the other two files."""
    heron = _directory(tmp_path, "heron")
    with memoranda.open(home) as memory:
        session = memory.session(directory=heron)
        session.record("user", "hello")
        memory.session(directory=heron).remember("Uses tabs here.", "project")
        with session.turn("What is new?") as turn:
            assert "Uses tabs here." in str(turn.messages[-1]["content"])


def test_a_project_is_named_by_a_part_of_its_name(home: Path, tmp_path: Path) -> None:
    """One that nobody knows is an error, and creates nothing."""
    heron = _directory(tmp_path, "heron")
    with memoranda.open(home) as memory:
        memory.session(directory=heron).record("user", "hello")
        assert memory.remember("Uses tabs here.", "project:heron")["success"]
        assert memory.entries(f"project:{heron}") == ("Uses tabs here.",)
        with pytest.raises(SessionError, match="No conversation"):
            memory.remember("x", "project:unknown")


def test_a_repository_that_is_renamed_stays_its_project(home: Path, tmp_path: Path) -> None:
    """It is published nowhere, and its first commit says which one it is."""
    heron = make_repository(tmp_path / "work" / "heron", "Begin")
    with memoranda.open(home) as memory:
        with memory.session(directory=heron) as session:
            session.record("user", "Where is the depot?")
            session.remember("Uses tabs here.", "project")
        crane = heron.rename(tmp_path / "work" / "crane")
        assert "Uses tabs here." in memory.session(directory=crane).prompt
        assert memory.search("depot", project=str(crane))["count"] == 1


def test_a_directory_that_is_renamed_stays_its_project_if_a_link_says_so(home: Path, tmp_path: Path) -> None:
    """Without a link, another directory never gets its memory."""
    heron = _directory(tmp_path, "heron")
    with memoranda.open(home) as memory:
        with memory.session(directory=heron) as session:
            session.record("user", "Where is the depot?")
            session.remember("Uses tabs here.", "project")
        crane = heron.rename(tmp_path / "work" / "crane")
        assert "Uses tabs here." not in memory.session(directory=crane).prompt
        heron.symlink_to(crane)
        assert "Uses tabs here." in memory.session(directory=crane).prompt
        assert memory.search("depot", project=str(crane))["count"] == 1


def test_a_host_gets_the_block_with_the_memory_text(home: Path, tmp_path: Path) -> None:
    """For hooks by the directory of the host, over MCP by its project."""
    heron = _directory(tmp_path, "heron")
    with memoranda.open(home) as memory:
        memory.session(directory=heron).remember("Uses tabs here.", "project")
        assert "Uses tabs here." in read_memory_text(memory.services.curated_for(None), str(heron))
        assert "Uses tabs here." not in read_memory_text(memory.services.curated_for(None), str(tmp_path))
        assert "Uses tabs here." in MemoryText(memory, str(heron)).text
