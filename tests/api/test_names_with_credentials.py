"""A credential in an id, a source or a project reaches no file of a home, by whatever door it comes."""

import json
import os
import time
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import HomeError
from memoranda.integrations.hooks.capture import capture_transcript, record_turns
from memoranda.integrations.hooks.events import spool_directory
from memoranda.integrations.hooks.log import HookLog, was_given_memory
from memoranda.models.model import Reply
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from tests.external.diary import diary_home
from tests.importers.claude_code_lines import assistant, text, user
from tests.importers.import_home import write_lines
from tests.integrations.mcp.hosts import ask, server_for

pytestmark = pytest.mark.slow

# In the form of an issuer, put together here so that no scanner takes this file for a leak.
MARK = "ghp" + "_"
SESSION, SOURCE, PARENT, DIRECTORY, PLATFORM = (
    MARK + letter + "bC1dEf2gHi3jKl4mNo5pQr6sTu7vWx8yZ9a" for letter in "ABCDE"
)
# The diary, a provider of the tests, writes down what it receives; the other file is that of the host.
_NOT_OURS = ("diary.jsonl",)


def _leaks(home: Path) -> list[str]:
    """The files with a credential in them, or in their names."""
    return sorted(
        str(path.relative_to(home))
        for path in home.rglob("*")
        if MARK in str(path.relative_to(home))
        or (path.is_file() and path.name not in _NOT_OURS and MARK.encode() in path.read_bytes())
    )


def test_a_session_with_a_credential_as_its_id(tmp_path: Path) -> None:
    """Its turns, its memories, its deliveries, its review and its costs; it is resumed and found by the same id."""
    home, directory = diary_home(tmp_path / "home"), tmp_path / DIRECTORY
    directory.mkdir()
    with memoranda.open(home) as memory:
        memory.sessions.create_session(PARENT, "cli")
        session = memory.session(
            session_id=SESSION, source=SOURCE, directory=directory, platform=PLATFORM, parent=PARENT
        )
        agent = memory.agent(ScriptedModel([Reply("One."), Reply("Two.")]), session=session)
        agent.turn("The heron cluster has port 5433.")
        session.call("memory", {"action": "add", "content": "Drinks tea."})
        session.todos.save([{"id": "1", "content": "Order tea", "status": "pending"}])
        session.branch("A branch").end()
        session.end()
        resumed = memory.session(session_id=SESSION, source=SOURCE)
        assert resumed.id == session.id
        assert len(resumed.conversation()) == 2
        stored = resumed.switch(SESSION).id
        for arguments in ({"session_id": SESSION}, {"query": "heron port", "source": SOURCE}):
            answer = memory.call("session_search", arguments)
            assert answer["success"]
            assert stored in json.dumps(answer), arguments
        assert memory.sessions.search_messages("heron", source_filter=[SOURCE])
        assert _leaks(home) == []
        memory.forget(session=SESSION)
        assert memory.sessions.get_session(SESSION) is None
    assert _leaks(home) == []


def test_a_captured_session_with_a_credential_as_its_id(tmp_path: Path) -> None:
    """The transcript of a host, its directory and its file name; a second capture adds nothing."""
    home = tmp_path / "home"
    transcript = tmp_path / "projects" / f"-srv-{DIRECTORY}" / f"{SESSION}.jsonl"
    said = user("u1", "Hi", session=SESSION, cwd=f"/srv/{DIRECTORY}")
    write_lines(transcript, [said, assistant("a1", text("Hello"), session=SESSION)])
    with memoranda.open(home) as memory:
        first = capture_transcript(memory, transcript, "claude-code", SESSION)
        os.utime(transcript, (time.time() + 5, time.time() + 5))
        second = capture_transcript(memory, transcript, "claude-code", SESSION)
        assert first is not None and second is not None
        assert (first.messages, second.messages) == (2, 0)
        assert len(memory.sessions.get_messages(f"claude-code-{SESSION}")) == 2
    assert _leaks(home) == []


def test_a_turn_of_a_plugin_with_a_credential_as_its_session(tmp_path: Path) -> None:
    """It is recorded once, and the file of the plugin is deleted."""
    home = Home.at(tmp_path / "home")
    spool = spool_directory(home.root, "hermes")
    spool.mkdir(parents=True)
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    for number in range(2):
        turn = {"session_id": SESSION, "at": time.time(), "messages": messages}
        (spool / f"{number}.json").write_text(json.dumps(turn))
        assert record_turns(home, "hermes", None) == 1
    with memoranda.open(home.root) as memory:
        assert len(memory.sessions.get_messages(f"hermes-{SESSION}")) == 2
    assert _leaks(home.root) == []


def test_the_log_of_hooks_has_no_credential(tmp_path: Path) -> None:
    """And still knows the session."""
    log = HookLog(tmp_path)
    log.begin("claude-code", "UserPromptSubmit", SESSION, "Hi")
    log.end("given", "the notes and the profile", {"memory": True})
    assert was_given_memory(tmp_path, SESSION)
    assert _leaks(tmp_path) == []


def test_a_search_of_an_mcp_host_stores_no_credential(tmp_path: Path) -> None:
    """Neither its arguments nor its answer."""
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session(SESSION, SOURCE, project=DIRECTORY)
        memory.sessions.append_message(SESSION, "user", "The heron cluster has port 5433.")
        server = server_for(memory)
        for arguments in ({"session_id": SESSION}, {"query": "heron", "source": SOURCE, "project": DIRECTORY}):
            answer = json.dumps(ask(server, "tools/call", name="session_search", arguments=arguments))
            assert "5433" in answer, arguments
            assert MARK not in answer
    assert _leaks(tmp_path) == []


def test_a_user_id_must_contain_no_credential(tmp_path: Path) -> None:
    """A new one is refused, because it would become the name of a directory."""
    with pytest.raises(HomeError, match="credential"):
        memoranda.open(tmp_path, user=SESSION)
    with memoranda.open(tmp_path) as memory, pytest.raises(HomeError, match="credential"):
        memory.session(user=SESSION)
    assert _leaks(tmp_path) == []


def test_without_redaction_names_stay(tmp_path: Path) -> None:
    """The switch is the user's."""
    (tmp_path / "config.yaml").write_text("sessions:\n  redact_secrets: false\n")
    with memoranda.open(tmp_path) as memory, memory.session(session_id=SESSION, source=SOURCE) as session:
        assert session.id == SESSION
