"""A server process starts fast, prints only the protocol, and ends when its host ends."""

import io
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import memoranda
from memoranda.integrations.mcp.stdio_server import McpStdioServer
from tests.external.diary import diary_home, told_in_time
from tests.integrations.mcp.hosts import arguments, raw_host, server_for
from tests.timing import GIVE_UP


def _lines(raw: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in raw.splitlines()]


def test_every_line_gets_its_answer_even_when_the_input_ends_at_once(tmp_path: Path) -> None:
    """As with `printf … | memoranda mcp`; blank lines are nothing, broken ones an error, and order does not matter."""
    calls = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "session_search", "arguments": {}}}
        for number in range(20)
    ]
    source = b"\n".join([b"", b"{", b'{"jsonrpc":"2.0","id":99,"method":"ping"}', *map(_encoded, calls)])
    sink = io.BytesIO()
    with memoranda.open(tmp_path) as memory:
        McpStdioServer(server_for(memory), io.BytesIO(source), sink).serve()
    answers = _lines(sink.getvalue())
    assert "error" in answers[0] and answers[1]["id"] == 99
    assert sorted(str(each["id"]) for each in answers[2:]) == sorted(str(number) for number in range(20))


def _encoded(message: dict[str, object]) -> bytes:
    return json.dumps(message).encode()


def test_a_line_without_end_is_refused_and_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not fill the memory, and what comes after it is answered."""
    monkeypatch.setattr("memoranda.integrations.mcp.stdio_server._MAX_LINE_BYTES", 100)
    source = io.BytesIO(b"x" * 1_000 + b'\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    sink = io.BytesIO()
    with memoranda.open(tmp_path) as memory:
        McpStdioServer(server_for(memory), source, sink).serve()
    broken, answered = _lines(sink.getvalue())
    assert "too long" in str(broken["error"]) and answered["result"] == {}


def test_a_cancelled_call_is_not_answered(tmp_path: Path) -> None:
    """The host no longer waits; others are answered."""
    going_on = threading.Event()
    with memoranda.open(tmp_path) as memory:
        server = server_for(memory)
        answer = server.answer

        def waiting(message: object) -> object:
            if isinstance(message, dict) and message.get("id") == "slow":
                going_on.wait(GIVE_UP)
            elif isinstance(message, dict) and message.get("method") == "ping":
                going_on.set()
            return answer(message)

        server.answer = waiting  # type: ignore[method-assign]
        messages: list[dict[str, object]] = [
            {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "session_search"}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unknown"}},
            {"jsonrpc": "2.0", "id": "ping", "method": "ping"},
        ]
        sink = io.BytesIO()
        McpStdioServer(server, io.BytesIO(b"\n".join(map(_encoded, messages))), sink).serve()
    assert [each["id"] for each in _lines(sink.getvalue())] == ["ping"]


@pytest.mark.slow
def test_a_slow_call_delays_no_other_call(tmp_path: Path) -> None:
    """A tool of a provider takes its time; a ping behind it is answered at once."""
    home = diary_home(tmp_path)
    plugin = home / "plugins" / "diary" / "__init__.py"
    plugin.write_text(plugin.read_text().replace("return json.dumps({", "time.sleep(2); return json.dumps({"))
    with raw_host(home) as host:
        host.ask("tools/list")
        host.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {"name": "diary_read"}})
        host.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
        assert [host.read()["id"], host.read()["id"]] == ["ping", "slow"]
        assert host.leave() == 0


@pytest.mark.slow
def test_what_a_plugin_prints_is_not_part_of_the_protocol(tmp_path: Path) -> None:
    """It goes to the log, and the plugin cannot read what the host sends."""
    home = diary_home(tmp_path, start="print('hello'); os.system('echo hello again; cat'); input_left = 1")
    with raw_host(home) as host:
        assert "diary_read" in str(host.ask("tools/list"))
        assert host.call("diary_read")["success"] is True
        assert host.leave() == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_server_stops(tmp_path: Path, number: signal.Signals) -> None:
    """At once, without an error, and without child processes."""
    with raw_host(diary_home(tmp_path)) as host:
        host.ask("tools/list")
        children = Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children")
        assert not children.exists() or children.read_text() == ""
        host.process.send_signal(number)
        assert host.leave() == 0


@pytest.mark.slow
def test_a_host_that_no_longer_reads_is_not_an_error(tmp_path: Path) -> None:
    """It may have been killed; its last request is completed, and the server ends."""
    with raw_host(tmp_path) as host:
        host.ask("tools/list")
        assert host.process.stdout
        host.process.stdout.close()
        host.process.stdout = None
        params = {"name": "remember", "arguments": {"text": "This was the last word."}}
        host.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        host.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert host.leave() == 0
    with memoranda.open(tmp_path) as memory:
        assert memory.entries() == ("This was the last word.",)


@pytest.mark.slow
def test_a_fact_is_on_disk_when_the_host_hears_so(tmp_path: Path) -> None:
    """The process is killed right after each answer, and nothing that was answered is lost."""
    for number in range(5):
        with raw_host(tmp_path) as host:
            assert host.call("remember", text=f"The fact number {number} is kept.")["success"] is True
            host.process.kill()
            host.process.wait()
    with memoranda.open(tmp_path) as memory:
        assert memory.entries() == tuple(f"The fact number {number} is kept." for number in range(5))


@pytest.mark.slow
def test_killed_in_the_middle_of_writing_it_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    """Whenever it happens; and the next server continues with the same home."""
    answered = 0
    for milliseconds in (0, 100, 250, 500, 1_000, 10_000):
        if answered and milliseconds > 1_000:
            break  # Only a busy machine needs so long for a first answer.
        with raw_host(tmp_path) as host:
            host.ask("tools/list")
            for number in range(20):
                params = {"name": "remember", "arguments": {"text": f"The round {milliseconds} has fact {number}."}}
                host.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            time.sleep(milliseconds / 1000)
            host.process.kill()
            assert host.process.stdout
            told = [json.loads(line) for line in host.process.stdout.read().splitlines(keepends=True) if b"\n" in line]
        kept = {json.loads(each["result"]["content"][0]["text"])["changed"][0]["after"] for each in told}
        answered += len(kept)
        with memoranda.open(tmp_path) as memory:
            assert kept <= set(memory.entries())
            memory.call("memory", {"operations": [{"action": "remove", "old_text": e} for e in memory.entries()]})
    assert answered


@pytest.mark.slow
def test_what_is_remembered_reaches_the_provider(tmp_path: Path) -> None:
    """As with any other session; and a host that leaves says nothing about a conversation that we never saw."""
    home = diary_home(tmp_path)
    with raw_host(home) as host:
        host.ask("tools/list")
        host.call("remember", text="The staging database is called heron.", target="memory")
        assert host.leave() == 0
    expected = ["write", "add", "memory", "The staging database is called heron.", None]
    assert told_in_time(home, expected) == [expected]


@pytest.mark.slow
def test_a_host_is_notified_of_the_tools_of_a_slow_provider(tmp_path: Path) -> None:
    """It is answered in time without them, and notified when they are available."""
    home = diary_home(tmp_path, start="time.sleep(3.5)")
    with raw_host(home) as host:
        host.ask("initialize", protocolVersion="2025-11-25")
        assert "diary_read" not in str(host.ask("tools/list"))
        assert host.read()["method"] == "notifications/tools/list_changed"
        assert "diary_read" in str(host.ask("tools/list"))
        assert host.leave() == 0


@pytest.mark.slow
def test_a_host_may_leave_while_a_provider_is_starting(tmp_path: Path) -> None:
    """Nothing is broken off with a complaint."""
    with raw_host(diary_home(tmp_path, start="time.sleep(1)")) as host:
        host.ask("ping")
        assert host.leave() == 0


@pytest.mark.slow
def test_it_starts_fast(tmp_path: Path) -> None:
    """A host waits for this with every session: well under a second of CPU, whatever else the machine does."""
    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with raw_host(tmp_path) as host:
            host.ask("initialize", protocolVersion="2025-11-25")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # Nothing was measured if the process was not waited for.
    assert 0.05 < min(used) < 1.0, used


@pytest.mark.slow
def test_a_person_who_starts_it_by_hand_reads_what_it_waits_for(tmp_path: Path) -> None:
    """On standard error; Ctrl-D ends it."""
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments(tmp_path)], stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(terminal)
    os.write(master, b"\x04")
    out, errors = process.communicate(timeout=GIVE_UP)
    os.close(master)
    assert (process.returncode, out) == (0, b"")
    assert b"Waiting for an MCP client" in errors


@pytest.mark.slow
def test_an_unusable_home_is_reported_on_standard_error(tmp_path: Path) -> None:
    """With an exit code, and nothing on the protocol's channel."""
    (tmp_path / "config.yaml").write_text("memory: [")
    with raw_host(tmp_path) as host:
        out, errors = host.process.communicate(timeout=GIVE_UP)
    assert host.process.returncode != 0
    assert out == b"" and b"config.yaml" in errors
