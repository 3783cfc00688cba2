"""A user's machine for the checks of hosts: a home directory, a project, and a Memoranda home with conversations."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.memory.curated.settings import project_target

NOTE = "The build server runs Debian 12."
_PROJECT_NOTE = "The release script of this project is ship.sh."
_OTHER_NOTE = "The release script of another project is sail.sh."
ANSWER = "Staging uses the heron cluster, on port 5433."
# A prompt to which an earlier conversation is relevant, and prompts to which none is. No two are the same, because a
# recorded session is relevant to its own words. The longest come first: short ones never get evidence.
ASKING = "Which port did the heron cluster in staging have?"
_EVERYDAY = Path(__file__).parents[3] / "benchmarks" / "everyday_prompts.txt"
OTHERS = sorted(_EVERYDAY.read_text("utf-8").splitlines(), key=len, reverse=True)
CONVERSATIONS = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", ANSWER),
]
TIMEOUT = 120.0
_RECORDING_TIMEOUT = 60.0


def find_program(name: str) -> str:
    """Return the absolute path of a host on the PATH; skip the test where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not on the PATH")
    return str(Path(found).absolute())


def shows_memory(text: str) -> bool:
    """Whether a request has the note and that of the project, and nothing of another project."""
    return NOTE in text and _PROJECT_NOTE in text and _OTHER_NOTE not in text


class Machine:
    """Runs a host and Memoranda as a user would, with nothing of the real user's environment but the PATH."""

    timeout = TIMEOUT

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.user, self.home = root / "user", root / "memory"
        self.project = self.user / "project"
        for directory in (self.user, self.project):
            directory.mkdir(parents=True)
        shared = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
        self.environment = {**shared, "HOME": str(self.user), **environment}

    def fill_home(self) -> None:
        """Saves a note, one of this project and one of another, and records the conversations."""
        with memoranda.open(self.home) as memory:
            memory.remember(NOTE)
            memory.session(directory=self.project).remember(_PROJECT_NOTE, "project")
            memory.remember(_OTHER_NOTE, project_target("github.com/acme/heron"))
            memory.sessions.create_session("earlier", "cli")
            for prompt, reply in CONVERSATIONS:
                memory.sessions.append_message("earlier", "user", prompt)
                memory.sessions.append_message("earlier", "assistant", reply)

    def memoranda(self, *arguments: str) -> str:
        return self.run([sys.executable, "-P", "-m", "memoranda", *arguments, "--home", str(self.home)])

    def run(self, command: list[str]) -> str:
        """Runs a program in the project and returns its output; stops the check if it fails."""
        completed = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.timeout,
            check=False,
        )
        if completed.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{completed.stdout}\n{completed.stderr}")
        return completed.stdout

    def wait_for_sessions(self, source: str, minimum: int, reply: str) -> int:
        """Waits for sessions with one complete turn each, and returns how many there are."""

        def count() -> int:
            prompts, sessions = (ASKING, *OTHERS), self.recorded_messages(source)
            return sum(
                len(messages) == 2 and messages[0][1] in prompts and messages[1][1] == reply for messages in sessions
            )

        return wait_for_count(count, minimum)

    def recorded_messages(self, host: str) -> list[list[tuple[str, str]]]:
        """Returns the role and text of each message, for each recorded session of a host.

        The ids name the host; the source of a session of Hermes is that of Hermes itself, such as cli.
        """
        with memoranda.open(self.home) as memory:
            rows = memory.sessions.list_sessions_rich(limit=1000)
            sessions = [row["id"] for row in rows if row["id"].startswith(f"{host}-")]
            return [
                [(row["role"], row["content"]) for row in memory.sessions.get_messages(session)] for session in sessions
            ]

    def read_files(self, *paths: Path) -> dict[str, bytes]:
        """Returns the contents of files, and of all files in directories, by their path in the user's directory."""
        found = [path for root in paths for path in [root, *sorted(root.rglob("*"))] if path.exists()]
        return {str(path.relative_to(self.user)): path.read_bytes() if path.is_file() else b"" for path in found}


def wait_for_count(count: Callable[[], int], minimum: int) -> int:
    """Calls `count` until it reaches the minimum or the time is up; a separate process records what is counted."""
    deadline = time.monotonic() + _RECORDING_TIMEOUT
    while (found := count()) < minimum and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def choose_prompts(runs: int) -> Iterator[str]:
    """Yields a prompt for each run; an earlier conversation is relevant to the first one and every second after it."""
    for number in range(runs):
        yield OTHERS[number] if number % 2 else ASKING


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Returns the files that were added, removed or changed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
