"""A person at a terminal, talking to `memoranda chat` in a separate process."""

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.timing import GIVE_UP

PROGRAM = [sys.executable, "-m", "memoranda"]
CTRL_C, CTRL_D, UP, TAB = "\x03", "\x04", "\x1b[A", "\t"
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Person:
    """Types, looks at the screen, and waits until something appears there."""

    def __init__(self, home: Path, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        words = [*PROGRAM, "--home", str(home), "chat", *arguments]
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execvpe(words[0], words, {**os.environ, "TERM": "xterm", "COLUMNS": "100", **(env or {})})
        self._raw = b""
        self._seen = 0
        self._status: int | None = None

    @property
    def screen(self) -> str:
        """Everything that was shown, without colours."""
        return _STEERING.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def types(self, text: str) -> None:
        """Type a line and press Enter."""
        self.presses(text + "\r")

    def says(self, text: str, *answers: str) -> None:
        """Type a line, see what is to come of it, and wait until the next one is asked for."""
        self.types(text)
        for answer in answers:
            self.sees(answer)
        self.is_asked()

    def quits(self) -> int:
        """Leave with Ctrl-D; returns the exit code."""
        self.types("/quit")
        return self.leaves()

    def presses(self, keys: str) -> None:
        # People are slower; a key that is pressed just when a prompt appears can get lost in the line editor.
        time.sleep(0.2)
        os.write(self._terminal, keys.encode())

    def sees(self, text: str) -> str:
        """Wait until a text appears behind what was seen before; what was on the screen up to there."""
        deadline = time.monotonic() + GIVE_UP
        while (place := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} never appeared. The screen:\n{self.screen}"
            assert self._read(), f"The chat ended before {text!r} appeared. The screen:\n{self.screen}"
        shown = self.screen[self._seen : place + len(text)]
        self._seen = place + len(text)
        return shown

    def is_asked(self) -> str:
        """Wait for the prompt."""
        return self.sees("\n> ")

    def kills(self) -> None:
        """End the process without any warning."""
        os.kill(self._pid, signal.SIGKILL)
        self.leaves()

    def leaves(self) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + GIVE_UP
        while self._read():
            assert time.monotonic() < deadline, f"The chat does not end. The screen:\n{self.screen}"
        _, status = os.waitpid(self._pid, 0)
        self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def _read(self) -> bool:
        """Read what there is; False at the end."""
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return True
        try:
            got = os.read(self._terminal, 65_536)
        except OSError:
            return False
        self._raw += got
        return bool(got)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)
