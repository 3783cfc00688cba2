"""A chat in a terminal: what a person types or pastes, and answers whose Markdown is rendered while a model writes.

A block of Markdown, such as a paragraph or a table, is drawn again with every piece of it, and printed for good when
the next one begins. Outside of the line editor the terminal does not show keys, which the editor will show, and marks
pasted text: what is typed or pasted while the model answers waits for the next prompt.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.shortcuts import CompleteStyle
from rich.console import Console
from rich.live import Live
from rich.markdown import CodeBlock, Markdown
from rich.syntax import Syntax
from rich.text import Text

from memoranda.cli.chat.output import PipeOutput, make_printable
from memoranda.cli.terminal_text import uses_colour
from memoranda.safety.redaction import Redactor
from memoranda.support.durable_files import append_unsynced, make_private_directory

if sys.platform != "win32":
    import termios
_MAX_LINES_OF_HISTORY = 1_000
_STYLES = {"error": "red", "note": ""}


class TerminalOutput(PipeOutput):
    """Renders answers, and shows tools and context in grey; with `plain`, or without colours, answers stay as text."""

    def __init__(self, *, plain: bool) -> None:
        super().__init__()
        self._plain = plain or not uses_colour()
        self._console = Console(highlight=False)
        self._block = ""
        """The last block of the answer, which may continue."""
        self._live: Live | None = None

    def wait(self) -> None:
        if self._live is None:
            self._live = Live(
                console=self._console, get_renderable=self._draw_block, refresh_per_second=10, transient=True
            )
            self._live.start(refresh=True)

    def write(self, chunk: str) -> None:
        if self._plain:
            self._stop_waiting()
            super().write(chunk)
            return
        self.wait()
        self._block += make_printable(chunk)
        if "\n" in chunk:
            done, self._block = _split_last_block(self._block)
            self._print_blocks(done)

    def show(self, kind: str, text: str) -> None:
        self._stop_waiting()
        self._print_blocks(self._block)
        self._block = ""
        super().show("", "")
        if text:
            self._console.print(Text(make_printable(text), style=_STYLES.get(kind, "dim")))

    def _stop_waiting(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _draw_block(self) -> Text:
        lines = _render(self._block, self._console.width)[2 - self._console.height :]
        return Text.from_ansi("\n".join(lines), no_wrap=True) if self._block.strip() else Text("…", style="dim")

    def _print_blocks(self, text: str) -> None:
        if text.strip():
            self._console.print(Text.from_ansi("\n".join([*_render(text, self._console.width), ""])), soft_wrap=True)


class _Code(CodeBlock):
    """Code whose lines are neither wrapped nor padded, so that they can be copied."""

    def __rich_console__(self, *_: Any) -> Iterator[Text]:
        text = Syntax("", self.lexer_name, theme="ansi_dark", background_color="default").highlight(str(self.text))
        text.rstrip()
        text.no_wrap, text.overflow = True, "ignore"
        yield text


class _Markdown(Markdown):
    elements = Markdown.elements | {"fence": _Code, "code_block": _Code}

    def __init__(self, text: str) -> None:
        super().__init__(text, hyperlinks=False)
        for token in self.parsed:
            for part in (token, *(token.children or ())):
                # An entity such as &#8238; stands for a character that was not in the text.
                part.content = make_printable(part.content)


def _render(text: str, width: int) -> list[str]:
    """Return the lines of Markdown with the codes of their styles."""
    lines = StringIO()
    Console(file=lines, force_terminal=True, width=width, highlight=False).print(_Markdown(text), crop=False)
    return [line.rstrip() for line in lines.getvalue().strip("\n").split("\n")]


def _split_last_block(text: str) -> tuple[str, str]:
    """Split Markdown before its last block."""
    lines = text.splitlines(keepends=True)
    last = max((token.map[0] for token in Markdown(text).parsed if token.map and not token.level), default=0)
    return "".join(lines[:last]), "".join(lines[last:])


class TerminalInput:
    """Reads what a person types, with history and the usual editing keys; pasted text is part of one message."""

    def __init__(self, history: Path, redactor: Redactor, commands: list[str]) -> None:
        keys = KeyBindings()
        keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        output: Any = create_output()
        # Some terminals answer requests for the cursor position late or never.
        output.enable_cpr = False
        # Pastes are marked until the chat ends.
        output.disable_bracketed_paste = lambda: None
        self._editor: PromptSession[str] = PromptSession(
            history=_PrivateHistory(history, redactor),
            completer=WordCompleter(commands, sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=keys,
            reserve_space_for_menu=0,
            output=output,
        )

    def read(self, suggestion: str) -> str | None:
        """Return the next message or command; None when the user leaves."""
        try:
            return self._editor.prompt("> ", default=suggestion)
        except EOFError:
            click.echo()
            return None


class _PrivateHistory(History):
    """The typed lines of a home, without credentials; text of several lines was pasted, and the record has it."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        super().__init__()
        self._path, self._redactor = path, redactor

    def load_history_strings(self) -> Iterable[str]:
        if self._path.exists():
            yield from self._path.read_text("utf-8", errors="replace").splitlines()[: -_MAX_LINES_OF_HISTORY - 1 : -1]

    def store_string(self, string: str) -> None:
        if "\n" not in string:
            make_private_directory(self._path.parent)
            append_unsynced(self._path, f"{self._redactor.text(string)[0]}\n".encode("utf-8", "replace"))


@contextmanager
def chat_mode() -> Iterator[None]:
    """Show no keys outside of the line editor and mark pastes while the block runs; Ctrl-C still interrupts."""
    if sys.platform == "win32":
        yield
        return
    keyboard = sys.stdin.fileno()
    before, quiet = termios.tcgetattr(keyboard), termios.tcgetattr(keyboard)
    # Not in line mode, in which a terminal loses whatever exceeds 4,096 bytes.
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    # Ctrl-C does not discard what was typed or pasted before it.
    quiet[3] |= termios.NOFLSH
    try:
        termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
        # This line shows the keys that were typed before, and the editor will show them again.
        click.echo("\r\x1b[K\x1b[?2004h", nl=False)
        yield
    finally:
        # The cursor is hidden while an answer is drawn.
        click.echo("\x1b[?2004l\x1b[?25h", nl=False)
        termios.tcsetattr(keyboard, termios.TCSANOW, before)
