"""The commands of a chat: lines that start with a slash."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict

from memoranda.agent.events import ContextCompressed
from memoranda.agent.session_views import SavedChange
from memoranda.cli.chat.chat import Chat
from memoranda.cli.chat.output import describe_compression, format_tokens, join_lines
from memoranda.cli.memory.entries import format_entries
from memoranda.cli.retrieval.search import format_search_answer
from memoranda.cli.sessions.list_and_show import format_session
from memoranda.cli.sessions.lookup import explain_not_found, resolve_session
from memoranda.cli.terminal_text import dim
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

_COMMAND = re.compile(r"/[a-z]+(?=\s|$)")
_MAX_SESSIONS_LISTED = 10


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """One command: its arguments, its description, and the function that runs it with the text after the name."""

    arguments: str
    description: str
    run: Callable[[Chat, str], None]


def is_command(line: str) -> bool:
    """Whether a line is a command; a path such as /etc/hosts is not, and neither is text of several lines."""
    return bool(_COMMAND.match(line)) and "\n" not in line.strip()


def run_command(chat: Chat, line: str) -> bool:
    """Runs a command; returns False when the user wants to leave."""
    name, _, argument = line.partition(" ")
    if name in ("/quit", "/exit"):
        return False
    command = COMMANDS.get(name.strip())
    if command is None:
        chat.failed = True
        chat.output.show_error(
            f"There is no command {name}; /help lists them. To send the line to the model, put a space before it.",
            "usage",
        )
        return True
    chat.attempt(lambda: command.run(chat, argument.strip()))
    return True


def _help(chat: Chat, argument: str) -> None:
    width = max(len(f"{name} {command.arguments}") for name, command in COMMANDS.items())
    lines = [f"{f'{name} {command.arguments}':<{width}}  {command.description}" for name, command in COMMANDS.items()]
    lines += [
        "",
        "Ctrl-C stops an answer, Ctrl-D leaves. Pasted text is one message. Alt-Enter begins a new line, and so does "
        "Enter after a \\.",
    ]
    commands = {name: command.description for name, command in COMMANDS.items()}
    chat.output.show_note("\n".join(lines), {"commands": commands})


def _new(chat: Chat, argument: str) -> None:
    chat.replace_session(chat.session.reset(argument, reason="new_session"))
    chat.output.show_session(chat.status, "A new conversation.")


def _reset(chat: Chat, argument: str) -> None:
    ended = chat.session.id if chat.is_recorded else ""
    chat.replace_session(chat.session.reset())
    hint = f" '/resume {ended}' returns to the one before." if ended else ""
    chat.output.show_session(chat.status, f"A new conversation.{hint}")


def _resume(chat: Chat, argument: str) -> None:
    found = resolve_session(chat.memory.sessions, argument) if argument else None
    if found is None:
        problem = "Name a conversation by its id or title; /sessions lists them."
        if argument:
            problem = explain_not_found(chat.memory.sessions, argument, "/sessions")
        chat.output.show_error(problem, "not_found")
        return
    if chat.memory.sessions.get_compression_tip(found) != chat.session.id:
        chat.replace_session(chat.session.switch(found))
    show_resumed(chat)


def _branch(chat: Chat, argument: str) -> None:
    if not chat.is_recorded:
        chat.output.show_error("This conversation has no messages yet, so there is nothing to branch from.", "nothing")
        return
    original = chat.session.id
    branch = chat.session.branch(argument)
    chat.session.end("branched")
    chat.replace_session(branch)
    chat.output.show_session(
        chat.status, f"A branch of the conversation. '/resume {original}' returns to the original."
    )


def _undo(chat: Chat, argument: str) -> None:
    undone = chat.session.undo()
    if undone is None:
        chat.output.show_error("There is nothing to undo.", "nothing")
        return
    chat.suggestion = undone.text
    chat.agent.context_tokens = None
    note = f"Undone, {undone.messages} message{'' if undone.messages == 1 else 's'}: {join_lines(undone.text, 70)}"
    if undone.saved:
        lines = [f"  {join_lines(change.text, 200)} ('{change.command}' reverts it)" for change in undone.saved]
        note = "\n".join([note, "What the turn saved is still there:", *lines])
    saved = [_as_json(change) for change in undone.saved]
    chat.output.show_note(note, {"text_taken_back": undone.text, "messages": undone.messages, "saved": saved})
    if undone.saved and chat.confirm("Revert what the turn saved?"):
        _revert(chat, undone.saved)


def _revert(chat: Chat, changes: Sequence[SavedChange]) -> None:
    for reverted in chat.session.revert(changes):
        if reverted.done:
            chat.output.show_note(f"Reverted: {join_lines(reverted.change.text, 200)}", _as_json(reverted.change))
        else:
            chat.output.show_error(reverted.message, "not_reverted")


def _as_json(change: SavedChange) -> JsonObject:
    return {"part": change.part, "number": change.number, "text": change.text, "revert": change.command}


def _memory(chat: Chat, argument: str) -> None:
    store = chat.memory.curated
    views = [(store.view(target), store.facts(target)) for target in store.settings.targets()]
    text = "\n\n".join(format_entries(view, facts) for view, facts in views) or "Memory is turned off."
    note = dim("The model sees changes with your next message; 'memoranda memory' edits them.")
    entries = {view.target: [entry.visible_text for entry in view.entries] for view, _ in views}
    chat.output.show_note(f"{text}\n\n{note}" if views else text, {"memory": entries})


def _search(chat: Chat, argument: str) -> None:
    if not argument:
        chat.output.show_error("Add the words to look for: /search WORDS.", "usage")
        return
    answer = chat.memory.search(argument, limit=3)
    chat.output.show_note(format_search_answer(answer), {"found": answer})


def _compress(chat: Chat, argument: str) -> None:
    result = chat.session.compress(force=True, focus=argument)
    if not result.done:
        chat.output.show_error(f"The context stays as it is: {result.why}", "not_compressed")
        return
    chat.agent.context_tokens = None
    data = {"tokens_before": result.tokens_before, "tokens_after": result.tokens_after, "how": result.how}
    chat.output.show_note(describe_compression(ContextCompressed(result)), data)


def _title(chat: Chat, argument: str) -> None:
    if argument:
        title: str | None = chat.session.rename(argument)
        text = f"This conversation is now called {title!r}."
    else:
        title = chat.session.title
        text = f"This conversation is called {title!r}." if title else "It has no title yet: /title NAME."
    chat.output.show_note(text, {"title": title})


def _sessions(chat: Chat, argument: str) -> None:
    rows = chat.memory.sessions.list_sessions_rich(limit=_MAX_SESSIONS_LISTED, order_by_last_active=True)
    lines = [format_session(row) for row in rows] or ["No sessions yet."]
    data = [{"id": row["id"], "title": row["title"], "preview": row["preview"]} for row in rows]
    chat.output.show_note("\n".join(lines), {"sessions": data})


def _usage(chat: Chat, argument: str) -> None:
    used = chat.used
    total, cached = format_tokens(used.input_tokens), format_tokens(used.cache_read_tokens)
    lines = [
        chat.status.line(),
        f"In this chat: {total} tokens in ({cached} of them from cache), {format_tokens(used.output_tokens)} out.",
        dim("'memoranda usage' shows all calls, what they cost, and the budget."),
    ]
    chat.output.show_note("\n".join(lines), {"output_tokens": used.output_tokens, **asdict(chat.status)})


def show_resumed(chat: Chat) -> None:
    """Shows which conversation was resumed, and its last messages."""
    title = f" {chat.session.title!r}" if chat.session.title else ""
    chat.output.show_session(chat.status, f"Resumed{title or ' ' + chat.session.id}.", chat.last_exchange())


COMMANDS = {
    "/new": ChatCommand("[TITLE]", "Start a new conversation.", _new),
    "/reset": ChatCommand("", "Start over; this conversation stays in the record.", _reset),
    "/resume": ChatCommand("ID|TITLE", "Resume another conversation.", _resume),
    "/branch": ChatCommand("[TITLE]", "Continue in a copy from here; the original stays as it is.", _branch),
    "/undo": ChatCommand("", "Undo the last turn, so that you can edit it and send it again.", _undo),
    "/title": ChatCommand("[NAME]", "Name this conversation.", _title),
    "/memory": ChatCommand("", "Show what the agent remembers.", _memory),
    "/search": ChatCommand("WORDS", "Search every past conversation.", _search),
    "/sessions": ChatCommand("", "List the latest conversations.", _sessions),
    "/compress": ChatCommand("[FOCUS]", "Summarise the earlier part of this conversation now.", _compress),
    "/usage": ChatCommand("", "Show the context used, tokens and cache hits.", _usage),
    "/help": ChatCommand("", "Show this list.", _help),
    "/quit": ChatCommand("", "Leave; the conversation can be resumed later.", lambda chat, argument: None),
}
