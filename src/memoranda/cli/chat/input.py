"""Runs the input of a chat, message by message, and reads it from a pipe or from JSON lines."""

import json
import re
import signal
import sys
from typing import Protocol, TextIO

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import is_command, run_command

_SURROUNDING_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+|\s+\Z")


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
