"""`memoranda chat`: talk to a model that remembers, in a terminal or through a pipe."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import click

from memoranda.api.memory import Memory, open_memory
from memoranda.cli.background_tasks import log_resources, maintain_while_open
from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import COMMANDS, run_line
from memoranda.cli.chat.output import PipeOutput
from memoranda.cli.completion import complete_session
from memoranda.cli.context import EXIT_REFUSED, EXIT_UNUSABLE, Invocation, memory_options
from memoranda.cli.log_file import log_to_file
from memoranda.cli.sessions.lookup import explain_not_found, resolve_session
from memoranda.errors import ModelError, StorageError
from memoranda.home.config import credentials, known_secrets
from memoranda.models.model import ChatModel
from memoranda.models.model_factory import model_for
from memoranda.models.settings import ModelSettings
from memoranda.safety.redaction import Redactor

_LATEST = "\0latest"
_HOW_TO_LIST = "'memoranda sessions list' shows all conversations."
_EPILOG = """\b
Examples:
  memoranda chat
  memoranda chat --resume "Fix the build"
  memoranda chat --resume
  memoranda chat --query "What did we decide about the queue?"
  git diff | memoranda chat --query -
"""


@click.command(epilog=_EPILOG)
@click.option("-m", "--model", "model_name", metavar="NAME", help="The model to talk to (model.name).")
@click.option(
    "-r",
    "--resume",
    metavar="[ID|TITLE]",
    is_flag=False,
    flag_value=_LATEST,
    help="Resume a conversation; without a name, the latest.",
    shell_complete=complete_session,
)
@click.option("--new", is_flag=True, help="Start a new conversation (this is the default).")
@click.option("-q", "--query", metavar="TEXT", help="Send this, print the answer and exit; '-' reads it from a pipe.")
@click.option("--plain", is_flag=True, help="Show answers as the model writes them, without rendering Markdown.")
@memory_options
def command(
    invocation: Invocation, model_name: str | None, resume: str | None, new: bool, query: str | None, plain: bool
) -> None:
    """Talk to a model that remembers. /help lists the commands of the chat.

    Every message is on disk before the next step. Ctrl-C stops an answer; your message and what was shown of the
    answer are kept. In a terminal, Markdown is rendered and pasted text is one message. Without a terminal,
    each line of the input is one message and only the answers are printed.
    """
    if new and resume:
        raise click.UsageError("--new and --resume cannot be combined.")
    if resume is not None and not resume.strip():
        raise click.UsageError("--resume takes an id or a title; without either it resumes the latest.")
    message = sys.stdin.read().strip() if query == "-" else query
    if message is not None and not message.strip():
        raise click.UsageError("--query is empty: there is nothing to send.")
    if invocation.as_json:
        raise click.UsageError("A chat prints no --json: a program uses memoranda.open().agent(model), or the service.")
    is_terminal = message is None and sys.stdin.isatty() and sys.stdout.isatty()
    with (
        open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory,
        ExitStack() as stack,
    ):
        stored = memory.config.model
        resumed = _find_session_to_resume(invocation, memory, resume) if resume else None
        model = _choose_model(invocation, memory, replace(stored, name=model_name) if model_name else stored)
        output, read = PipeOutput(), _read_pipe
        if is_terminal:
            # The line editor and the renderer take a moment to load, and only a person needs them.
            from memoranda.cli.chat.terminal import TerminalInput, TerminalOutput, chat_mode  # noqa: PLC0415

            stack.enter_context(chat_mode())
            history = memory.home.memories(invocation.user).parent / "chat_history"
            output = TerminalOutput(plain=plain)
            read = TerminalInput(history, Redactor(known_secrets(memory.home)), list(COMMANDS)).read
        stack.enter_context(log_to_file(memory.home.root / "logs" / "chat.log"))
        stack.enter_context(log_resources(memory.home.root, "chat"))
        stack.enter_context(maintain_while_open(memory.home, memory.config.retention))
        chat = Chat(memory, model, output, resume=resumed)
        stack.callback(chat.close)
        if message is not None:
            chat.say(message)
        else:
            _talk(chat, read, resumed)
            if is_terminal and chat.is_recorded:
                click.echo(f"Saved. 'memoranda chat --resume {chat.session.id}' continues this conversation.")
    sys.exit(EXIT_REFUSED if chat.failed and not is_terminal else 0)


def _choose_model(invocation: Invocation, memory: Memory, settings: ModelSettings) -> ChatModel:
    """Return the configured model; when there is none, say how to set one up and exit."""
    try:
        return model_for(settings, credentials(memory.home))
    except ModelError as error:
        invocation.fail(f"{error}\n'memoranda demo' shows the memory at work without a model.", code=EXIT_UNUSABLE)


def _find_session_to_resume(invocation: Invocation, memory: Memory, name: str) -> str:
    if not memory.services.has_record:
        invocation.fail("There is no conversation to resume yet. 'memoranda chat' starts one.")
    if name != _LATEST:
        return resolve_session(memory.sessions, name) or invocation.fail(explain_not_found(memory.sessions, name))
    rows = memory.sessions.list_sessions_rich(source="cli", limit=1, order_by_last_active=True)
    return str(rows[0]["id"]) if rows else invocation.fail(f"No chat is recorded yet. {_HOW_TO_LIST}")


def _read_pipe(suggestion: str) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def _talk(chat: Chat, read: Callable[[str], str | None], resumed: str | None) -> None:
    """Answer lines until the user leaves or the input ends; `read` gets the text to offer in the next line."""
    chat.greet("" if resumed else f"A new conversation with {chat.model.name}. /help lists the commands.")
    for notice in (*chat.session.notices, *_curator_notice(chat.memory)):
        chat.output.show("notice", notice)
    while True:
        try:
            suggestion, chat.suggestion = chat.suggestion, ""
            line = read(suggestion)
            if line is None or not run_line(chat, line):
                return
        except KeyboardInterrupt:
            # Users press Ctrl-C twice to stop an answer, which must not end the chat.
            chat.output.show("interrupted", "Ctrl-D or /quit leaves.")


def _curator_notice(memory: Memory) -> list[str]:
    """Say that the curator has something to propose, where the settings ask it to."""
    try:
        count = len(memory.curate(model=False)["changes"]) if memory.config.curate.mode == "propose" else 0
    except StorageError:
        # The prompt says what is wrong with a memory that cannot be read.
        count = 0
    changes = f"The curator proposes {count} change{'s' if count > 1 else ''} to memory"
    return [f"{changes}: 'memoranda curate' shows them (curate.mode is propose)."] if count else []
