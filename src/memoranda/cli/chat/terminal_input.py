"""Reads what a person types or pastes in a terminal, with history and the usual editing keys."""

import sys

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.input import InputHistory, mark_pastes
from memoranda.cli.terminal_text import dim

_PROMPT, _CONTINUATION_PROMPT = "> ", ". "


class TerminalInput:
    """Reads the messages that a person types; pasted text is part of one message, even if it has several lines."""

    def __init__(self, history: InputHistory, commands: list[str]) -> None:
        self._history = history
        self._suggestion = ""
        output = _create_output()
        self._editor: PromptSession[str] = PromptSession(
            history=InMemoryHistory(history.lines()),
            completer=WordCompleter(commands, sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=_newline_key_bindings(),
            reserve_space_for_menu=0,
            output=output,
        )
        self._question: PromptSession[str] = PromptSession(output=output)

    def read(self) -> str | None:
        suggestion, self._suggestion = self._suggestion, ""
        try:
            lines = [self._ask(self._editor, _PROMPT, suggestion)]
            while lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(self._ask(self._editor, _CONTINUATION_PROMPT))
        except EOFError:
            click.echo()
            return None
        text = "\n".join(lines)
        self._history.add(text)
        return text

    def suggest(self, text: str) -> None:
        self._suggestion = text

    def confirm(self, question: str) -> bool | None:
        try:
            return self._ask(self._question, f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    def handle_interrupt(self, chat: Chat) -> None:
        click.echo(dim("Ctrl-D or /quit leaves."))

    def _ask(self, editor: "PromptSession[str]", prompt: str, default: str = "") -> str:
        try:
            return str(editor.prompt(prompt, default=default))
        finally:
            mark_pastes()


def _newline_key_bindings() -> KeyBindings:
    def insert_newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    keys = KeyBindings()
    keys.add("escape", "enter")(insert_newline)
    return keys


def _create_output() -> Output:
    """Returns the screen, without requests for the cursor position: some terminals answer them late or never."""
    output = create_output(sys.stdout)
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
