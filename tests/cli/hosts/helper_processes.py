"""Hooks and their helpers as real processes, with deadlines that no busy machine can miss."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import memoranda
from memoranda.cli.hooks.helper_files import RunningHelper, running_helpers
from memoranda.integrations.hooks.log import read_calls
from memoranda.support.home import Home
from tests.timing import GIVE_UP, wait_until

PROMPT = "Which port did the heron cluster have?"
ANSWER = "Staging uses the heron cluster, on port 5433."
_TALK = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", ANSWER),
]
# The program under test, wherever the environment has its own.
_PROGRAM = Path(memoranda.__file__).parents[1]
_CALL = """
import sys
from memoranda.cli.hooks import helper_protocol, process
process.TIMEOUT = process.PLUGIN_TIMEOUT = {timeout}
helper_protocol._TIMEOUT = {helper_timeout}
from memoranda.cli.hooks.entry import run_installed_hook
run_installed_hook(sys.argv[1:])
"""
_HELPER = """
import sys
from memoranda.cli.hooks import helper
helper._CONNECTION_TIMEOUT = helper._MAX_SECONDS_PER_ANSWER = {timeout}
helper._SECONDS_BETWEEN_CHECKS = 0.1
{patch}
helper.run_helper(sys.argv[1], None)
"""


def fill(home: Path, user: str | None = None, talk: list[tuple[str, str]] | None = None) -> None:
    """Records four conversations."""
    with memoranda.open(home, user=user) as memory:
        for number, turn in enumerate(talk or _TALK):
            session = memory.sessions.create_session(f"{user or 't'}{number}", "cli")
            rows = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), turn, strict=True)]
            memory.sessions.append_messages(session, rows)
            memory.sessions.index.catch_up()


def copy_program(directory: Path, version: str | None = None) -> Path:
    """Copies the package into a directory, as another version if one is given."""
    package = directory / "memoranda"
    source = Path(memoranda.__file__).parent
    # With the byte code, which no process has to make again; but not with what is just being written.
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("*.pyc.*"))
    if version is not None:
        init = package / "__init__.py"
        init.write_text(init.read_text().replace(memoranda.__version__, version))
    return directory


class HookProcesses:
    """The hooks of one home, run by one installed program."""

    def __init__(self, home: Path, program: Path = _PROGRAM, **variables: str) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORANDA_")}
        self.environment = kept | variables | {"PYTHONPATH": str(program)}
        self.started: list[subprocess.Popen[bytes]] = []

    def prompt(
        self, prompt: str = PROMPT, *options: str, event: str = "UserPromptSubmit", helper_timeout: float = GIVE_UP
    ) -> str:
        """What the host gets for a prompt."""
        payload = {"hook_event_name": event, "session_id": "s", "prompt": prompt}
        code = _CALL.format(timeout=2 * GIVE_UP, helper_timeout=helper_timeout)
        done = subprocess.run(
            [sys.executable, "-P", "-c", code, "claude-code", event, "--home", str(self.home), *options],
            input=json.dumps(payload).encode(), env=self.environment, capture_output=True, check=True,
            timeout=3 * GIVE_UP, cwd=os.sep,
        )  # fmt: skip
        assert done.stderr == b""
        return done.stdout.decode()

    def start_helper(self, patch: str = "") -> subprocess.Popen[bytes]:
        """Starts a helper and waits until it answers."""
        process = self.start_process(patch)
        wait_until(lambda: process.pid in {helper.process for helper in self.helpers()} or process.poll() is not None)
        assert process.poll() is None
        # It writes who it is just before it listens.
        wait_until(lambda: self.prompt("yes") == "" and self.last_call().get("helper") == process.pid)
        return process

    def start_process(self, patch: str = "") -> subprocess.Popen[bytes]:
        """Starts a process that tries to become the helper."""
        code = _HELPER.format(timeout=int(GIVE_UP), patch=patch)
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code, str(self.home)], env=self.environment, cwd=os.sep,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(process)
        return process

    def helpers(self) -> list[RunningHelper]:
        return running_helpers(Home(self.home))

    def last_call(self) -> dict[str, Any]:
        return read_calls(self.home)[0]

    def allow_a_start(self) -> None:
        """Makes the last start of a helper an old one, so that the next call may start another."""
        for lock in self.home.glob("run/*.lock"):
            os.utime(lock, (0, 0))

    def stop(self) -> None:
        """Ends every helper, and removes the home, so that one which is just starting ends as well."""
        for process in self.started:
            process.kill()
            process.wait()
        for helper in self.helpers():
            os.kill(helper.process, signal.SIGKILL)
        shutil.rmtree(self.home, ignore_errors=True)
