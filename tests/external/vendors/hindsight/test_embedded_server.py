"""`local_embedded`: a session starts a server on this machine if none runs, and no second one."""

import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoranda.external.vendors.hindsight import embedded_server
from memoranda.external.vendors.hindsight.vendor import HindsightProvider
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

_PROGRAM = """import os, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer

with open({starts!r}, "a") as file:
    file.write(f"{{os.getpid()}} {{' '.join(sys.argv[1:])}} {{os.environ.get('HINDSIGHT_API_LLM_MODEL')}}\\n")
time.sleep(0.3)


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{{"api_version": "1.1.0", "banks": []}}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


HTTPServer(("127.0.0.1", int(sys.argv[4])), Answers).serve_forever()
"""


@pytest.fixture
def starts(tmp_path: Path) -> Iterator[Path]:
    """A file with a line for every start of the program, which ends after the test."""
    path = tmp_path / "starts"
    yield path
    for line in path.read_text().splitlines() if path.exists() else ():
        os.kill(int(line.split()[0]), signal.SIGKILL)
    for process in embedded_server._started:
        process.wait()


def test_two_sessions_start_one_server_which_outlives_them(
    tmp_path: Path, starts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second comes while the first server is still starting, the third when it answers."""
    program, source = tmp_path / "hindsight-api", tmp_path / "server.py"
    source.write_text(_PROGRAM.format(starts=str(starts)))
    # A shell finds Python: in a first line, its path may have no space.
    program.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(source)])} "$@"\n')
    program.chmod(0o700)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("HINDSIGHT_API_LLM_MODEL", "small")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    settings = {"mode": "local_embedded", "api_url": f"http://127.0.0.1:{port}", "server_program": str(program)}

    def start_session() -> None:
        began = time.monotonic()
        provider = HindsightProvider(tmp_path, settings)
        provider.initialize("s1", hermes_home=str(tmp_path))
        provider.shutdown()
        assert time.monotonic() - began < GIVE_UP

    start_session()
    start_session()
    wait_until(lambda: embedded_server._accepts("127.0.0.1", port), GIVE_UP)
    start_session()
    (line,) = starts.read_text().splitlines()
    assert line.split()[1:] == ["--host", "127.0.0.1", "--port", str(port), "small"]
    assert (tmp_path / "providers" / "hindsight.server.log").exists()
    # A server that died is started again.
    os.kill(int(line.split()[0]), signal.SIGKILL)
    wait_until(lambda: not embedded_server._accepts("127.0.0.1", port), GIVE_UP)
    start_session()
    wait_until(lambda: embedded_server._accepts("127.0.0.1", port), GIVE_UP)
    assert len(starts.read_text().splitlines()) == 2
    starts.write_text(starts.read_text().splitlines()[1] + "\n")


def test_what_prevents_a_start_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing program, and root, for which PostgreSQL refuses to run."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    missing = str(tmp_path / "none")
    assert "is not installed: pip install" in embedded_server.describe_obstacle(missing)
    assert embedded_server.describe_obstacle(sys.executable) == ""
    assert not HindsightProvider(tmp_path, {"mode": "local_embedded", "server_program": missing}).is_available()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "root" in embedded_server.describe_obstacle(sys.executable)
