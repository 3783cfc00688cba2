"""What was going on: the last conversations of a project, over all agents, for a prompt that asks to continue.

Each is described by when it was, in which agent, what it is about, what was asked last, how it ended, which tasks are
open, and how to resume it. No search and no model is involved: the words of "where were we" match nothing that was
said.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of
from memoranda.safety.fence import Quote, build_memory_context_block
from memoranda.search.continue_prompts import asks_to_continue
from memoranda.search.dates import TimeRange
from memoranda.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from memoranda.memory.record.store import SessionStore

MAX_CHARS = 800
MAX_CONVERSATIONS = 3
_SOURCE = "recent work"
_LAST_MESSAGES = 24
_MAX_TEXT = 400
_MAX_TASKS = 5
# What a conversation gets in the block; the first that fits is used.
_SIZES = ((3, 110), (3, 80), (2, 120), (2, 80), (2, 50), (1, 120), (1, 60), (1, 30))
_DONE = frozenset({"completed", "cancelled", "done"})
_TASK_TOOLS = frozenset({"todo", "TodoWrite", "todowrite", "update_plan", "write_todos"})


@dataclass(frozen=True, slots=True)
class RecentConversation:
    session_id: str
    last_active: float
    agent: str
    project: str
    title: str
    about: str
    """Its title or its first question; "" if that is what was asked last."""
    asked: str
    """The last words of the user that asked for something."""
    ended: str
    """The last answer; "" if there was none."""
    open_tasks: tuple[str, ...]
    resume: str
    """The command that resumes it in its agent; "" if there is none."""


def recent_conversations(
    store: "SessionStore",
    *,
    projects: Collection[str] | None = None,
    excluded_sources: Collection[str] = (),
    without: Callable[[str], bool] = lambda session_id: False,
    ranges: Collection[TimeRange] = (),
    limit: int = MAX_CONVERSATIONS,
    resume: Callable[[Mapping[str, Any]], str] = lambda row: "",
) -> list[RecentConversation]:
    """The last conversations in which something was asked, newest first.

    `without` says which sessions the model has in its context. If any was active in one of the `ranges` ("yesterday"),
    only those of the latest such range are returned.
    """
    times: list[tuple[float, float] | tuple[None, None]] = [*sorted(ranges, reverse=True), (None, None)]
    for since, until in times:
        rows = store.listing.list_sessions_rich(
            exclude_sources=excluded_sources,
            projects=projects,
            # Some are left out below.
            limit=4 * limit + 4,
            order_by_last_active=True,
            min_message_count=1,
            since=since,
            until=until,
        )
        described = describe_work(store, [row for row in rows if not without(row["id"])], resume)
        if found := [each for each in described if each is not None]:
            return found[:limit]
    return []


def describe_work(
    store: "SessionStore",
    rows: Sequence[Mapping[str, Any]],
    resume: Callable[[Mapping[str, Any]], str] = lambda row: "",
) -> list[RecentConversation | None]:
    """The conversations of a list, each None if nothing was asked in it; on a server in one or two round trips."""
    if not rows:
        return []
    names = [row["conversation_id"] for row in rows]
    messages, (saved,) = store.conversations.last_messages(
        names, _LAST_MESSAGES, ("user", "assistant"), store.todos.saved_rows(names)
    )
    tasks = store.todos.current_lists(saved)
    return [
        _describe(row, messages.get(name, ()), tasks.get(name), resume(row))
        for row, name in zip(rows, names, strict=True)
    ]


def _describe(
    row: Mapping[str, Any], last: Sequence[FeedMessage], tasks: list[Any] | None, resume: str
) -> RecentConversation | None:
    asked, ended = asked_and_ended(last)
    if not asked:
        return None
    about = " ".join((row["title"] or row["preview"]).split())
    return RecentConversation(
        row["id"],
        row["last_active"] or row["started_at"],
        row["source"],
        row["project"] or "",
        row["title"] or "",
        "" if asked.startswith(about.removesuffix("...")) else about,
        asked,
        ended,
        _open(tasks) if tasks is not None else _planned(last),
        resume,
    )


def asked_and_ended(messages: Sequence[FeedMessage]) -> tuple[str, str]:
    """The last words of the user that ask for something, and the last answer behind them; each may be ""."""
    ended = ""
    for message in reversed(messages):
        text = " ".join(text_of(message.content).split())
        if not text or message.is_summary:
            continue
        if message.role == "assistant":
            ended = ended or text
        elif not asks_to_continue(text):
            return text[:_MAX_TEXT], ended[:_MAX_TEXT]
    return "", ended[:_MAX_TEXT]


def _planned(messages: Sequence[FeedMessage]) -> tuple[str, ...]:
    """The open tasks of the last list that an agent of another program wrote with a tool."""
    for message in reversed(messages):
        calls = message.tool_calls if isinstance(message.tool_calls, list) else []
        for call in reversed(calls):
            function = call.get("function", call) if isinstance(call, dict) else None
            if not isinstance(function, dict) or function.get("name") not in _TASK_TOOLS:
                continue
            arguments = function.get("arguments", function.get("input"))
            try:
                values = json.loads(arguments) if isinstance(arguments, str) else arguments
            except ValueError:
                return ()
            if isinstance(values, dict):
                return _open(values.get("todos") or values.get("plan") or ())
    return ()


def _open(tasks: Any) -> tuple[str, ...]:
    items = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    texts = [task.get("content") or task.get("step") or "" for task in items if task.get("status") not in _DONE]
    return tuple(" ".join(text.split()) for text in texts if isinstance(text, str) and text.strip())[:_MAX_TASKS]


def recent_block(conversations: Collection[RecentConversation]) -> str:
    """The conversations as one fenced block of at most 800 characters; "" for none."""
    for count, size in _SIZES:
        quotes = [quote for each in [*conversations][:count] for quote in _quotes(each, size)]
        block = build_memory_context_block(quotes, max_chars=MAX_CHARS, source=_SOURCE) if quotes else ""
        if len(block) <= MAX_CHARS:
            return block
    return ""


def _quotes(conversation: RecentConversation, size: int) -> list[Quote]:
    head = f"{local_minute(conversation.last_active)} in {conversation.agent} ({conversation.session_id}):"
    quotes = [Quote("", head)]
    quotes += [Quote("about", _cut(conversation.about, size // 2))] if conversation.about else []
    quotes.append(Quote("user", _cut(conversation.asked, size)))
    quotes.append(Quote("assistant", _cut(conversation.ended, size)) if conversation.ended else Quote("", "no answer"))
    if conversation.open_tasks:
        quotes.append(Quote("open tasks", _cut("; ".join(conversation.open_tasks), size)))
    # A command that is cut is of no use.
    if conversation.resume and len(conversation.resume) <= 2 * size:
        quotes.append(Quote("resume", conversation.resume))
    return quotes


def local_minute(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1].rstrip()}…"
