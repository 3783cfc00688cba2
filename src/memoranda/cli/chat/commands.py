"""What a person can say to the chat itself: lines that begin with a slash."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from memoranda.agent.events import ContextCompressed
from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.output import compressed, on_one_line
from memoranda.cli.chat.startup import start_session
from memoranda.cli.chat.status import short
from memoranda.cli.memory.entries import format_entries
from memoranda.cli.search import format_search_answer
from memoranda.cli.sessions.list_and_show import format_session
from memoranda.cli.sessions.lookup import NOT_FOUND, resolve_session
from memoranda.cli.terminal_text import dim

_COMMAND = re.compile(r"/[a-z]+(?=\s|$)")
_LISTED = 10


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """One command: how it is called, what it does, and the doing; `run` gets the words behind the name."""

    takes: str
    meaning: str
    run: Callable[[Chat, str], None]


def is_command(line: str) -> bool:
    """Whether a line is meant for the chat; a path such as /etc/hosts is not."""
    return bool(_COMMAND.match(line))


def run_command(chat: Chat, line: str) -> bool:
    """Carry out a line that is a command; False when the person wants to leave."""
    name, _, words = line.partition(" ")
    if name in ("/quit", "/exit"):
        return False
    command = COMMANDS.get(name.strip())
    if command is None:
        chat.failed = True
        chat.screen.trouble(
            f"There is no command {name}; /help lists them. To say it to the model, put a space before it.", "usage"
        )
        return True
    chat.attempt(lambda: command.run(chat, words.strip()))
    return True


def _help(chat: Chat, words: str) -> None:
    width = max(len(f"{name} {command.takes}") for name, command in COMMANDS.items())
    lines = [f"{f'{name} {command.takes}':<{width}}  {command.meaning}" for name, command in COMMANDS.items()]
    lines += [
        "",
        "Ctrl-C stops an answer, Ctrl-D leaves. A line that ends in \\ goes on in the next one.",
    ]
    commands = {name: command.meaning for name, command in COMMANDS.items()}
    chat.screen.note("\n".join(lines), {"commands": commands})


def _new(chat: Chat, words: str) -> None:
    session = start_session(chat.memory, chat.model)
    if words:
        # First, because a title that is taken leaves everything as it is.
        session.rename(words)
    chat.leave_for(session, "new_chat")
    chat.screen.begun(chat.status, "A new conversation.")


def _resume(chat: Chat, words: str) -> None:
    found = resolve_session(chat.memory.sessions, words) if words else None
    if found is None:
        problem = NOT_FOUND.format(name=words) if words else "Say which: an id or a title."
        chat.screen.trouble(f"{problem} /sessions lists them.", "not_found")
        return
    if chat.memory.sessions.get_compression_tip(found) != chat.session.id:
        chat.leave_for(start_session(chat.memory, chat.model, found), "resumed_other")
    show_resumed(chat)


def _branch(chat: Chat, words: str) -> None:
    if not chat.has_begun:
        chat.screen.trouble("Nothing was said yet; there is nothing to branch from.", "nothing")
        return
    left = chat.session.id
    chat.leave_for(chat.session.branch(words), "branched")
    chat.screen.begun(chat.status, f"Another way on from here. '/resume {left}' goes back to the first.")


def _undo(chat: Chat, words: str) -> None:
    taken = chat.session.undo()
    if taken is None:
        chat.screen.trouble("There is nothing to take back.", "nothing")
        return
    chat.offered = taken.text
    chat.agent.context_tokens = None
    chat.screen.note(
        f"Taken back, with {taken.messages} message{'' if taken.messages == 1 else 's'}: {on_one_line(taken.text, 70)}",
        {"text_taken_back": taken.text, "messages": taken.messages},
    )


def _memory(chat: Chat, words: str) -> None:
    views = [chat.memory.curated.view(target) for target in chat.memory.curated.settings.targets()]
    text = "\n\n".join(map(format_entries, views)) or "Memory is switched off."
    note = dim("The model is told of changes with your next message; 'memoranda memory' edits them.")
    entries = {view.target: [entry.visible_text for entry in view.entries] for view in views}
    chat.screen.note(f"{text}\n\n{note}" if views else text, {"memory": entries})


def _search(chat: Chat, words: str) -> None:
    if not words:
        chat.screen.trouble("Say what to look for: /search WORDS.", "usage")
        return
    answer = chat.memory.search(words, limit=3)
    chat.screen.note(format_search_answer(answer), {"found": answer})


def _compress(chat: Chat, words: str) -> None:
    done = chat.session.compress(force=True, focus=words)
    if not done.done:
        chat.screen.trouble(f"The context stays as it is: {done.why}", "not_compressed")
        return
    chat.agent.context_tokens = None
    chat.screen.note(compressed(ContextCompressed(done)), {"tokens_before": done.tokens_before,
                                                    "tokens_after": done.tokens_after, "how": done.how})  # fmt: skip


def _title(chat: Chat, words: str) -> None:
    if not words:
        title = chat.session.title
        chat.screen.note(f"This conversation is called {title!r}." if title else "It has no title yet: /title NAME.",
                         {"title": title})  # fmt: skip
        return
    title = chat.session.rename(words)
    chat.screen.note(f"This conversation is now called {title!r}.", {"title": title})


def _sessions(chat: Chat, words: str) -> None:
    rows = chat.memory.sessions.list_sessions_rich(limit=_LISTED, order_by_last_active=True)
    lines = [format_session(row) for row in rows] or ["No sessions yet."]
    shown = [{"id": row["id"], "title": row["title"], "preview": row["preview"]} for row in rows]
    chat.screen.note("\n".join(lines), {"sessions": shown})


def _usage(chat: Chat, words: str) -> None:
    used = chat.used
    lines = [
        chat.status.line(),
        f"In this chat: {short(used.input_tokens)} tokens in ({short(used.cache_read_tokens)} of them from cache), "
        f"{short(used.output_tokens)} out.",
        dim("'memoranda usage' shows all calls, what they cost, and the budget."),
    ]
    chat.screen.note("\n".join(lines), {"output_tokens": used.output_tokens, **chat.status.as_json()})


def show_resumed(chat: Chat) -> None:
    """Say which conversation was taken up, and where it stood."""
    title = f" {chat.session.title!r}" if chat.session.title else ""
    chat.screen.begun(chat.status, f"Going on with{title or ' ' + chat.session.id}.", chat.last_exchange())


COMMANDS = {
    "/new": ChatCommand("[TITLE]", "Begin a new conversation.", _new),
    "/resume": ChatCommand("ID|TITLE", "Take up another conversation.", _resume),
    "/branch": ChatCommand("[TITLE]", "Go another way from here; this way stays as it is.", _branch),
    "/undo": ChatCommand("", "Take the last turn back, to say it in another way.", _undo),
    "/title": ChatCommand("[NAME]", "Name this conversation.", _title),
    "/memory": ChatCommand("", "Show what the agent remembers.", _memory),
    "/search": ChatCommand("WORDS", "Search every past conversation.", _search),
    "/sessions": ChatCommand("", "List the latest conversations.", _sessions),
    "/compress": ChatCommand("[FOCUS]", "Summarise the earlier part of this conversation now.", _compress),
    "/usage": ChatCommand("", "Show the context used, tokens and cache hits.", _usage),
    "/help": ChatCommand("", "Show this list.", _help),
    "/quit": ChatCommand("", "Leave; the conversation can be taken up again.", lambda chat, words: None),
}
