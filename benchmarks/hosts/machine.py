"""A user's machine for the checks of hosts: a home directory, a project, and a Memoranda home with conversations."""

import os
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import memoranda

NOTE = "The build server runs Debian 12."
ANSWER = "Staging uses the heron cluster, on port 5433."
# A prompt to which an earlier conversation is relevant, and prompts to which none is. No two are the same, because a
# recorded session is relevant to its own words. The longest come first: short ones never get evidence.
ASKING = "Which port did the heron cluster in staging have?"
_EVERYDAY = Path(__file__).parent.parent / "everyday_prompts.txt"
OTHERS = sorted(_EVERYDAY.read_text("utf-8").splitlines(), key=len, reverse=True)
CONVERSATIONS = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Which database does staging use?", ANSWER),
]
TIMEOUT = 120.0


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
        """Saves the note and records the conversations."""
        with memoranda.open(self.home) as memory:
            memory.remember(NOTE)
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

    def wait_for_sessions(self, source: str, count: int, reply: str) -> int:
        """Returns how many sessions of a host are recorded in full; a separate process records them."""
        deadline = time.monotonic() + TIMEOUT / 4
        while (found := self._count_sessions(source, reply)) < count and time.monotonic() < deadline:
            time.sleep(0.2)
        return found

    def read_files(self, files: Collection[Path]) -> dict[str, bytes]:
        """Returns the contents of the files that exist, by their path in the user's directory."""
        return {str(file.relative_to(self.user)): file.read_bytes() for file in files if file.exists()}

    def _count_sessions(self, source: str, reply: str) -> int:
        with memoranda.open(self.home) as memory:
            sessions = [row["id"] for row in memory.sessions.list_sessions_rich(source=source, limit=1000)]
            contents = [[row["content"] for row in memory.sessions.get_messages(session)] for session in sessions]
        return sum(len(texts) == 2 and texts[0] in (ASKING, *OTHERS) and texts[1] == reply for texts in contents)


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Returns the files that were added, removed or changed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
