"""A person at a terminal, talking to `memoranda chat`, or using another command, in a separate process."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pyte

from tests.cli.warm_program import start_program
from tests.timing import GIVE_UP

PROGRAM = [sys.executable, "-m", "memoranda"]
CTRL_C, CTRL_D, UP, TAB = "\x03", "\x04", "\x1b[A", "\t"
_ROWS = 50
_STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Person:
    """Types, looks at the screen, and waits until something appears there."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
        early: str = "",
        command: str = "chat",
    ) -> None:
        """`early` is typed before the program starts."""
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._columns = columns
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        os.write(self._terminal, early.encode())
        self._process = start_program(
            ["--home", str(home), command, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, terminal=True,
            env={**environment, "TERM": "xterm", **(env or {})},
        )  # fmt: skip
        os.close(theirs)
        self._raw = b""
        self._seen = 0
        self._status: int | None = None

    @property
    def screen(self) -> str:
        """Everything that was sent to the terminal, without control codes."""
        sent = _STEERING.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")
        # The line editor sets the cursor behind the prompt instead of writing the space.
        return sent.replace(">\b", "> ").replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """What a terminal really shows, scrolled lines included."""
        screen = pyte.Screen(self._columns, 2_000)
        pyte.Stream(screen).feed(self._raw.decode("utf-8", "replace"))
        lines = [line.rstrip() for line in screen.display]
        return lines[: max((number for number, line in enumerate(lines, 1) if line), default=0)]

    @property
    def raw(self) -> str:
        """The bytes themselves, with colours."""
        return self._raw.decode("utf-8", "replace")

    def pastes(self, text: str) -> None:
        """Paste a text as a terminal that marks pastes sends it, without Enter."""
        assert self.raw.rfind("\x1b[?2004h") > self.raw.rfind("\x1b[?2004l"), "The terminal marks no pastes now."
        self.presses("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def types(self, text: str) -> None:
        """Type a line and press Enter."""
        self.presses(text + "\r")

    def says(self, text: str, *answers: str) -> None:
        """Type a line, wait for the expected text, and wait for the next prompt."""
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
        """Wait until a text appears after what was seen before; returns the screen up to there."""
        deadline = time.monotonic() + GIVE_UP
        while (place := self.screen.find(text, self._seen)) < 0:
            assert time.monotonic() < deadline, f"{text!r} never appeared. The screen:\n{self.screen}"
            assert self._read(), f"The chat ended before {text!r} appeared. The screen:\n{self.screen}"
        shown = self.screen[self._seen : place + len(text)]
        self._seen = place + len(text)
        return shown

    @property
    def display(self) -> str:
        """What a program that uses the whole screen shows now."""
        screen = pyte.Screen(self._columns, _ROWS)
        pyte.Stream(screen).feed(self._raw.decode("utf-8", "replace"))
        return "\n".join(screen.display)

    def shows(self, text: str, *, visible: bool = True) -> None:
        """Wait until a text is on the screen, or no longer is."""
        deadline = time.monotonic() + GIVE_UP
        while (text in self.display) != visible:
            assert time.monotonic() < deadline, f"{text!r} never changed. The screen:\n{self.display}"
            assert self._read(), f"The program ended before {text!r} changed. The screen:\n{self.display}"

    def hides(self, text: str) -> None:
        """Wait until a text is no longer on the screen."""
        self.shows(text, visible=False)

    def is_asked(self) -> str:
        """Wait for the prompt."""
        return self.sees("\n> ")

    def kills(self) -> None:
        """Kill the process without warning."""
        os.kill(self._process.pid, signal.SIGKILL)
        self.leaves()

    def leaves(self) -> int:
        """Wait for the end; returns the exit code."""
        deadline = time.monotonic() + GIVE_UP
        while self._read():
            assert time.monotonic() < deadline, f"The chat does not end. The screen:\n{self.screen}"
        self._status = self._process.wait()
        return self._status

    def _read(self) -> bool:
        """Read what is available; returns False at the end."""
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
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._terminal)
