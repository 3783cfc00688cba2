"""Runs the input of a chat, message by message, and reads it from a pipe or from JSON lines.

Outside of the line editor a terminal shows every key at once, wherever the cursor is, and the editor shows it again.
So the chat turns that off from its start until its end, and lets the terminal mark pasted text. Keys that are typed
while the model answers wait for the next prompt. Ctrl-C still interrupts. The lines that a user typed in earlier chats
are stored in the home without credentials, for the arrow keys.
"""

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import is_command, run_command
from memoranda.safety.redaction import Redactor
from memoranda.support.durable_files import append_unsynced, make_private_directory

_SURROUNDING_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+|\s+\Z")
if sys.platform != "win32":
    import termios
_ERASE_LINE = "\r\x1b[K"
_MARK_PASTES, _STOP_MARKING_PASTES = "\x1b[?2004h", "\x1b[?2004l"
_MAX_LINES = 1_000


class ChatInput(Protocol):
    """Where a chat gets its input from."""

    def read(self) -> str | None:
        """Returns the next message or command; None at the end."""

    def suggest(self, text: str) -> None:
        """Puts a text into the next input line, where that is possible."""

    def confirm(self, question: str) -> bool | None:
        """Asks a yes-or-no question; returns None where there is no person to ask."""

    def handle_interrupt(self, chat: Chat) -> None:
        """Handles Ctrl-C outside of a turn; raises to end the chat."""


def run_chat(chat: Chat, chat_input: ChatInput) -> None:
    """Runs the chat until the user leaves or the input ends."""
    chat.confirm = chat_input.confirm
    while True:
        # Ctrl-C outside of a turn must not end the chat: users press it twice to stop an answer.
        try:
            line = chat_input.read()
            if line is None or not _handle_line(chat, line):
                return
            if chat.suggestion:
                chat_input.suggest(chat.suggestion)
                chat.suggestion = ""
        except KeyboardInterrupt:
            chat_input.handle_interrupt(chat)


def _handle_line(chat: Chat, line: str) -> bool:
    """Runs a command or a turn; returns False when the user wants to leave."""
    if is_command(line):
        return run_command(chat, line)
    if line.strip():
        # The first line of a pasted text keeps its indentation.
        chat.say(_SURROUNDING_BLANK_LINES.sub("", line) if "\n" in line.strip() else line.strip())
    return True


class PipeInput:
    """Lines that another program writes to standard input."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdin

    def read(self) -> str | None:
        line = self._stream.readline()
        return line.rstrip("\n") if line else None

    def suggest(self, text: str) -> None:
        """Does nothing: a program needs no suggestions."""

    def confirm(self, question: str) -> bool | None:
        return None

    def handle_interrupt(self, chat: Chat) -> None:
        raise KeyboardInterrupt


class JsonInput(PipeInput):
    """Lines from a program that controls the chat; a line may be a JSON object whose `text` has several lines."""

    def read(self) -> str | None:
        # No turn is in progress, and an interrupt would lose a line that was read in part.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            line = super().read()
        finally:
            signal.signal(signal.SIGINT, handler)
        return self._unpack(line) if line else line

    def handle_interrupt(self, chat: Chat) -> None:
        chat.output.show_interrupted()

    def _unpack(self, line: str) -> str:
        try:
            value = json.loads(line)
        except ValueError:
            return line
        return value["text"] if isinstance(value, dict) and isinstance(value.get("text"), str) else line


@contextmanager
def chat_mode() -> Iterator[None]:
    """Sets the mode of the chat, and restores the previous mode at the end."""
    if sys.platform == "win32":
        yield
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = termios.tcgetattr(keyboard)
    # Not in line mode, in which a terminal loses whatever exceeds 4,096 bytes.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    # Ctrl-C stops the answer and does not discard what was typed or pasted before it.
    quiet[3] |= termios.NOFLSH
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        # This line shows the keys that were typed before, and the editor will show them again.
        _send(_ERASE_LINE)
        mark_pastes()
        yield
    finally:
        _send(_STOP_MARKING_PASTES)
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


def mark_pastes() -> None:
    """Asks the terminal to mark pasted text; the line editor turns that off after each line."""
    if sys.platform != "win32":
        _send(_MARK_PASTES)


def _send(code: str) -> None:
    sys.stdout.write(code)
    sys.stdout.flush()


class InputHistory:
    """Loads and saves the typed lines of a home."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor

    def lines(self) -> list[str]:
        """Returns the earlier lines, the oldest first."""
        try:
            lines = self._path.read_text("utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return lines[-_MAX_LINES:]

    def add(self, text: str) -> None:
        """Saves a typed line. Text of several lines is skipped: it was pasted, and the record has it."""
        if not text.strip() or "\n" in text:
            return
        redacted, _ = self._redactor.text(text)
        make_private_directory(self._path.parent)
        append_unsynced(self._path, f"{redacted}\n".encode("utf-8", "replace"))
