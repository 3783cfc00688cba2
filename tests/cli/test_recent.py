"""`memoranda recent` and the hook tell what was going on."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from memoranda.home.config import locate_home
from memoranda.integrations.hooks.answers import HookPayload, answer_event
from memoranda.integrations.hooks.events import USER_PROMPT
from memoranda.integrations.hooks.home_config import HomeConfig

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with one conversation."""
    with (
        memoranda.open(tmp_path / "home") as memory,
        memory.session(source="codex") as session,
        session.turn("Why does the build fail?") as turn,
    ):
        turn.done("The lock file is stale.")
    return tmp_path / "home"


def test_recent_shows_the_last_conversations(home: Path) -> None:
    """With what was asked and how it ended, also as JSON and as a block for a prompt."""
    run = CliRunner()
    shown = run.invoke(command, ["recent", "--home", str(home)]).output
    assert "asked: Why does the build fail?" in shown
    assert "ended: The lock file is stale." in shown
    answer = json.loads(run.invoke(command, ["recent", "--json", "--home", str(home)]).output)
    assert [each["agent"] for each in answer["conversations"]] == ["codex"]
    assert answer["text"] == run.invoke(command, ["recent", "--fenced", "--home", str(home)]).output.rstrip("\n")


def test_recent_says_what_a_conversation_is_about(home: Path) -> None:
    """By its title or first question, where the last prompt does not; also in the block for a prompt."""
    with memoranda.open(home) as memory:
        for title in ("", "Mailer"):
            with memory.session(source="codex") as session:
                for prompt in ("Refactor the cart so that prices are Decimal.", "Great, commit it."):
                    with session.turn(prompt) as turn:
                        turn.done("Done.")
                memory.sessions.set_session_title(session.id, title)
    shown = CliRunner().invoke(command, ["recent", "--home", str(home)]).output
    assert [line for line in shown.splitlines() if "about: " in line] == [
        "  about: Mailer",
        "  about: Refactor the cart so that prices are Decimal.",
    ]
    block = CliRunner().invoke(command, ["recent", "--fenced", "--home", str(home)]).output
    assert "about> Mailer" in block and "about> Refactor the cart" in block and len(block) <= 800


def test_a_search_that_asks_what_was_done_shows_the_last_conversation_first(home: Path) -> None:
    """The words need not have been said then. Another query, a filter and JSON get the search alone."""
    run = CliRunner()
    shown = run.invoke(command, ["search", "where", "were we?", "--home", str(home)]).output
    assert "ended: The lock file is stale." in shown.partition("'memoranda recent' shows more.")[0]
    for words in (["lock file"], ["where were we?", "--since", "3d"], ["where were we?", "--json"]):
        assert "asked:" not in run.invoke(command, ["search", *words, "--home", str(home)]).output


def test_recent_of_an_empty_home_says_so(tmp_path: Path) -> None:
    """Instead of printing nothing."""
    assert (
        CliRunner().invoke(command, ["recent", "--home", str(tmp_path)]).output == "There are no conversations yet.\n"
    )


@pytest.mark.parametrize("words", [["recent"], ["recall", "build"]])
def test_an_unknown_project_is_named_as_the_reason(home: Path, words: list[str]) -> None:
    """As `search` does; "recent" lists the known ones."""
    with memoranda.open(home) as memory:
        memory.sessions.create_session("s-heron", "cli", project="/work/heron")
    shown = CliRunner().invoke(command, [*words, "--project", "nope", "--home", str(home)]).output
    assert shown.startswith("No conversation is about that project.")
    assert ("heron" in shown) == (words == ["recent"])


def _hook(home: Path, prompt: str) -> str:
    payload = HookPayload(USER_PROMPT, "new-session", "", prompt)
    return answer_event(HomeConfig(locate_home(home)), None, payload, "claude-code").text


@pytest.mark.parametrize("prompt", ["go on", "继续", "where were we?"])
def test_a_host_gets_the_last_work_for_a_prompt_that_asks_to_continue(home: Path, prompt: str) -> None:
    """Also for one that is shorter than any prompt that is searched for."""
    assert "The lock file is stale." in _hook(home, prompt)


@pytest.mark.parametrize("prompt", ["yes", "Write a haiku about rivers and mountains."])
def test_a_host_gets_nothing_of_it_for_another_prompt(home: Path, prompt: str) -> None:
    """The prompt has nothing to do with it."""
    assert _hook(home, prompt) == ""
