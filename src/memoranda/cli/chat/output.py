"""Shows a chat to another program: writes the answers to a pipe, or one JSON line per event.

The status says how full the context is, and which share of the input tokens came from the cache.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

import click

from memoranda.agent.events import (
    AnswerTruncated,
    ContextCompressed,
    Event,
    ModelAnswered,
    PartialAnswerKept,
    ToolCalled,
    ToolReturned,
)
from memoranda.agent.loop import Agent
from memoranda.cli.context import EXIT_INTERRUPTED, printable
from memoranda.cli.terminal_text import terminal_line
from memoranda.models.model import Message
from memoranda.models.tokens import estimate_request
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject


@dataclass(frozen=True, slots=True)
class ChatStatus:
    """How the current conversation uses the context window and the cache."""

    session_id: str
    title: str | None
    model: str
    context_tokens: int
    estimated: bool
    window: int
    input_tokens: int
    cached_tokens: int

    def line(self) -> str:
        """Formats the line that is shown under an answer."""
        about = "about " if self.estimated else ""
        share = 100 * self.context_tokens / self.window if self.window else 0
        used, window = format_tokens(self.context_tokens), format_tokens(self.window)
        parts = [f"context {about}{used} of {window} tokens ({share:.0f} %)"]
        if self.input_tokens:
            parts.append(f"{100 * self.cached_tokens / self.input_tokens:.0f} % from cache")
        return " · ".join([*parts, self.model, *([self.title] if self.title else [])])


def build_status(agent: Agent, title: str | None, messages: list[JsonObject]) -> ChatStatus:
    """Builds the status of a conversation; before the first model call the context size is an estimate."""
    known = agent.context_tokens
    tokens = estimate_request(agent.session.prompt, messages, agent.tools) if known is None else known
    return ChatStatus(
        agent.session.id, title, agent.model.name, tokens, known is None, agent.model.window,
        agent.usage.input_tokens, agent.usage.cache_read_tokens,
    )  # fmt: skip


def format_tokens(number: int) -> str:
    """Formats a number of tokens briefly: 950, 12.3k, 200k, 1.05M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}".removesuffix(".0") + "k"
    return f"{number / 1_000_000:.2f}".rstrip("0").rstrip(".") + "M"


class ChatOutput(Protocol):
    """Where a chat is shown."""

    def show_session(self, status: ChatStatus, text: str, last: Sequence[Message] = ()) -> None:
        """A conversation starts or is resumed; `last` contains its last messages."""

    def show_waiting(self) -> None:
        """A request is about to go to the model."""

    def show_text(self, chunk: str) -> None:
        """A piece of the answer."""

    def show_event(self, event: Event) -> None:
        """A step of the turn."""

    def show_answer(self, text: str, status: ChatStatus) -> None:
        """The answer is complete and in the record."""

    def show_interrupted(self) -> None:
        """The user interrupted the turn."""

    def show_note(self, text: str, data: JsonObject) -> None:
        """The result of a chat command."""

    def show_remark(self, kind: str, text: str, data: JsonObject) -> None:
        """Something besides the conversation: what a `review` saved, or a `notice` about the prompt."""

    def show_error(self, text: str, kind: str) -> None:
        """Something failed."""


class PipeOutput:
    """Writes only the answers and the results of commands, for another program or a file."""

    def __init__(self) -> None:
        self._column = 0

    def show_session(self, status: ChatStatus, text: str, last: Sequence[Message] = ()) -> None:
        """Shows nothing: a pipe gets only answers."""

    def show_waiting(self) -> None:
        """Shows nothing."""

    def show_text(self, chunk: str) -> None:
        self._write(make_printable(chunk))

    def show_event(self, event: Event) -> None:
        # Text before a tool call is a paragraph of its own.
        if isinstance(event, ToolCalled):
            self._end_line()

    def show_answer(self, text: str, status: ChatStatus) -> None:
        self._end_line()

    def show_interrupted(self) -> None:
        """Ends the process, as Ctrl-C does for other programs in a pipe."""
        self._end_line()
        click.echo("Interrupted. Your message and everything up to here are saved.", err=True)
        sys.exit(EXIT_INTERRUPTED)

    def show_note(self, text: str, data: JsonObject) -> None:
        self._end_line()
        click.echo(text)

    def show_remark(self, kind: str, text: str, data: JsonObject) -> None:
        """Shows nothing: a pipe gets only answers."""

    def show_error(self, text: str, kind: str) -> None:
        self._end_line()
        click.echo(text, err=True)

    def _write(self, text: str) -> None:
        click.echo(text, nl=False)
        sys.stdout.flush()
        newline = text.rfind("\n")
        self._column = len(text) - newline - 1 if newline >= 0 else self._column + len(text)

    def _end_line(self) -> None:
        if self._column:
            self._write("\n")


class JsonOutput:
    """Writes each event as one line of JSON, for a program that controls the chat."""

    def show_session(self, status: ChatStatus, text: str, last: Sequence[Message] = ()) -> None:
        messages = [{"role": message["role"], "content": message["content"]} for message in last]
        self._print("session", **asdict(status), last=messages)

    def show_waiting(self) -> None:
        """Prints nothing: the next event follows."""

    def show_text(self, chunk: str) -> None:
        self._print("text", text=chunk)

    def show_event(self, event: Event) -> None:
        if isinstance(event, ModelAnswered):
            self._print("usage", **asdict(event.usage))
        elif isinstance(event, ToolCalled):
            self._print("tool_call", id=event.call.id, name=event.call.name, arguments=event.call.arguments)
        elif isinstance(event, ToolReturned):
            self._print("tool_result", id=event.call.id, name=event.call.name, result=event.result)
        elif isinstance(event, AnswerTruncated):
            self._print("cut_off")
        elif isinstance(event, PartialAnswerKept):
            self._print("partial_answer", text=event.text)
        else:
            done = event.compression
            self._print("compressed", tokens_before=done.tokens_before, tokens_after=done.tokens_after, how=done.how)

    def show_answer(self, text: str, status: ChatStatus) -> None:
        self._print("answer", text=text, **asdict(status))

    def show_interrupted(self) -> None:
        self._print("interrupted")

    def show_note(self, text: str, data: JsonObject) -> None:
        self._print("note", text=click.unstyle(text), **data)

    def show_remark(self, kind: str, text: str, data: JsonObject) -> None:
        self._print(kind, text=text, **data)

    def show_error(self, text: str, kind: str) -> None:
        self._print("error", error=text, kind=kind)

    def _print(self, event: str, **fields: Any) -> None:
        click.echo(json.dumps({"event": event, **fields}, ensure_ascii=False, default=str))
        sys.stdout.flush()


def make_printable(text: str) -> str:
    """Replaces the characters of a model's text that could control a terminal; line breaks and tabs stay."""
    return "".join(char if char in "\n\t" else printable(char) for char in text)


def describe_compression(event: ContextCompressed) -> str:
    """Describes what compression did."""
    done = event.compression
    how = "summarised" if done.how == "model" else "shortened"
    if not done.tokens_before:
        return f"The earlier part of the conversation was {how}; /search still finds all of it."
    sizes = f"from {format_tokens(done.tokens_before)} to {format_tokens(done.tokens_after)} tokens"
    return f"The earlier part of the conversation was {how}, {sizes}; /search still finds all of it."


def join_lines(text: str, max_chars: int) -> str:
    """Joins the lines of untrusted text, removes control characters, and shortens the result."""
    return terminal_line(" ".join(text.split()), max_chars)
