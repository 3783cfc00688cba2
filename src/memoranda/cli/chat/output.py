"""What a chat shows, in three forms: on a terminal, into a pipe, and as one JSON line per event."""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import click

from memoranda.agent.events import AnswerTruncated, ContextCompressed, Event, ModelAnswered, ToolCalled, ToolReturned
from memoranda.cli.chat.status import ChatStatus, short
from memoranda.cli.context import printable
from memoranda.cli.terminal_text import dim, terminal_line
from memoranda.llm.model import Message
from memoranda.sessions.message_rows import text_of
from memoranda.tools import JsonObject

_WAITING = "…"
_MOST_SHOWN = 100
_MOST_REPEATED = 300
# The exit code that shells give a program which was interrupted.
_INTERRUPTED = 130


class ChatOutput(Protocol):
    """Where a chat appears."""

    def begun(self, status: ChatStatus, words: str, last: Sequence[Message] = ()) -> None:
        """A conversation begins or is taken up, as `words` say; `last` is what was said last in it."""

    def asking(self) -> None:
        """The model is about to be asked."""

    def text(self, chunk: str) -> None:
        """A piece of the answer."""

    def event(self, event: Event) -> None:
        """A step of the turn."""

    def answered(self, text: str, status: ChatStatus) -> None:
        """The answer is complete and recorded."""

    def stopped(self) -> None:
        """The person interrupted the turn."""

    def note(self, text: str, data: JsonObject) -> None:
        """What a command has to say."""

    def remark(self, kind: str, text: str, data: JsonObject) -> None:
        """Something that happened beside the conversation: a `review` saved something, a `notice` about the prompt."""

    def trouble(self, text: str, kind: str) -> None:
        """Something could not be done."""


class PipeOutput:
    """For another program, or a file: answers and what commands say, nothing else."""

    def __init__(self) -> None:
        self._column = 0

    def begun(self, status: ChatStatus, words: str, last: Sequence[Message] = ()) -> None:
        """Nobody is there to be greeted."""

    def asking(self) -> None:
        """Nobody waits."""

    def text(self, chunk: str) -> None:
        self._write("".join(char if char in "\n\t" else printable(char) for char in chunk))

    def event(self, event: Event) -> None:
        # What the model says before it calls a tool is a paragraph of its own.
        if isinstance(event, ToolCalled):
            self._end_line()

    def answered(self, text: str, status: ChatStatus) -> None:
        self._end_line()

    def stopped(self) -> None:
        """Whoever interrupts a pipe wants it to end."""
        self._end_line()
        click.echo("Interrupted. Your words and finished steps are kept.", err=True)
        sys.exit(_INTERRUPTED)

    def note(self, text: str, data: JsonObject) -> None:
        self._end_line()
        click.echo(text)

    def remark(self, kind: str, text: str, data: JsonObject) -> None:
        """Nobody is there to hear it."""

    def trouble(self, text: str, kind: str) -> None:
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


class TerminalOutput(PipeOutput):
    """For a person: with tools and context shown in grey, and a sign while the model thinks."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = False

    def begun(self, status: ChatStatus, words: str, last: Sequence[Message] = ()) -> None:
        click.echo(words)
        for message in last:
            click.echo(dim(f"  {message['role']}: {on_one_line(text_of(message['content']), _MOST_REPEATED)}"))
        click.echo(dim(terminal_line(status.line())))

    def asking(self) -> None:
        self._waiting = True
        click.echo(dim(_WAITING), nl=False)
        sys.stdout.flush()

    def event(self, event: Event) -> None:
        self._end_line()
        if isinstance(event, ToolCalled):
            click.echo(dim(f"  · {on_one_line(_call(event), _MOST_SHOWN)}"))
        elif isinstance(event, ToolReturned):
            click.echo(dim(f"    {on_one_line(_result(event.result), _MOST_SHOWN)}"))
            self.asking()
        elif isinstance(event, ContextCompressed):
            click.echo(dim(f"  · {compressed(event)}"))
        elif isinstance(event, AnswerTruncated):
            click.echo(dim("  · The answer was cut off at its longest; model.max_tokens sets how long that is."))

    def answered(self, text: str, status: ChatStatus) -> None:
        self._end_line()
        click.echo(dim(terminal_line(status.line())))

    def stopped(self) -> None:
        self._end_line()
        click.echo(dim("Interrupted. Your words and finished steps are kept; /undo takes the turn back."))

    def remark(self, kind: str, text: str, data: JsonObject) -> None:
        self._end_line()
        click.echo(dim(terminal_line(text)))

    def trouble(self, text: str, kind: str) -> None:
        self._end_line()
        click.secho(text, fg="red", err=True)

    def _write(self, text: str) -> None:
        if self._waiting:
            self._stop_waiting()
        super()._write(text)

    def _end_line(self) -> None:
        if self._waiting:
            self._stop_waiting()
        super()._end_line()

    def _stop_waiting(self) -> None:
        self._waiting = False
        click.echo("\r\x1b[K", nl=False)


class JsonOutput:
    """For a program that drives the chat: each event is one line."""

    def begun(self, status: ChatStatus, words: str, last: Sequence[Message] = ()) -> None:
        said = [{"role": each["role"], "content": each["content"]} for each in last]
        self._say("session", **status.as_json(), last=said)

    def asking(self) -> None:
        """The next event says it."""

    def text(self, chunk: str) -> None:
        self._say("text", text=chunk)

    def event(self, event: Event) -> None:
        if isinstance(event, ModelAnswered):
            used = event.usage
            self._say(
                "usage",
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cache_read_tokens=used.cache_read_tokens,
                cache_write_tokens=used.cache_write_tokens,
                reasoning_tokens=used.reasoning_tokens,
            )
        elif isinstance(event, ToolCalled):
            self._say("tool_call", id=event.call.id, name=event.call.name, arguments=event.call.arguments)
        elif isinstance(event, ToolReturned):
            self._say("tool_result", id=event.call.id, name=event.call.name, result=event.result)
        elif isinstance(event, AnswerTruncated):
            self._say("cut_off")
        else:
            done = event.compression
            self._say("compressed", tokens_before=done.tokens_before, tokens_after=done.tokens_after, how=done.how)

    def answered(self, text: str, status: ChatStatus) -> None:
        self._say("answer", text=text, **status.as_json())

    def stopped(self) -> None:
        self._say("interrupted")

    def note(self, text: str, data: JsonObject) -> None:
        self._say("note", text=click.unstyle(text), **data)

    def remark(self, kind: str, text: str, data: JsonObject) -> None:
        self._say(kind, text=text, **data)

    def trouble(self, text: str, kind: str) -> None:
        self._say("error", error=text, kind=kind)

    def _say(self, event: str, **fields: Any) -> None:
        click.echo(json.dumps({"event": event, **fields}, ensure_ascii=False, default=str))
        sys.stdout.flush()


def compressed(event: ContextCompressed) -> str:
    """What compression did, in words."""
    done = event.compression
    how = "summarised" if done.how == "model" else "shortened"
    if not done.tokens_before:
        return f"The earlier part of the conversation was {how}; /search still finds all of it."
    sizes = f"from {short(done.tokens_before)} to {short(done.tokens_after)} tokens"
    return f"The earlier part of the conversation was {how}, {sizes}; /search still finds all of it."


def _call(event: ToolCalled) -> str:
    """A call in a few words: the tool, and what it was given."""
    try:
        given = json.loads(event.call.arguments or "{}")
    except ValueError:
        given = event.call.arguments
    words = " · ".join(_leaves(given))
    return f"{event.call.name}: {words}" if words else event.call.name


def _leaves(value: Any) -> Iterator[str]:
    """Every value in a structure, in order, without its keys."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def _result(result: JsonObject) -> str:
    """A result in a few words."""
    said = result.get("error") or result.get("message") or result.get("result")
    if said is None and isinstance(result.get("results"), list):
        said = f"{len(result['results'])} found"
    sign = "→" if result.get("success", True) else "✗"
    return f"{sign} {said or 'done'}"


def on_one_line(text: str, most: int) -> str:
    """A text from elsewhere, with its lines run together, as short as asked."""
    return terminal_line(" ".join(text.split()), most)
