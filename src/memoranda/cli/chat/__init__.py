"""`memoranda chat`: talk to a model that remembers, in a terminal, through a pipe, or as JSON lines."""

import sys
from contextlib import nullcontext

import click

from memoranda.api.memory import Memory, open_memory
from memoranda.cli.background_tasks import maintain_while_open
from memoranda.cli.chat.chat import Chat, choose_model, exit_with_error
from memoranda.cli.chat.commands import COMMANDS, show_resumed
from memoranda.cli.chat.input import ChatInput, InputHistory, JsonInput, PipeInput, chat_mode, run_chat
from memoranda.cli.chat.output import ChatOutput, JsonOutput, PipeOutput
from memoranda.cli.completion import complete_session
from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.log_file import log_to_file
from memoranda.cli.sessions.lookup import explain_not_found, resolve_session
from memoranda.errors import StorageError
from memoranda.home.config import known_secrets
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
    each line of the input is one message and only the answers are printed; with --json, every event is a line of
    JSON.
    """
    if new and resume:
        raise click.UsageError("--new and --resume cannot be combined.")
    if resume is not None and not resume.strip():
        raise click.UsageError("--resume takes an id or a title; without either it resumes the latest.")
    message = sys.stdin.read().strip() if query == "-" else query
    if message is not None and not message.strip():
        raise click.UsageError("--query is empty: there is nothing to send.")
    is_terminal = not invocation.as_json and query is None and sys.stdin.isatty() and sys.stdout.isatty()
    with (
        chat_mode() if is_terminal else nullcontext(),
        open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory,
    ):
        output = _choose_output(invocation, is_terminal, plain)
        resumed = _find_session_to_resume(memory, resume, output) if resume else None
        model = choose_model(memory, model_name, output)
        with (
            log_to_file(memory.home.root / "logs" / "chat.log"),
            maintain_while_open(memory.home, memory.config.retention),
            Chat(memory, model, output, resume=resumed) as chat,
        ):
            if message is not None:
                chat.say(message)
            else:
                _greet(chat, resumed)
                run_chat(chat, _choose_input(invocation, memory, is_terminal))
                if is_terminal and chat.is_recorded:
                    click.echo(f"Saved. 'memoranda chat --resume {chat.session.id}' continues this conversation.")
    sys.exit(EXIT_REFUSED if chat.failed and not is_terminal else 0)


def _find_session_to_resume(memory: Memory, name: str, output: ChatOutput) -> str:
    if not memory.services.has_record:
        text = "There is no conversation to resume yet. 'memoranda chat' starts one."
        exit_with_error(output, text, "not_found", EXIT_REFUSED)
    if name != _LATEST:
        found = resolve_session(memory.sessions, name)
        return found or exit_with_error(output, explain_not_found(memory.sessions, name), "not_found", EXIT_REFUSED)
    rows = memory.sessions.list_sessions_rich(source="cli", limit=1, order_by_last_active=True)
    if not rows:
        exit_with_error(output, f"No chat is recorded yet. {_HOW_TO_LIST}", "not_found", EXIT_REFUSED)
    return str(rows[0]["id"])


def _choose_output(invocation: Invocation, is_terminal: bool, plain: bool) -> ChatOutput:
    if invocation.as_json:
        return JsonOutput()
    if not is_terminal:
        return PipeOutput()
    # The line editor takes a moment to load, and only a person needs it.
    from memoranda.cli.chat.terminal_output import TerminalOutput  # noqa: PLC0415

    return TerminalOutput(plain=plain)


def _choose_input(invocation: Invocation, memory: Memory, is_terminal: bool) -> ChatInput:
    if not is_terminal:
        return JsonInput() if invocation.as_json else PipeInput()
    from memoranda.cli.chat.terminal_input import TerminalInput  # noqa: PLC0415

    path = memory.home.memories(invocation.user).parent / "chat_history"
    return TerminalInput(InputHistory(path, Redactor(known_secrets(memory.home))), list(COMMANDS))


def _greet(chat: Chat, resumed: str | None) -> None:
    if resumed:
        show_resumed(chat)
    else:
        chat.output.show_session(chat.status, f"A new conversation with {chat.model.name}. /help lists the commands.")
    for notice in (*chat.session.notices, *_curator_notice(chat)):
        chat.output.show_remark("notice", notice, {})


def _curator_notice(chat: Chat) -> list[str]:
    """That the curator has something to propose, where the settings ask it to."""
    if chat.memory.config.curate.mode != "propose":
        return []
    try:
        count = len(chat.memory.curate(model=False)["changes"])
    except StorageError:
        # The prompt says what is wrong with a memory that cannot be read.
        return []
    proposes = f"The curator proposes {count} change{'s' if count > 1 else ''} to memory"
    return [f"{proposes}: 'memoranda curate' shows them (curate.mode is propose)."] if count else []
