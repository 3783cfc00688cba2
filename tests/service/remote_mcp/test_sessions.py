"""The sessions of remote clients are recognised by their ids, and never by anything that a client can make up."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.integrations.mcp.server import McpServer
from memoranda.integrations.tool_host import ToolHost
from memoranda.service.remote_mcp.sessions import RemoteSessions, SessionOwner

ANA, BEN = SessionOwner("k1/=ana", b"secret"), SessionOwner("k2/=ben", b"secret")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[McpServer]:
    with memoranda.open(tmp_path) as memory:
        yield McpServer(ToolHost(memory, source="mcp"))


def test_a_session_belongs_to_its_owner(server: McpServer) -> None:
    """Another key does not find it, and cannot end it."""
    sessions = RemoteSessions()
    session_id = sessions.start(ANA, server)
    assert sessions.find(ANA, session_id, lambda: pytest.fail("it is cached")) is server
    assert sessions.find(BEN, session_id, lambda: pytest.fail("not created")) is None
    assert sessions.end(BEN, session_id) is False
    assert sessions.end(ANA, session_id) is True
    assert sessions.find(ANA, session_id, lambda: pytest.fail("not created")) is None


@pytest.mark.parametrize("made_up", ["", ".", "abc", "abc.", "abc.def", "." + "0" * 32, "ä.ö"])
def test_an_id_that_was_not_given_out_is_unknown(made_up: str) -> None:
    """So a client cannot create sessions by naming them."""
    assert RemoteSessions().find(ANA, made_up, lambda: pytest.fail("not created")) is None


def test_another_process_continues_a_session(server: McpServer) -> None:
    """With the same secret it recognises the id; with another one it does not."""
    session_id = RemoteSessions().start(ANA, server)
    assert RemoteSessions().find(ANA, session_id, lambda: server) is server
    assert RemoteSessions().find(SessionOwner(ANA.name, b"other"), session_id, lambda: server) is None


def test_only_so_many_sessions_are_kept_in_memory(server: McpServer) -> None:
    """Those that were not used for longest are dropped, and continued when they are used again."""
    now = [0.0]
    sessions = RemoteSessions(max_sessions=3, idle_seconds=10, clock=lambda: now[0])
    ids = [sessions.start(ANA, server) for _ in range(5)]
    assert len(sessions) == 3
    assert sessions.find(ANA, ids[0], lambda: server) is server
    now[0] = 11.0
    sessions.start(ANA, server)
    assert len(sessions) == 1
