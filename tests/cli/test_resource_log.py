"""Every long-running process logs what it uses, in its home and cheaply."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.cli import background_tasks
from memoranda.cli.background_tasks import log_resources
from tests.conftest import mode
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

# The command, without the pause before the first line.
PROGRAM = """
import memoranda.cli.background_tasks as background_tasks
background_tasks.START_DELAY_SECONDS = 0.0
from memoranda.cli.main import main
main()
"""


def test_the_lines_are_in_a_private_file_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One at the start and one at the end, with the collections of each generation; logging is as before after it."""
    monkeypatch.setattr(background_tasks, "START_DELAY_SECONDS", 0.0)
    file = tmp_path / "logs" / "server.log"
    before = list(logging.getLogger("memoranda.cli.process_resources").handlers)
    with log_resources(tmp_path, "server"):
        wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    first, last = file.read_text().splitlines()
    assert "MiB of memory" in first and "open files" in first and "garbage collections" in first
    assert "is stopping" in last
    assert mode(file) == 0o600
    assert logging.getLogger("memoranda.cli.process_resources").handlers == before


def test_a_short_process_and_a_missing_home_leave_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is created by looking."""
    with log_resources(tmp_path, "server"):
        pass
    monkeypatch.setattr(background_tasks, "START_DELAY_SECONDS", 0.0)
    with log_resources(tmp_path / "missing", "server"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_mcp_server_logs_what_it_uses(tmp_path: Path) -> None:
    """And its answers on standard output stay as they are."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--home", str(tmp_path), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        wait_until((tmp_path / "logs" / "mcp.log").exists)
        output, _ = server.communicate(timeout=GIVE_UP)
    assert output == b""
    assert "open files" in (tmp_path / "logs" / "mcp.log").read_text()
