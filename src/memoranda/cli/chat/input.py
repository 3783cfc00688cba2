"""Reading what a person or a program says to the chat, line by line."""

import json
import signal
import sys
from typing import Protocol, TextIO

import click

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import is_command, run_command
from memoranda.cli.chat.input_history import InputHistory
from memoranda.cli.terminal_text import dim

_PROMPT, _GOING_ON = "> ", ". "


class ChatInput(Protocol):
    """Where a chat gets its lines from."""

    def read(self) -> str | None:
        """The next thing that is said; None at the end."""

    def offer(self, text: str) -> None:
        """Make it easy to say something again."""

    def interrupted(self, chat: Chat) -> None:
        """Ctrl-C before or after a turn; raises when that means the end."""


def run_chat(chat: Chat, lines: ChatInput) -> None:
    """Go on until the person leaves or nothing more comes."""
    while True:
        # Outside the turn too: who presses Ctrl-C twice does not want to lose the chat.
        try:
            line = lines.read()
            if line is None or not _take(chat, line):
                return
            if chat.offered:
                lines.offer(chat.offered)
                chat.offered = ""
        except KeyboardInterrupt:
            lines.interrupted(chat)


def _take(chat: Chat, line: str) -> bool:
    """Do what a line asks for; False when it asks to leave."""
    if is_command(line):
        return run_command(chat, line)
    if line.strip():
        chat.say(line.strip())
    return True


class TerminalInput:
    """Lines that a person types, with history and the usual keys."""

    def __init__(self, history: InputHistory) -> None:
        self._history = history
        history.load()

    def read(self) -> str | None:
        try:
            lines = [input(_PROMPT)]
            while lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(input(_GOING_ON))
        except EOFError:
            click.echo()
            return None
        text = "\n".join(lines)
        self._history.add(text)
        return text

    def offer(self, text: str) -> None:
        self._history.offer(text)

    def interrupted(self, chat: Chat) -> None:
        click.echo(dim("\nCtrl-D or /quit leaves."))


class PipeInput:
    """Lines that a program sends."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdin

    def read(self) -> str | None:
        line = self._stream.readline()
        return line.rstrip("\n") if line else None

    def offer(self, text: str) -> None:
        """A program has its own words."""

    def interrupted(self, chat: Chat) -> None:
        raise KeyboardInterrupt


class JsonInput(PipeInput):
    """Lines of a program that drives the chat; one may be an object with a `text`, which can have many lines."""

    def read(self) -> str | None:
        # Nothing is under way that could be stopped, and a line that was half read would be lost.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            line = super().read()
        finally:
            signal.signal(signal.SIGINT, handler)
        return self._unpacked(line) if line else line

    def interrupted(self, chat: Chat) -> None:
        chat.screen.stopped()

    def _unpacked(self, line: str) -> str:
        try:
            value = json.loads(line)
        except ValueError:
            return line
        return value["text"] if isinstance(value, dict) and isinstance(value.get("text"), str) else line
