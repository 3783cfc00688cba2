"""A developer's mistake raises at once and says what to do; a model's mistake is answered in JSON."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import HomeError, SessionError
from tests.conftest import unprivileged

pytestmark = pytest.mark.slow


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    with memoranda.open(tmp_path / "home") as memory:
        yield memory


def test_an_unknown_option_of_search_is_refused_with_a_suggestion(memory: Any) -> None:
    """It would be ignored otherwise; the known ones are those of the tool."""
    with pytest.raises(TypeError, match=r"no option 'limits'\. Did you mean 'limit'\?"):
        memory.search("x", limits=3)
    with pytest.raises(TypeError, match="There are: limit, sort"):
        memory.search("x", xyzzy=3)


def test_an_unknown_option_of_a_session_is_refused_with_a_suggestion(memory: Any) -> None:
    """Its own options are suggested as well as the facts of a gateway."""
    with pytest.raises(TypeError, match=r"no option 'instruction'\. Did you mean 'instructions'\?"):
        memory.session(instruction="Be brief.")
    with pytest.raises(TypeError, match=r"no option 'chatid'\. Did you mean 'chat_id'\?"):
        memory.session(chatid="7")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 51}, "limit must be from 1 to 50, not 51"),
        ({"limit": 0}, "limit must be from 1 to 50, not 0"),
        ({"limit": "three"}, "limit must be a whole number"),
        ({"session_id": "s", "window": 21}, "window must be from 1 to 20, not 21"),
        ({"since": "someday"}, "since: 'someday' is not a time"),
        ({"role_filter": "robot"}, "robot"),
        ({"session_id": "nowhere"}, "no session 'nowhere'"),
    ],
)
def test_a_value_that_cannot_be_used_raises_a_value_error(memory: Any, options: dict[str, Any], message: str) -> None:
    """It is the same error as for every other problem of the record."""
    with pytest.raises(SessionError, match=message) as caught:
        memory.search(**options)
    assert isinstance(caught.value, ValueError)


def test_the_tools_of_a_model_stay_lenient(memory: Any) -> None:
    """A model's numbers are brought into range, and every mistake is an answer."""
    session = memory.session()
    for call in (memory.call, session.call):
        assert call("session_search", {"query": "x", "limit": 50, "limits": 3})["success"]
        assert call("session_search", {"limit": "many"})["reason"] == "invalid"
        assert call("session_search", None)["reason"] == "invalid"
        assert call("no_such_tool", {})["reason"] == "unavailable"


@pytest.mark.parametrize("content", [None, 3, "", "  \n", [], {}])
def test_a_turn_needs_a_message_of_the_user(memory: Any, content: Any) -> None:
    """Nothing is recorded without one."""
    session = memory.session()
    with pytest.raises(SessionError, match="user's message"):
        session.turn(content)
    assert memory.sessions.session_count() == 0


@pytest.mark.parametrize("content", ["Hello", [{"type": "text", "text": "Hello"}]])
def test_a_turn_takes_text_and_content_parts(memory: Any, content: Any) -> None:
    """Chat APIs accept both too."""
    assert memory.session().turn(content).messages == [{"role": "user", "content": content}]


MISTAKES: dict[str, tuple[Callable[[Any], object], str]] = {
    "an unknown role": (lambda into: into.record("asistant", "x"), "not 'asistant'. Did you mean 'assistant'?"),
    "no role": (lambda into: into.record(None, "x"), "not None"),
    "a result without its call": (lambda into: into.record("tool", "x", tool_name="foo"), "needs the tool_call_id"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_message_that_no_chat_api_accepts_is_refused(memory: Any, mistake: str) -> None:
    """This is true in a session and in a turn; the turn stays open."""
    record, message = MISTAKES[mistake]
    session = memory.session()
    turn = session.turn("Hello")
    for into in (session, turn):
        with pytest.raises(SessionError, match=message):
            record(into)
    turn.done("Hi")
    assert [recorded["role"] for recorded in session.conversation()] == ["user", "assistant"]


@pytest.mark.parametrize("role", ["asistant", "session_meta", "", None, 5])
def test_the_store_refuses_an_unknown_role(memory: Any, role: Any) -> None:
    """As a turn does, in every method that records; nothing is stored or replaced."""
    db = memory.sessions
    db.create_session("s", "cli")
    db.append_message("s", "developer", "kept")
    records: list[Callable[[], object]] = [
        lambda: db.append_message("s", role, "x"),
        lambda: db.append_messages("s", [{"role": "user", "content": "x"}, {"role": role, "content": "x"}]),
        lambda: db.replace_messages("s", iter([{"role": role, "content": "x"}])),
    ]
    for record in records:
        with pytest.raises(SessionError, match="The role of a message is one of"):
            record()
    assert [message["content"] for message in db.get_messages("s")] == ["kept"]


@pytest.mark.parametrize("reply", [None, 3, [], {}, ["text"], [{"role": "robot", "content": "x"}]])
def test_a_turn_is_not_done_without_an_answer(memory: Any, reply: Any) -> None:
    """It can still be answered."""
    session = memory.session()
    turn = session.turn("Hello")
    with pytest.raises(SessionError):
        turn.done(reply)
    assert turn.interrupted
    turn.done("Hi")
    assert not turn.interrupted


def test_a_turn_after_the_end_resumes_the_session(memory: Any) -> None:
    """A message that the user sends late is recorded."""
    session = memory.session()
    session.turn("First").done("One")
    session.end()
    session.turn("Second").done("Two")
    assert memory.sessions.get_session(session.id)["ended_at"] is None
    assert len(session.conversation()) == 4


def test_a_closed_memory_stays_closed(tmp_path: Path) -> None:
    """Whatever would read or write it again raises; what a model calls answers, and changes nothing."""
    memory: Any = memoranda.open(tmp_path)
    session = memory.session()
    session.turn("Hello").done("Hi")
    memory.close()
    memory.close()
    uses: list[Callable[[], object]] = [
        memory.session, lambda: memory.search("x"), lambda: memory.sessions, lambda: session.turn("More"),
        lambda: session.record("user", "x"), session.conversation, memory.entries, lambda: memory.remember("x"),
        lambda: session.remember("x"), lambda: memory.items.get(("n",), "k"), lambda: memory.recall("x"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(HomeError, match=r"is closed. memoranda.open\(\) opens it again"):
            use()
    assert not memory.call("session_search", {"query": "x"})["success"]
    for owner in (memory, session):
        assert not owner.call("memory", {"action": "add", "content": "x"})["success"]
    assert not (tmp_path / "memories" / "MEMORY.md").exists()


def test_nothing_is_added_to_a_turn_that_has_ended(memory: Any) -> None:
    """Neither after its answer nor after it was left: the next turn may have begun."""
    session = memory.session()
    with session.turn("First") as done:
        done.done("One")
    with session.turn("Second") as left:
        left.record("assistant", "Thinking.")
    for turn in (done, left):
        with pytest.raises(SessionError, match="This turn has ended"):
            turn.record("assistant", "Late.")
    assert len(session.conversation()) == 4


def test_a_directory_with_other_files_is_not_opened(tmp_path: Path) -> None:
    """It was probably named by mistake."""
    (tmp_path / "passwd").touch()
    with pytest.raises(HomeError, match="not a home of Memoranda"):
        memoranda.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["passwd"]


def test_a_home_is_refused_where_no_directory_can_be(tmp_path: Path) -> None:
    """When it is opened, with the path and what to do; nothing is created."""
    file = tmp_path / "file"
    file.write_text("mine")
    for home in (file, file / "below" / "it"):
        with pytest.raises(HomeError, match="file is not a directory"):
            memoranda.open(home)
    with unprivileged() as directory:
        directory.chmod(0o500)
        with pytest.raises(HomeError, match=f"no home at {directory / 'home'}, and {directory} cannot be written to"):
            memoranda.open(directory / "home")
        directory.chmod(0o700)
        assert memoranda.open(directory / "home").entries() == ()
        assert not (directory / "home").exists()


@pytest.mark.parametrize("home", [3, b"/tmp/home", ["/tmp/home"]])
def test_a_home_that_is_no_path_is_refused(home: Any) -> None:
    """Its text would be taken for the name of a directory."""
    with pytest.raises(TypeError, match="The home is a path"):
        memoranda.open(home)


def test_what_is_remembered_is_text_for_a_known_memory(memory: Any) -> None:
    """A receipt that says no is easily not looked at."""
    for remember in (memory.remember, memory.session().remember):
        with pytest.raises(SessionError, match=r"There is no memory 'users'\. Did you mean 'user'\?"):
            remember("Prefers tea.", "users")
        with pytest.raises(TypeError, match="takes the fact as text, not int"):
            remember(3)


def test_a_word_does_not_make_the_curator_write(memory: Any) -> None:
    """curate("propose") would tidy up, because a word counts as true."""
    with pytest.raises(TypeError, match="apply=True or apply=False, not 'propose'"):
        memory.curate("propose")


def test_asyncio_is_pointed_to_its_own_function(memory: Any) -> None:
    """With `async with` around a home, a session or a turn of the other kind."""

    async def enter(opened: Any) -> None:
        async with opened:
            pass

    session = memory.session()
    for opened in (memory, session, session.turn("Hello")):
        with pytest.raises(TypeError, match="open_async"):
            asyncio.run(enter(opened))


def test_completion_offers_the_public_names_and_nothing_else() -> None:
    """Each of them exists."""
    assert dir(memoranda) == sorted(memoranda.__all__)
    assert all(getattr(memoranda, name) is not None for name in dir(memoranda))
