"""Reads the input of a chat line by line, from a terminal, a pipe or JSON lines, and runs it."""

import json
import signal
import sys
from typing import Protocol, TextIO

import click

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import is_command, run_command
from memoranda.cli.chat.input_history import InputHistory
from memoranda.cli.terminal_text import dim

_PROMPT, _CONTINUATION_PROMPT = "> ", ". "


class ChatInput(Protocol):
    """Where a chat gets its input from."""

    def read(self) -> str | None:
        """Returns the next message or command; None at the end."""

    def suggest(self, text: str) -> None:
        """Puts a text into the next input line, where that is possible."""

    def handle_interrupt(self, chat: Chat) -> None:
        """Handles Ctrl-C outside of a turn; raises to end the chat."""


def run_chat(chat: Chat, lines: ChatInput) -> None:
    """Runs the chat until the user leaves or the input ends."""
    while True:
        # Ctrl-C outside of a turn must not end the chat: users press it twice to stop an answer.
        try:
            line = lines.read()
            if line is None or not _handle_line(chat, line):
                return
            if chat.suggestion:
                lines.suggest(chat.suggestion)
                chat.suggestion = ""
        except KeyboardInterrupt:
            lines.handle_interrupt(chat)


def _handle_line(chat: Chat, line: str) -> bool:
    """Runs a command or a turn; False when the user wants to leave."""
    if is_command(line):
        return run_command(chat, line)
    if line.strip():
        chat.say(line.strip())
    return True


class TerminalInput:
    """Lines that a user types, with history and the usual editing keys."""

    def __init__(self, history: InputHistory) -> None:
        self._history = history
        history.load()

    def read(self) -> str | None:
        try:
            lines = [input(_PROMPT)]
            while lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(input(_CONTINUATION_PROMPT))
        except EOFError:
            click.echo()
            return None
        text = "\n".join(lines)
        self._history.add(text)
        return text

    def suggest(self, text: str) -> None:
        self._history.suggest(text)

    def handle_interrupt(self, chat: Chat) -> None:
        click.echo(dim("\nCtrl-D or /quit leaves."))


class PipeInput:
    """Lines that another program writes to standard input."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdin

    def read(self) -> str | None:
        line = self._stream.readline()
        return line.rstrip("\n") if line else None

    def suggest(self, text: str) -> None:
        """Does nothing: a program needs no suggestions."""

    def handle_interrupt(self, chat: Chat) -> None:
        raise KeyboardInterrupt


class JsonInput(PipeInput):
    """Lines of a program that drives the chat; a line may be a JSON object whose `text` has several lines."""

    def read(self) -> str | None:
        # No turn is running that could be stopped, and an interrupt would lose a line that was read in part.
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
