"""`/mcp` of the service answers clients with a key, each with the memory and the rights of that key."""

import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.integrations.mcp.hosts import MODERN
from tests.service.http.running_service import RunningService
from tests.service.remote_mcp.remote_service import INITIALIZE, ask, rpc, run_remote_service
from tests.timing import GIVE_UP


def _call(running: RunningService, key: str, name: str, **arguments: Any) -> Any:
    answer = ask(running, rpc("tools/call", name=name, arguments=arguments), key=key).json()
    return json.loads(answer["result"]["content"][0]["text"])


def _start(running: RunningService, key: str) -> str:
    started = ask(running, INITIALIZE, key=key)
    assert started.status_code == 200
    return started.headers["Mcp-Session-Id"]


def test_a_remote_client_does_not_see_where_the_home_is(remote_service: RunningService) -> None:
    """A receipt names the file, and not the machine's path to it."""
    key = remote_service.key(user="far-away")
    call = rpc("tools/call", name="remember", arguments={"text": "The depot is in Leeds."})
    answer = json.loads(ask(remote_service, call, key=key).json()["result"]["content"][0]["text"])
    assert answer["stored_in"].startswith("<home>/")
    assert str(remote_service.service.memory.home.root) not in json.dumps(answer)


@pytest.mark.slow
def test_a_session_is_started_used_and_ended(remote_service: RunningService) -> None:
    """After its end it does not exist any more, and the client has to initialize again."""
    key = remote_service.key(user="session-user")
    session = _start(remote_service, key)
    assert ask(remote_service, rpc("tools/list"), key=key, Mcp_Session_Id=session).status_code == 200
    assert ask(remote_service, None, key=key, method="DELETE", Mcp_Session_Id=session).status_code == 204
    for method in ("POST", "DELETE"):
        gone = ask(remote_service, rpc("ping"), key=key, method=method, Mcp_Session_Id=session)
        assert gone.status_code == 404
    assert ask(remote_service, rpc("ping"), key=key).json()["result"] == {}


@pytest.mark.slow
def test_the_memory_text_of_a_session_does_not_change(remote_service: RunningService) -> None:
    """Later changes follow separately, so the prefix of a host's prompt stays the same."""
    key = remote_service.key(user="frozen-user")
    assert _call(remote_service, key, "remember", text="CI runs on Debian 12.")["success"]
    session = _start(remote_service, key)
    read = rpc("resources/read", uri="memoranda://memory")
    before = ask(remote_service, read, key=key, Mcp_Session_Id=session).json()["result"]["contents"]
    assert _call(remote_service, key, "remember", text="The staging database is called heron.")["success"]
    frozen, changes = ask(remote_service, read, key=key, Mcp_Session_Id=session).json()["result"]["contents"]
    assert [frozen] == before and "heron" in changes["text"]
    assert "heron" in ask(remote_service, INITIALIZE, key=key).json()["result"]["instructions"]


@pytest.mark.slow
def test_a_session_survives_a_restart_of_the_service(tmp_path: Path) -> None:
    """Because many clients give up when their session is unknown."""
    with run_remote_service(tmp_path / "home", with_oauth=False) as running:
        key = running.key("read")
        session = _start(running, key)
    with run_remote_service(tmp_path / "home", with_oauth=False) as running:
        assert ask(running, rpc("ping"), key=key, Mcp_Session_Id=session).json()["result"] == {}
        other = running.key("read")
        assert ask(running, rpc("ping"), key=other, Mcp_Session_Id=session).status_code == 404


@pytest.mark.slow
def test_a_key_that_only_reads_gets_the_tools_that_only_read(remote_service: RunningService) -> None:
    """Its calls of other tools change nothing."""
    key = remote_service.key("read", user="reader")
    tools = ask(remote_service, rpc("tools/list"), key=key).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["session_search"]
    refused = ask(remote_service, rpc("tools/call", name="remember", arguments={"text": "x"}), key=key).json()
    assert "may only read" in refused["error"]["message"]
    assert remote_service.service.memory_of("reader").entries() == ()


def test_a_key_that_may_not_read_gets_nothing(remote_service: RunningService) -> None:
    """What is remembered is in the first answer already."""
    refused = ask(remote_service, INITIALIZE, key=remote_service.key("append"))
    assert refused.status_code == 403 and 'error="insufficient_scope"' in refused.headers["WWW-Authenticate"]


@pytest.mark.slow
def test_two_users_know_nothing_of_each_other(remote_service: RunningService) -> None:
    """Neither through their keys, nor by naming the other, nor with the session of the other."""
    ana, ben = remote_service.key(user="ana-m"), remote_service.key(user="ben-m")
    acme = remote_service.key(tenant="acme-m", user="ana-m")
    assert _call(remote_service, ana, "remember", text="Ana keeps bees.")["success"]
    session = _start(remote_service, ana)
    for key in (ben, acme):
        assert "bees" not in ask(remote_service, INITIALIZE, key=key).text
        assert ask(remote_service, rpc("ping"), key=key, Mcp_Session_Id=session).status_code == 404
    with httpx2.Client(timeout=GIVE_UP, trust_env=False) as client:
        named = client.post(
            f"{remote_service.url}/mcp?user=ana-m", json=INITIALIZE, headers={"Authorization": f"Bearer {ben}"}
        )
    assert named.status_code == 403 and "bees" not in named.text


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "nonsense", "mk_000000000000_" + "x" * 43, "mat_" + "x" * 43])
def test_without_access_the_answer_says_where_to_get_it(remote_service: RunningService, key: str) -> None:
    """Clients start their OAuth flow with this header."""
    refused = ask(remote_service, INITIALIZE, key=key)
    assert refused.status_code == 401 and "result" not in refused.json()
    expected = f'resource_metadata="{remote_service.url}/.well-known/oauth-protected-resource/mcp"'
    assert expected in refused.headers["WWW-Authenticate"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"MCP_Protocol_Version": "1999-01-01"}, 400),
    ],
)
def test_a_request_that_looks_wrong_is_refused(
    remote_service: RunningService, headers: dict[str, str], status: int
) -> None:
    """Above all one from a page of another site."""
    key = remote_service.key("read")
    assert ask(remote_service, rpc("ping"), key=key, **headers).status_code == status


def test_broken_bodies_and_other_methods_are_refused(remote_service: RunningService) -> None:
    """With an error of JSON-RPC that names the problem."""
    headers = {"Authorization": f"Bearer {remote_service.key('read')}", "Content-Type": "application/json"}
    with httpx2.Client(base_url=remote_service.url, headers=headers, timeout=GIVE_UP, trust_env=False) as client:
        assert client.post("/mcp", content=b"{not json").json()["error"]["code"] == -32700
        assert client.put("/mcp", content=b"{}").status_code == 405
        assert client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202


def test_a_body_that_is_too_large_is_refused_before_it_is_read(remote_service: RunningService) -> None:
    """By the length that the client announces."""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {remote_service.key('read')}\r\n"
        "Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
    )
    with socket.create_connection(remote_service.address, GIVE_UP) as connection:
        connection.sendall(head.encode())
        assert b" 413 " in connection.makefile("rb").readline()


@pytest.mark.slow
def test_an_answer_can_be_a_stream(remote_service: RunningService) -> None:
    """For a client that accepts nothing else; also the first answer, which names the session."""
    key = remote_service.key("read")
    for message in (rpc("ping"), INITIALIZE):
        answer = ask(remote_service, message, key=key, Accept="text/event-stream")
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        data = answer.text.split("data: ", 1)[1].partition("\n")[0]
        assert json.loads(data)["id"] == 1
    assert answer.headers["Mcp-Session-Id"]


@pytest.mark.slow
def test_a_client_can_listen_to_its_session(remote_service: RunningService) -> None:
    """The stream ends with the session."""
    key = remote_service.key("read")
    session = _start(remote_service, key)
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with httpx2.Client(base_url=remote_service.url, headers=headers, timeout=GIVE_UP, trust_env=False) as client:
        assert client.get("/mcp").status_code == 400
        assert client.get("/mcp", headers={"Mcp-Session-Id": "made.up"}).status_code == 404
        with client.stream("GET", "/mcp", headers={"Mcp-Session-Id": session}) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": ping"
            ask(remote_service, None, key=key, method="DELETE", Mcp_Session_Id=session)
            assert [line for line in lines if line] == []


def test_a_self_contained_request_needs_no_session(remote_service: RunningService) -> None:
    """Clients of the newest version of the protocol send everything with each request."""
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/list"}
    answer = ask(remote_service, rpc("tools/list", **MODERN), key=remote_service.key("read"), **headers)
    assert answer.json()["result"]["resultType"] == "complete" and "Mcp-Session-Id" not in answer.headers


@pytest.mark.slow
def test_a_revoked_key_ends_its_sessions(remote_service: RunningService) -> None:
    """At the latest after the two seconds for which a key is cached."""
    key, token = remote_service.service.keys.create(["read"])
    session = _start(remote_service, token)
    remote_service.service.keys.revoke(key.id)
    remote_service.service.authenticator._callers.clear()
    assert ask(remote_service, rpc("ping"), key=token, Mcp_Session_Id=session).status_code == 401
