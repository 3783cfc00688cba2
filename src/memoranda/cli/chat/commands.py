"""The commands of a chat: lines that start with a slash."""

import re
import subprocess
import sys
from collections.abc import Callable

from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.output import COMPRESSED, join_lines
from memoranda.cli.sessions.lookup import explain_not_found, resolve_session
from memoranda.errors import SessionError

_COMMAND = re.compile(r"/[a-z]+(?=\s|$)")
_KEYS = "Ctrl-C stops an answer, Ctrl-D leaves. Pasted text is one message. Alt-Enter begins a new line."


def run_line(chat: Chat, line: str) -> bool:
    """Run a command, or send a message to the model; return False when the user leaves.

    A path such as /etc/hosts is no command, and neither is text of several lines.
    """
    text = line.rstrip().lstrip("\n")
    if not _COMMAND.match(line) or "\n" in text:
        if text:
            # The first line of pasted text keeps its indentation.
            chat.say(text if "\n" in text else text.strip())
        return True
    name, _, argument = text.partition(" ")
    if name in ("/quit", "/exit"):
        return False
    if name in COMMANDS:
        chat.attempt(lambda: COMMANDS[name][1](chat, argument.strip()))
    else:
        chat.fail(f"There is no command {name}; /help lists them. A space before the line sends it to the model.")
    return True


def _help(chat: Chat, argument: str) -> None:
    chat.output.show("note", "\n".join([*(f"{name:<10}{text}" for name, (text, _) in COMMANDS.items()), "", _KEYS]))


def _new(chat: Chat, argument: str) -> None:
    ended = chat.session.id if chat.is_recorded else ""
    chat.use(chat.session.reset(argument, reason="new_session"))
    chat.greet("A new conversation." + (f" '/resume {ended}' returns to the one before." if ended else ""))


def _resume(chat: Chat, argument: str) -> None:
    sessions = chat.memory.sessions
    found = resolve_session(sessions, argument) if argument else None
    if found is None:
        how = "Name a conversation by its id or title; /sessions lists them."
        raise SessionError(explain_not_found(sessions, argument, "/sessions") if argument else how)
    if sessions.get_compression_tip(found) != chat.session.id:
        chat.use(chat.session.switch(found))
    chat.greet()


def _branch(chat: Chat, argument: str) -> None:
    if not chat.is_recorded:
        raise SessionError("This conversation has no messages yet, so there is nothing to branch from.")
    original, branch = chat.session, chat.session.branch(argument)
    original.end("branched")
    chat.use(branch)
    chat.greet(f"A branch of the conversation. '/resume {original.id}' returns to the original.")


def _undo(chat: Chat, argument: str) -> None:
    undone = chat.session.undo()
    if undone is None:
        raise SessionError("There is nothing to undo.")
    chat.suggestion = undone.text
    chat.agent.context_tokens = None
    note = f"Undone, {undone.messages} message{'' if undone.messages == 1 else 's'}: {join_lines(undone.text, 70)}"
    if undone.saved:
        lines = [f"  {join_lines(change.text, 200)} ('{change.command}' reverts it)" for change in undone.saved]
        note = "\n".join([note, "What the turn saved is still there:", *lines])
    chat.output.show("note", note)


def _compress(chat: Chat, argument: str) -> None:
    result = chat.session.compress(force=True, focus=argument)
    if not result.done:
        raise SessionError(f"The context stays as it is: {result.why}")
    chat.agent.context_tokens = None
    chat.output.show("note", f"{COMPRESSED} From {result.tokens_before:,} to {result.tokens_after:,} tokens.")


def _title(chat: Chat, argument: str) -> None:
    title = chat.session.rename(argument) if argument else chat.session.title
    now = "now " if argument else ""
    chat.output.show(
        "note", f"This conversation is {now}called {title!r}." if title else "It has no title: /title NAME."
    )


def _program(*words: str) -> Callable[[Chat, str], None]:
    """Return a command that runs `memoranda` with these words and what follows the name of the command."""

    def run(chat: Chat, argument: str) -> None:
        home, user = chat.memory.home, chat.memory.user
        options = ["--home", str(home.base), "--profile", home.profile, *(["--user", user] if user else [])]
        program = [sys.executable, "-m", "memoranda", *options, *words, *argument.split()]
        done = subprocess.run(program, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            chat.fail(done.stderr.strip())
        else:
            chat.output.show("note", done.stdout.rstrip())

    return run


COMMANDS: dict[str, tuple[str, Callable[[Chat, str], None]]] = {
    "/new": ("[TITLE]  Start a new conversation.", _new),
    "/reset": ("[TITLE]  The same as /new.", _new),
    "/resume": ("ID|TITLE  Resume another conversation.", _resume),
    "/branch": ("[TITLE]  Continue in a copy from here; the original stays as it is.", _branch),
    "/undo": ("Undo the last turn, so that you can edit it and send it again.", _undo),
    "/title": ("[NAME]  Name this conversation.", _title),
    "/compress": ("[FOCUS]  Summarise the earlier part of this conversation now.", _compress),
    "/memory": ("What the agent remembers, as 'memoranda memory list'.", _program("memory", "list")),
    "/search": ("WORDS  Search every past conversation, as 'memoranda search'.", _program("search", "--limit", "3")),
    "/sessions": ("The latest conversations, as 'memoranda sessions list'.", _program("sessions", "list")),
    "/usage": ("What models cost, as 'memoranda usage'.", _program("usage")),
    "/help": ("Show this list.", _help),
    "/quit": ("Leave; the conversation can be resumed later.", lambda chat, argument: None),
}
