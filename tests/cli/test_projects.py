"""Projects and resume commands in `memoranda search` and `memoranda sessions`."""

from pathlib import Path

import pytest

import memoranda
from memoranda.support.projects import project_of
from tests.cli.terminal import Terminal
from tests.search.past import tell
from tests.support.projects.repositories import git, make_repository

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A home with two conversations about a repository and one about nothing, seen from another clone of it."""
    house = make_repository(tmp_path / "house", "first", origin="https://github.com/ana/house")
    git(tmp_path, "clone", "--quiet", str(house), "copy")
    terminal = Terminal(tmp_path / "home")
    with memoranda.open(terminal.home) as memory:
        db = memory.sessions
        db.create_session(
            "claude-code-1", "claude-code", host="claude-code", host_session_id="0b1c", directory=str(house),
            project=project_of(house),
        )  # fmt: skip
        db.append_message("claude-code-1", "user", "the lock of the house")
        tell(db, "chat", ["a lock anywhere"])
    monkeypatch.chdir(tmp_path / "copy")
    return terminal


def test_search_is_limited_to_the_repository_that_one_is_in(terminal: Terminal, tmp_path: Path) -> None:
    """In another clone of it, and by its name from anywhere."""
    for project in ("this", "ana/house", "house"):
        answer = terminal.json("search", "lock", "--project", project)
        assert [result["session_id"] for result in answer["results"]] == ["claude-code-1"]
        listed = terminal.json("sessions", "list", "--project", project)["sessions"]
        assert [row["id"] for row in listed] == ["claude-code-1"]
        assert listed[0]["project"] == answer["results"][0]["project"] == project_of(tmp_path / "house")
    assert len(terminal.json("search", "lock")["results"]) == 2


def test_a_hit_from_another_program_says_how_to_resume_it_there(terminal: Terminal, tmp_path: Path) -> None:
    """The exact command, in search and in show, for people and as JSON; one of our own has none."""
    command = f"cd {tmp_path / 'house'} && claude --resume 0b1c"
    assert f"resume: {command}\n" in terminal.ok("search", "lock")
    resumes = {each["session_id"]: each.get("resume") for each in terminal.json("search", "lock")["results"]}
    assert resumes == {"claude-code-1": command, "chat": None}
    assert f"resume: {command}\n" in terminal.ok("sessions", "show", "claude-code-1")
    assert terminal.json("sessions", "show", "claude-code-1")[-1]["resume"] == command
    assert "resume" not in terminal.ok("sessions", "show", "chat")
    (tmp_path / "house").rename(tmp_path / "moved")
    for words in (["search", "lock"], ["sessions", "show", "claude-code-1"], ["recent"]):
        assert f"resume: {command}  (this directory is gone, or on another machine)\n" in terminal.ok(*words)
    assert "resume" not in terminal.json("sessions", "show", "chat")[-1]


def test_people_see_the_name_of_a_project_without_its_first_commit(terminal: Terminal) -> None:
    """Wherever sessions are shown."""
    for words in (["search", "house"], ["sessions", "list"], ["sessions", "show", "claude-code-1"]):
        text = terminal.ok(*words)
        assert "github.com/ana/house" in text
        assert "#" + (project_of(Path.cwd()) or "").partition("#")[2] not in text


def test_an_unknown_project_is_answered_with_the_known_ones(terminal: Terminal) -> None:
    """It is not an error: it may exist later."""
    for words in (["search", "lock"], ["sessions", "list"]):
        text = terminal.ok(*words, "--project", "shed")
        assert "No conversation is about that project." in text
        assert "Known projects: github.com/ana/house." in text
    assert terminal.json("search", "lock", "--project", "shed")["results"] == []


@pytest.mark.parametrize("words", [["search", "lock"], ["sessions", "list"]], ids=" ".join)
def test_in_a_directory_without_a_repository_this_is_that_directory(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """With the directories below it; a directory in which no conversation took place is told the known projects."""
    plain, empty = tmp_path / "plain", tmp_path / "empty"
    (plain / "part").mkdir(parents=True)
    empty.mkdir()
    with memoranda.open(terminal.home) as memory:
        for name, directory in (("whole", plain), ("part", plain / "part")):
            memory.session(session_id=name, directory=directory).record("user", "a lock of the shed")
    answers = {}
    for directory in (plain, plain / "part", empty):
        monkeypatch.chdir(directory)
        answer = terminal.json(*words, "--project", "this")
        rows = answer["results"] if "results" in answer else answer["sessions"]
        answers[directory] = {row.get("session_id") or row["id"] for row in rows}
    assert answers == {plain: {"whole", "part"}, plain / "part": {"part"}, empty: set()}
    assert str(plain) in terminal.ok(*words, "--project", "this")


@pytest.mark.parametrize("words", [["search", "lock"], ["sessions", "list"]], ids=" ".join)
def test_where_there_is_no_project_this_is_refused(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """In the home directory and in a directory that is gone, with what to do instead."""
    gone = tmp_path / "gone"
    for directory in (Path.home(), gone):
        directory.mkdir()
        monkeypatch.chdir(directory)
        if directory == gone:
            gone.rmdir()
        result = terminal.run(*words, "--project", "this")
        assert result.exit_code == 1
        assert "owner/name" in result.output


@pytest.mark.parametrize("words", [["search", "x"], ["sessions", "list"]], ids=" ".join)
def test_an_empty_home_works_and_stays_empty(terminal: Terminal, tmp_path: Path, words: list[str]) -> None:
    """It has no project, and listing creates nothing."""
    empty = Terminal(tmp_path / "empty")
    assert empty.ok(*words, "--project", "this").strip() == "No conversation is about that project."
    empty.json(*words, "--project", "ana/house")
    assert not empty.home.exists()
