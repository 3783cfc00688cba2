"""Which conversation `memoranda sessions` takes when it is named by a title, by an id, or by the beginning of one."""

from pathlib import Path

import pytest

import memoranda
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from tests.cli.terminal import Terminal
from tests.search.past import tell

pytestmark = pytest.mark.slow


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """A home with two conversations that have nothing in common but their names."""
    terminal = Terminal(tmp_path / "home")
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "first", ["the one I mean"], title="Plan")
        tell(memory.sessions, "second", ["another one altogether"], title="Plan #2")
    return terminal


def _there(terminal: Terminal) -> set[str]:
    return {row["id"] for row in terminal.json("sessions", "list", "--all-users", "--everything")["sessions"]}


def test_an_exact_title_comes_before_later_numbers(terminal: Terminal) -> None:
    """To show, rename, export and delete; each says which one it took."""
    which = "This is 'Plan' (first), not 'Plan #2' (second)."
    for words in (["show", "Plan"], ["export", "Plan"], ["rename", "Plan", "Plan"]):
        result = terminal.run("sessions", *words)
        assert result.stderr == f"{which}\n"
        assert "first" in result.stdout or "the one I mean" in result.stdout
        assert "second" not in result.stdout
    result = terminal.run("sessions", "delete", "Plan", "--yes")
    assert (result.exit_code, result.stderr) == (0, f"{which}\n")
    assert _there(terminal) == {"second"}


def test_deleting_without_a_question_takes_only_what_is_named_in_full(terminal: Terminal) -> None:
    """Doing it twice deletes nothing else: neither the next number nor an id that begins so."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "first draft", ["an id that begins like another one"])
    for name, near in (("Plan", "'Plan #2' (second)"), ("first", "first draft")):
        assert terminal.run("sessions", "delete", name, "--yes").exit_code == (0 if name == "Plan" else 1)
        result = terminal.run("sessions", "delete", name, "--yes")
        assert result.exit_code == 1
        assert near in result.stderr
        assert _there(terminal) == {"second", "first draft"}
    result = terminal.run("sessions", "delete", "nobody", "second", "--yes")
    assert result.exit_code == 1
    assert _there(terminal) == {"second", "first draft"}


def test_deleting_with_a_question_shows_what_a_short_name_means(terminal: Terminal) -> None:
    """By id and title, before it asks."""
    result = terminal.run("sessions", "delete", "sec", input="n\n")
    asked, _, _ = result.stderr.partition("Delete them for good?")
    assert "second" in asked and "Plan #2" in asked
    assert _there(terminal) == {"first", "second"}
    terminal.ok("sessions", "delete", "sec", input="y\n")
    assert _there(terminal) == {"first"}


def test_a_title_without_its_number_means_the_latest(terminal: Terminal) -> None:
    """A note says so."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "third", ["the latest"], title="Plan #3")
        memory.sessions.delete_session("first")
    result = terminal.run("sessions", "show", "Plan")
    assert result.stderr == "No conversation is called 'Plan'. This is 'Plan #3' (third), not 'Plan #2' (second).\n"
    assert "the latest" in result.stdout


def test_one_conversation_under_several_numbers_is_not_ambiguous(tmp_path: Path) -> None:
    """A compressed conversation continues under the next number: nothing else is meant, and no note is printed."""
    terminal = Terminal(tmp_path / "home")
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "begun", ["how it began"], title="Plan")
        memory.sessions.end_session("begun", "compression")
        memory.sessions.create_session("going on", "cli", parent_session_id="begun", title="Plan #2")
        assert memory.sessions.get_compression_lineage("begun") == ["begun", "going on"]
    for name in ("Plan", "Plan #2"):
        result = terminal.run("sessions", "show", name)
        assert "how it began" in result.stdout
        assert result.stderr == ""


def test_an_id_comes_before_a_title_with_a_note(terminal: Terminal) -> None:
    """An id is the only unique name."""
    terminal.ok("sessions", "rename", "second", "first")
    result = terminal.run("sessions", "show", "first")
    assert "the one I mean" in result.stdout
    assert result.stderr == "This is 'Plan' (first), not 'first' (second).\n"


def test_a_title_that_several_users_have_is_refused_with_their_ids(terminal: Terminal) -> None:
    """A command that sees all users needs the id."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.services.sessions_for("ana"), "hers", ["Ana's plan"], title="Plan")
    for words in (["show"], ["delete", "--yes"]):
        result = terminal.run("sessions", words[0], "Plan", "--all-users", *words[1:])
        assert result.exit_code == 1
        assert "first" in result.stderr and "hers" in result.stderr
    assert _there(terminal) == {"first", "second", "hers"}
    assert "Ana's plan" in terminal.ok("--user", "ana", "sessions", "show", "Plan")


def test_a_name_longer_than_any_title_matches_no_title(tmp_path: Path) -> None:
    """Its first hundred characters may be those of another session."""
    terminal = Terminal(tmp_path / "home")
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "long", ["hello"], title="x" * 100)
    for words in (["show", "x" * 101], ["delete", "x" * 101, "--yes"]):
        assert terminal.run("sessions", *words).exit_code == 1
    result = terminal.run("chat", "--resume", "x" * 101, "--query", "hello")
    assert result.exit_code == 1
    assert "No session has the id or title" in result.output
    assert _there(terminal) == {"long"}


def test_answers_in_json_name_what_they_took(terminal: Terminal) -> None:
    """And say nothing beside it."""
    result = terminal.run("sessions", "delete", "Plan", "--yes", "--json")
    assert '"first"' in result.stdout
    assert result.stderr == ""


@pytest.mark.usefixtures("model_sdks")
def test_a_title_resumes_the_conversation_with_its_latest_number(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To show or delete, the exact title counts; to continue, the latest of its row."""
    with ScriptedServer([Reply("Hello.")]) as server:
        monkeypatch.setenv("MEMORANDA_MODEL_NAME", "scripted-1")
        monkeypatch.setenv("MEMORANDA_MODEL_BASE_URL", server.openai_url)
        terminal.ok("chat", "--resume", "Plan", "--query", "hello again")
    assert "hello again" in terminal.ok("sessions", "show", "Plan #2")


def test_a_branch_is_shown_with_what_it_came_from(tmp_path: Path) -> None:
    """Since its own words begin in the middle."""
    terminal = Terminal(tmp_path / "home")
    terminal.ok("memory", "list")
    with memoranda.SessionDB(terminal.home / "state.db") as db:
        db.create_session("s", "cli")
        db.append_message("s", "user", "said before")
        db.branch_session("s", "b")
        db.append_message("b", "user", "said in the branch")
    shown = terminal.ok("sessions", "show", "b")
    assert "branch of s" in shown
    assert "branch of" not in terminal.ok("sessions", "show", "s")


def test_a_part_of_an_id_is_shown_where_it_occurs(terminal: Terminal) -> None:
    """Nothing is chosen by it, because it may be part of the next id too."""
    result = terminal.run("sessions", "show", "ECON")
    assert result.exit_code == 1
    assert "No session has the id or title 'ECON'. These ids contain it:\n  second  Plan #2" in result.stderr


def test_what_the_list_shows_names_a_conversation_in_any_case(terminal: Terminal) -> None:
    """A title or a first question, whole or a beginning that no other has; --yes still wants it exactly."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "untitled", ["Refactor the cart so that prices are Decimal"])
        tell(memory.sessions, "other", ["Refactor the mailer"])
        tell(memory.sessions, "titled", ["hello"], title="Fix the Build")
    for name in ("Refactor the cart so that prices are Decimal", "refactor THE CART"):
        assert "so that prices" in terminal.ok("sessions", "show", name)
        assert "untitled" in terminal.ok("sessions", "export", name)
    assert "hello" in terminal.ok("sessions", "show", "fix the build")
    assert "hello" in terminal.ok("sessions", "show", "Fix the")
    result = terminal.run("sessions", "delete", "fix the build", "--yes")
    assert result.exit_code == 1 and "'Fix the Build' (titled)" in result.stderr
    terminal.ok("sessions", "archive", "refactor the cart")
    terminal.ok("sessions", "unarchive", "Refactor the cart")
    assert "untitled" in terminal.ok("forget", "--session", "refactor the cart", "--dry-run")
    assert terminal.run("chat", "--resume", "no such", "--query", "x").exit_code == 1


def test_a_beginning_that_several_conversations_have_lists_them(terminal: Terminal) -> None:
    """With their ids and what the list shows; one that is called so in full is meant nevertheless."""
    with memoranda.open(terminal.home) as memory:
        tell(memory.sessions, "a", ["Refactor the cart"])
        tell(memory.sessions, "b", ["Refactor the cart again"])
    for words in (["sessions", "show", "refactor"], ["chat", "--query", "x", "--resume", "refactor"]):
        result = terminal.run(*words)
        assert result.exit_code == 1
        assert "  a  Refactor the cart\n" in result.output and "  b  Refactor the cart again\n" in result.output
    assert "again" not in terminal.ok("sessions", "show", "refactor the cart")
