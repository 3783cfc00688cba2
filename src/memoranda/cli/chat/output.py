"""Shows a chat to another program or in a file: only the answers and the results of commands, as text."""

import sys

import click

from memoranda.agent.events import AnswerTruncated, ContextCompressed, Event, ToolCalled, ToolReturned
from memoranda.cli.context import EXIT_INTERRUPTED, printable
from memoranda.cli.terminal_text import terminal_line

COMPRESSED = "The earlier part of the conversation was shortened; /search still finds all of it."
_TRUNCATED = "The answer was truncated at the limit that model.max_tokens sets."


class PipeOutput:
    """Writes the answers and the results of commands, and errors to standard error."""

    def __init__(self) -> None:
        self._is_in_line = False

    def wait(self) -> None:
        """Show that the model works, where a person looks at it."""

    def write(self, chunk: str) -> None:
        """Show a piece of the answer; characters that could control a terminal are replaced."""
        if chunk:
            click.echo(make_printable(chunk), nl=False)
            self._is_in_line = not chunk.endswith("\n")

    def show_event(self, event: Event) -> None:
        """Show a step of the turn."""
        if isinstance(event, ToolCalled):
            self.show("step", f"  · {join_lines(f'{event.call.name} {event.call.arguments}', 100)}")
        elif isinstance(event, ToolReturned):
            sign = "→" if event.result.get("success", True) else "✗"
            said = event.result.get("error") or event.result.get("message") or "done"
            self.show("step", f"    {sign} {join_lines(str(said), 100)}")
            self.wait()
        elif isinstance(event, ContextCompressed | AnswerTruncated):
            self.show("step", f"  · {COMPRESSED if isinstance(event, ContextCompressed) else _TRUNCATED}")

    def show(self, kind: str, text: str) -> None:
        """Show a line about the conversation: a `note` is the result of a command, an `error` what was not done."""
        if self._is_in_line:
            click.echo()
            self._is_in_line = False
        if kind in ("note", "error", "interrupted"):
            click.echo(make_printable(text), err=kind != "note")
        if kind == "interrupted":
            sys.exit(EXIT_INTERRUPTED)


def make_printable(text: str) -> str:
    """Replace the characters of a model's text that could control a terminal; line breaks and tabs stay."""
    return "".join(char if char in "\n\t" else printable(char) for char in text)


def join_lines(text: str, max_chars: int) -> str:
    """Join the lines of untrusted text, replace control characters, and shorten the result."""
    return terminal_line(" ".join(text.split()), max_chars)
