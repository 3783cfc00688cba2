"""`memoranda view`: a link for one login, and an end with Ctrl-C."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from memoranda.cli.main import command
from tests.timing import GIVE_UP

_LINK = re.compile(rb"http://127\.0\.0\.1:\d+/view/login\?token=[\w-]+")


def _read_link(terminal: int) -> str:
    text = b""
    while not (found := _LINK.search(text)) or not text.endswith(b"\n"):
        assert select.select([terminal], [], [], GIVE_UP)[0], f"There is no link in {text!r}."
        text += os.read(terminal, 4096)
    return found[0].decode()


@pytest.mark.slow
def test_the_viewer_runs_until_it_is_interrupted(tmp_path: Path) -> None:
    """Its link logs in once, Enter prints another one, Ctrl-C ends it without a complaint, and nothing was written."""
    home = tmp_path / "home"
    terminal, process_end = pty.openpty()
    arguments = [sys.executable, "-m", "memoranda", "view", "--no-browser", "--home", str(home)]
    with subprocess.Popen(arguments, stdin=process_end, stdout=process_end, stderr=subprocess.PIPE) as process:
        first = _read_link(terminal)
        with httpx.Client(timeout=GIVE_UP, trust_env=False) as client:
            client.get(first).raise_for_status()
            address = first.split("/login")[0]
            assert "Nothing is recorded yet" in client.get(f"{address}/").text
            assert client.get(first).status_code == 403
            # Only pages are served: the routes of the service need keys, and there are none.
            assert client.get(f"{address.removesuffix('/view')}/v1/sessions").status_code == 404
            os.write(terminal, b"\n")
            second = _read_link(terminal)
            assert second != first
            client.get(second).raise_for_status()
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=GIVE_UP)
    os.close(terminal)
    os.close(process_end)
    assert (process.returncode, complaints) == (0, b"")
    assert not home.exists()


@pytest.mark.slow
def test_programs_get_the_link_as_json(tmp_path: Path) -> None:
    """And SIGTERM ends the viewer with code 0."""
    arguments = [sys.executable, "-m", "memoranda", "view", "--no-browser", "--json", "--home", str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, f"The viewer has ended after {text!r}."
            text += line
        answer = json.loads(text)
        assert _LINK.fullmatch(answer["login_url"].encode())
        assert (answer["opened"], answer["pid"]) == (False, process.pid)
        process.terminate()
        assert process.wait(GIVE_UP) == 0


@pytest.mark.slow
def test_a_port_that_is_in_use_is_named(tmp_path: Path) -> None:
    """The message says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ["view", "--no-browser", "--port", str(port), "--home", str(tmp_path)]
        result = CliRunner().invoke(command, options)
    assert result.exit_code == 1
    assert f"Port {port} cannot be used" in result.output
