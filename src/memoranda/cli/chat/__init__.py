"""`memoranda chat`: talk to a model that remembers, in a terminal, through a pipe, or as JSON lines."""

import sys

import click

from memoranda.app import Memory, open_memory
from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.commands import COMMANDS, show_resumed
from memoranda.cli.chat.input import ChatInput, JsonInput, PipeInput, TerminalInput, run_chat
from memoranda.cli.chat.input_history import InputHistory
from memoranda.cli.chat.output import ChatOutput, JsonOutput, PipeOutput, TerminalOutput
from memoranda.cli.chat.startup import choose_model, exit_with_error
from memoranda.cli.context import EXIT_REFUSED, Invocation, memory_options
from memoranda.cli.log_file import log_to_file
from memoranda.cli.sessions.lookup import NOT_FOUND, resolve_session
from memoranda.config import known_secrets
from memoranda.db.orphaned_wal import database_exists
from memoranda.safety.redaction import Redactor

_LATEST = "\0latest"
_LISTED = "'memoranda sessions list' shows all conversations."
_NO_DEMO = (
    "--demo was removed. 'memoranda demo' shows the memory at work without a model; for a chat, set a model up with "
    "'memoranda secret set ANTHROPIC_API_KEY'."
)
_EPILOG = """\b
Examples:
  memoranda chat
  memoranda chat --resume "Fix the build"
  memoranda chat --resume
  memoranda chat --query "What did we decide about the queue?"
  git diff | memoranda chat --query -
"""


@click.command(epilog=_EPILOG)
@click.option("--model", "model_name", metavar="NAME", help="The model to talk to (model.name).")
@click.option(
    "--resume", metavar="[ID|TITLE]", is_flag=False, flag_value=_LATEST,
    help="Take a conversation up again; without a name, the latest.",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Begin a new conversation (this is the default).")
@click.option("--query", metavar="TEXT", help="Say this, print the answer, and leave; '-' reads it from a pipe.")
@click.option("--demo", is_flag=True, hidden=True)
@memory_options
def command(model_name: str | None, resume: str | None, new: bool, query: str | None, demo: bool) -> None:
    """Talk to a model that remembers. /help lists what else you can say.

    Every message is on the disk before the next step. Ctrl-C stops an answer; what was said is kept. Without a
    terminal, each line of the input is one message and only the answers are printed; with --json, every event is a
    line of JSON.
    """
    invocation = Invocation.current()
    if demo:
        raise click.UsageError(_NO_DEMO)
    if new and resume:
        raise click.UsageError("--new and --resume exclude each other.")
    if resume is not None and not resume.strip():
        raise click.UsageError("--resume takes an id or a title, or nothing at all for the latest.")
    said = sys.stdin.read().strip() if query == "-" else query
    if said is not None and not said.strip():
        raise click.UsageError("There is nothing to say: --query is empty.")
    with open_memory(invocation.home, profile=invocation.profile, user=invocation.user) as memory:
        screen = _screen(invocation, query)
        resumed = _session_to_resume(memory, resume, screen) if resume else None
        model = choose_model(memory, model_name, screen)
        with log_to_file(memory.home.root / "logs" / "chat.log"), Chat(memory, model, screen, resume=resumed) as chat:
            if said is not None:
                chat.say(said)
            else:
                _greet(chat, resumed)
                run_chat(chat, _lines(invocation, memory))
                _say_goodbye(chat)
    sys.exit(EXIT_REFUSED if chat.failed and not isinstance(screen, TerminalOutput) else 0)


def _session_to_resume(memory: Memory, name: str, screen: ChatOutput) -> str:
    if not database_exists(memory.home.state_db):
        exit_with_error(
            screen, "There is no conversation to take up yet. 'memoranda chat' begins one.", "not_found", EXIT_REFUSED
        )
    if name != _LATEST:
        found = resolve_session(memory.sessions, name)
        return found or exit_with_error(screen, f"{NOT_FOUND.format(name=name)} {_LISTED}", "not_found", EXIT_REFUSED)
    rows = memory.sessions.list_sessions_rich(source="cli", limit=1, order_by_last_active=True)
    return (
        str(rows[0]["id"])
        if rows
        else exit_with_error(screen, f"No chat was kept yet. {_LISTED}", "not_found", EXIT_REFUSED)
    )


def _screen(invocation: Invocation, query: str | None) -> ChatOutput:
    if invocation.as_json:
        return JsonOutput()
    return TerminalOutput() if sys.stdout.isatty() and sys.stdin.isatty() and query is None else PipeOutput()


def _lines(invocation: Invocation, memory: Memory) -> ChatInput:
    if invocation.as_json:
        return JsonInput()
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return PipeInput()
    path = memory.home.memories(invocation.user).parent / "chat_history"
    return TerminalInput(InputHistory(path, Redactor(known_secrets(memory.home)), list(COMMANDS)))


def _greet(chat: Chat, resumed: str | None) -> None:
    if resumed:
        show_resumed(chat)
    else:
        chat.screen.begun(chat.status, f"A new conversation with {chat.model.name}. /help lists what you can say.")
    for notice in chat.session.notices:
        chat.screen.remark("notice", notice, {})


def _say_goodbye(chat: Chat) -> None:
    if isinstance(chat.screen, TerminalOutput) and chat.has_begun:
        click.echo(f"Kept. 'memoranda chat --resume {chat.session.id}' goes on from here.")
