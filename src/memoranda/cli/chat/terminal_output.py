"""Shows a chat to a person at a terminal: rendered answers, tools and context in grey."""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from memoranda.agent.events import (
    AnswerTruncated,
    ContextCompressed,
    Event,
    PartialAnswerKept,
    ToolCalled,
    ToolReturned,
)
from memoranda.cli.chat.markdown import MarkdownStream, wrap_lines
from memoranda.cli.chat.output import ChatStatus, PipeOutput, describe_compression, join_lines, make_printable
from memoranda.cli.terminal_text import dim, terminal_line, uses_colour
from memoranda.memory.record.message_rows import text_of
from memoranda.models.model import Message
from memoranda.support.tool import JsonObject

_WAITING_SIGN = "…"
_MAX_STEP_CHARS = 100
_MAX_REPEATED_CHARS = 300


class TerminalOutput(PipeOutput):
    """Renders answers for a person, shows tools and context in grey, and a sign while the model works.

    With `plain`, or without colours, Markdown is not rendered.
    """

    def __init__(self, *, plain: bool = False) -> None:
        super().__init__()
        self._waiting = False
        self._has_partial_answer = False
        self._answer = MarkdownStream(_width, markup=uses_colour() and not plain)

    def show_session(self, status: ChatStatus, text: str, last: Sequence[Message] = ()) -> None:
        self._print(text)
        for message in last:
            self._print(dim(f"  {message['role']}: {join_lines(text_of(message['content']), _MAX_REPEATED_CHARS)}"))
        self._print(dim(terminal_line(status.line())))

    def show_text(self, chunk: str) -> None:
        if text := self._answer.feed(make_printable(chunk)):
            self._write(text)

    def show_waiting(self) -> None:
        self._waiting = True
        click.echo(dim(_WAITING_SIGN), nl=False)
        sys.stdout.flush()

    def show_event(self, event: Event) -> None:
        self._end_line()
        if isinstance(event, ToolCalled):
            self._print(dim(f"  · {join_lines(_describe_call(event), _MAX_STEP_CHARS)}"))
        elif isinstance(event, ToolReturned):
            self._print(dim(f"    {join_lines(_describe_result(event.result), _MAX_STEP_CHARS)}"))
            self.show_waiting()
        elif isinstance(event, ContextCompressed):
            self._print(dim(f"  · {describe_compression(event)}"))
        elif isinstance(event, AnswerTruncated):
            self._print(dim("  · The answer was truncated at the limit that model.max_tokens sets."))
        self._has_partial_answer = isinstance(event, PartialAnswerKept)

    def show_answer(self, text: str, status: ChatStatus) -> None:
        self._end_line()
        self._print(dim(terminal_line(status.line())))

    def show_interrupted(self) -> None:
        self._end_line()
        what = "what was shown of the answer" if self._has_partial_answer else "the finished steps"
        self._has_partial_answer = False
        self._print(dim(f"Interrupted. Your message and {what} are saved; /undo removes the turn."))

    def show_note(self, text: str, data: JsonObject) -> None:
        self._end_line()
        self._print(text)

    def show_remark(self, kind: str, text: str, data: JsonObject) -> None:
        self._end_line()
        self._print(dim(terminal_line(text)))

    def show_error(self, text: str, kind: str) -> None:
        self._end_line()
        click.secho(wrap_lines(text, _width()), fg="red", err=True)

    def _print(self, text: str) -> None:
        click.echo(wrap_lines(text, _width()))

    def _write(self, text: str) -> None:
        if self._waiting:
            self._stop_waiting()
        super()._write(text)

    def _end_line(self) -> None:
        if self._waiting:
            self._stop_waiting()
        if text := self._answer.finish():
            self._write(text)
        super()._end_line()

    def _stop_waiting(self) -> None:
        self._waiting = False
        click.echo("\r\x1b[K", nl=False)


def _width() -> int:
    return shutil.get_terminal_size().columns


def _describe_call(event: ToolCalled) -> str:
    """Describes a tool call: the name of the tool and the values of its arguments."""
    try:
        arguments = json.loads(event.call.arguments or "{}")
    except ValueError:
        arguments = event.call.arguments
    values = " · ".join(_leaf_values(arguments))
    return f"{event.call.name}: {values}" if values else event.call.name


def _leaf_values(value: Any) -> Iterator[str]:
    """Yields every value in a structure, in order, without the keys."""
    if isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _leaf_values(child)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _describe_result(result: JsonObject) -> str:
    """Describes the result of a tool call."""
    text = result.get("error") or result.get("message") or result.get("result")
    if text is None and isinstance(result.get("results"), list):
        text = f"{len(result['results'])} found"
    sign = "→" if result.get("success", True) else "✗"
    return f"{sign} {text or 'done'}"
