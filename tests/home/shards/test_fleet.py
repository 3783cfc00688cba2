"""A home with two stores: every user's sessions and messages are in the store that the map says, and follow a move."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import memoranda
from memoranda.cli.main import command as program
from memoranda.errors import ConfigError, MovedUserError
from memoranda.home.shards.placement import shard_of
from tests.cli.terminal import Terminal
from tests.service.http.running_service import run_service
from tests.storage.postgres.servers import Server
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path, postgres_server: Server, short_settling: None) -> Iterator[Path]:
    with postgres_server.schema() as first, postgres_server.schema() as second:
        (tmp_path / "config.yaml").write_text(f"store:\n  url: {first}\n  servers: [{second}]\n")
        yield tmp_path


_NODE = """
import sys
from memoranda.home.shards.directory import Directory
from memoranda.upkeep.home_tables import component_schemas
schemas = component_schemas()
print("ready", flush=True)
sys.stdin.readline()
Directory(sys.argv[1:], schemas).close()
"""


def test_nodes_that_start_together_on_empty_servers_all_start(postgres_server: Server) -> None:
    """Each creates what it finds missing, one after the other; the tables, functions and ids are then there once."""
    with postgres_server.schema() as first, postgres_server.schema() as second:
        nodes = [
            subprocess.Popen(
                [sys.executable, "-c", _NODE, first, second],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for node in nodes:
            assert node.stdout is not None and node.stdout.readline() == "ready\n"
        for node in nodes:
            assert node.stdin is not None
            node.stdin.write("\n")
            node.stdin.flush()
        failed = [error for node in nodes for _, error in [node.communicate(timeout=GIVE_UP)] if node.returncode]
        assert not failed, failed[0][-500:]


def _say(memory: memoranda.Memory, text: str, session_id: str = "chat") -> None:
    with memory.session(source="test", session_id=session_id) as session, session.turn(text) as turn:
        turn.done("Noted.")


def test_a_user_moves_with_conversations_and_search(home: Path) -> None:
    """Another process opens the user where the user is now; the one that was open says that the user has moved."""
    terminal = Terminal(home)
    with memoranda.open(home) as memory:
        ana = memory.for_user("ana")
        _say(ana, "The marmalade is in the cellar.")
        moved = terminal.json("shards", "move", str(shard_of("ana")), "--to", "1")
        assert (moved["users"], moved["store"]) == (1, 1)
        with pytest.raises(MovedUserError):
            ana.sessions.create_session("another", "test")
        memory.services.refresh_users()
        ana = memory.for_user("ana")
        _say(ana, "The marmalade is in the pantry now.")
        found = ana.search("marmalade")
        assert found["count"] == 1
        assert [row["content"] for row in ana.sessions.get_messages("chat") if row["role"] == "user"] == [
            "The marmalade is in the cellar.",
            "The marmalade is in the pantry now.",
        ]
    listed = terminal.json("shards", "list")["stores"]
    assert listed[1]["shards"] == [shard_of("ana")]
    assert "0-5, 7-63" in terminal.ok("shards", "list")


def test_a_text_and_a_user_are_forgotten_in_the_store_that_has_them(home: Path) -> None:
    """Conversations, curated memory and keys, whichever store has which."""
    terminal = Terminal(home)
    terminal.json("key", "create", "--user", "ana", "--scope", "read")
    terminal.json("shards", "move", str(shard_of("ana")), "--to", "1")
    with memoranda.open(home) as memory:
        for name in ("ana", "ben"):
            user = memory.for_user(name)
            _say(user, "The marmalade is in the cellar.", session_id=f"chat-{name}")
            user.remember("The marmalade is in the cellar.")
    assert terminal.json("forget", "marmalade", "--all-users", "--yes")["left"] == []
    with memoranda.open(home) as memory:
        for name in ("ana", "ben"):
            user = memory.for_user(name)
            assert user.search("marmalade")["count"] == 0
            assert user.entries() == ()
            assert all("marmalade" not in row["content"] for row in user.sessions.get_messages(f"chat-{name}"))
        memory.for_user("ana").remember("The jam is in the attic.")
    assert terminal.json("forget", "--user", "ana", "--yes")["left"] == []
    assert terminal.json("key", "list") == []
    with memoranda.open(home) as memory:
        assert memory.for_user("ana").entries() == ()
        assert memory.for_user("ana").sessions.list_sessions_rich() == []
        assert memory.for_user("ben").sessions.list_sessions_rich() != []


def test_every_command_for_all_users_refuses_on_a_fleet(home: Path) -> None:
    """A command that would cover the users of one store only says so, and does nothing."""
    with memoranda.open(home) as memory:
        _say(memory.for_user("ana"), "The marmalade is in the cellar.")
    exported = home / "chat.jsonl"
    exported.write_text("{}\n")
    found = dict(_commands_for_all_users(program, []))
    assert len(found) > 8
    for name, command in found.items():
        if name == "forget":
            # It covers all stores, see above; a session is looked for in one of them.
            arguments = ["--session", "chat"]
        else:
            needed = [each for each in command.params if isinstance(each, click.Argument)]
            arguments = [str(exported) if each.name == "file" else "chat" for each in needed]
        result = Terminal(home).run(*name.split(), *arguments, "--all-users")
        assert result.exit_code == 1 and "over 2 stores" in result.output, f"{name}: {result.output}"


def _commands_for_all_users(command: click.Command, path: list[str]) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), name)
            assert found is not None
            yield from _commands_for_all_users(found, [*path, name])
    elif any(each.name == "all_users" for each in command.params):
        yield " ".join(path), command


def test_a_home_with_one_store_has_no_shards(tmp_path: Path) -> None:
    """The command says what to set."""
    result = Terminal(tmp_path).run("shards", "list")
    assert result.exit_code == 1
    assert "store.servers" in result.output
    (tmp_path / "config.yaml").write_text("store:\n  servers: [postgresql://a@b/c]\n")
    with pytest.raises(ConfigError, match=r"needs store\.url"):
        memoranda.open(tmp_path)


def test_the_service_follows_a_user_who_moves(home: Path) -> None:
    """A request that the old store refuses is answered from the new one, without an error for the client."""
    with run_service(home) as running:
        client = running.client(running.key(user="ana"))
        assert client.post("/v1/sessions", json={"id": "chat", "source": "test"}).status_code == 201
        for number, target in enumerate((1, 0, 1)):
            message = {"messages": [{"role": "user", "content": f"Note {number}"}]}
            assert client.post("/v1/sessions/chat/messages", json=message).is_success
            Terminal(home).json("shards", "move", str(shard_of("ana")), "--to", str(target))
        listed = client.get("/v1/sessions/chat/messages").json()
        assert [each["content"] for each in listed["messages"]] == ["Note 0", "Note 1", "Note 2"]
