"""The types of Memoranda's answers, for type checkers.

Every answer of a tool is a plain dict at run time, ready for `json.dumps`; items are frozen dataclasses. A key that is
not required is present only when it applies; `docs/reference/session-search-tool.md` and `memory-tool.md` describe
each key.
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, Required, TypedDict

from memoranda.support.lazy_dataclass import dataclass


class CuratedChange(TypedDict):
    """One change that the curator proposes or has made: the entries before and after it, and why."""

    rule: str
    target: str
    project: str
    before: list[str]
    after: list[str]
    reason: str


class CurateAnswer(TypedDict):
    """The changes, `curate.mode`, the number for an undo, what was not written, and why no model was asked."""

    changes: list[CuratedChange]
    mode: str
    applied: NotRequired[list[int]]
    refused: NotRequired[list[str]]
    without_model: NotRequired[str]


class RecentWork(TypedDict):
    """One of the last conversations: what it is about if that was not asked last, what was, and how it ended."""

    session_id: str
    last_active: float
    agent: str
    project: str
    title: str
    about: str
    asked: str
    ended: str
    open_tasks: list[str]
    resume: str


class RecentAnswer(TypedDict):
    """What was going on: conversations, newest first, and the block that a prompt gets, of 800 characters at most."""

    conversations: list[RecentWork]
    text: str


class FunctionCall(TypedDict):
    """The function that a model calls; `arguments` is JSON text as the model wrote it, and may be invalid."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """One tool call in a message of the assistant."""

    id: str
    type: NotRequired[str]
    function: FunctionCall


class ChatMessage(TypedDict, total=False):
    """One message of a conversation in the form that chat APIs accept; it keeps other fields that were recorded."""

    role: Required[str]
    content: Required[Any]
    tool_calls: list[ChatToolCall]
    tool_call_id: str
    tool_name: str
    finish_reason: str
    reasoning: str
    reasoning_details: list[Any]


class SearchFilters(TypedDict, total=False):
    """What narrows a search, as keyword arguments; `memoranda.search.request` describes each."""

    role_filter: str | Sequence[str] | None
    since: str | float | None
    until: str | float | None
    source: str | Sequence[str] | None
    project: str | None
    model: str | Sequence[str] | None
    items: str | None


class FoundMessage(TypedDict):
    """One message as a search shows it; it has `truncated` and `chars` when its text was shortened."""

    id: int
    role: str
    when: str | None
    content: str
    anchor: NotRequired[bool]
    tool_name: NotRequired[str]
    tool_calls: NotRequired[list[str]]
    from_char: NotRequired[int]
    truncated: NotRequired[bool]
    chars: NotRequired[int]


class SearchHit(TypedDict):
    """One hit of a search. Without a query it has the fields from `started` to `preview`, otherwise the later ones."""

    session_id: str
    title: str | None
    source: str
    project: NotRequired[str]
    started: NotRequired[str]
    last_active: NotRequired[str]
    message_count: NotRequired[int]
    preview: NotRequired[str]
    last_question: NotRequired[str]
    last_answer: NotRequired[str]
    open_tasks: NotRequired[list[str]]
    when: NotRequired[str | None]
    model: NotRequired[str | None]
    matched_role: NotRequired[str]
    match_message_id: NotRequired[int | None]
    matches: NotRequired[int]
    confidence: NotRequired[Literal["sure", "likely", "unsure"]]
    asked: NotRequired[int]
    repeated: NotRequired[int]
    snippet: NotRequired[str]
    summary: NotRequired[str]
    messages: NotRequired[list[FoundMessage]]
    other_matches: NotRequired[list[FoundMessage]]
    bookend_start: NotRequired[list[FoundMessage]]
    bookend_end: NotRequired[list[FoundMessage]]
    messages_before: NotRequired[int]
    messages_after: NotRequired[int]
    parent_session_id: NotRequired[str]
    why: NotRequired[dict[str, Any]]


class SearchAnswer(TypedDict):
    """The conversations that a search found, or without a query the latest ones."""

    success: Literal[True]
    mode: Literal["discover", "browse"]
    results: list[SearchHit]
    count: int
    query: NotRequired[str]
    matched: NotRequired[str]
    confidence: NotRequired[Literal["sure", "likely", "unsure"]]
    sessions_matched: NotRequired[int]
    notes: NotRequired[list[dict[str, Any]]]
    items: NotRequired[list[dict[str, Any]]]
    last_work: NotRequired[list[dict[str, Any]]]
    not_found: NotRequired[list[str]]
    left_out_by: NotRequired[list[str]]
    message: NotRequired[str]
    note: NotRequired[str]
    cursor: NotRequired[str]
    why: NotRequired[dict[str, Any]]


class SessionMeta(TypedDict):
    """What is known about the session that was read."""

    title: str | None
    when: str | None
    source: str
    model: str | None
    project: NotRequired[str]


class ConversationAnswer(TypedDict):
    """A part of one conversation: from its start, or around one message."""

    success: Literal[True]
    mode: Literal["read", "scroll"]
    session_id: str
    session_meta: SessionMeta
    messages: list[FoundMessage]
    messages_before: int
    messages_after: int
    around_message_id: NotRequired[int]
    window: NotRequired[int]
    parent_session_id: NotRequired[str]
    cursor: NotRequired[str]
    message: NotRequired[str]
    note: NotRequired[str]


class EntryChange(TypedDict):
    """One changed entry: `before` is missing for a new one, `after` for a removed one."""

    action: Literal["add", "replace", "remove"]
    before: NotRequired[str]
    after: NotRequired[str]


class MemoryAnswer(TypedDict):
    """The receipt of a memory write (`success`, `changed`, `stored_in`, `change`), or a refusal (`reason`, `error`)."""

    success: bool
    done: NotRequired[bool]
    target: NotRequired[str]
    message: NotRequired[str]
    changed: NotRequired[list[EntryChange]]
    similar: NotRequired[list[str]]
    """At most two entries or notes of the same memory that share most with the new text, the closest first."""
    stored_in: NotRequired[str]
    change: NotRequired[int]
    visible_from: NotRequired[str]
    note: NotRequired[str]
    backup: NotRequired[str]
    staged: NotRequired[bool]
    pending_id: NotRequired[str]
    reason: NotRequired[str]
    error: NotRequired[str]
    matches: NotRequired[list[str]]
    findings: NotRequired[list[str]]
    drift_backup: NotRequired[str]
    usage: NotRequired[str]
    entry_count: NotRequired[int]
    current_entries: NotRequired[list[str]]
    expired_entries: NotRequired[list[str]]
    moved_to_notes: NotRequired[list[str]]
    entries_not_shown: NotRequired[int]
    state: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Item:
    """A value under a namespace and a key, as it was at one version; times are in seconds since 1970."""

    namespace: tuple[str, ...]
    key: str
    value: Any
    version: int
    created_at: float
    updated_at: float
    expires_at: float | None = None
    damaged: bool = False
    """It does not match its checksum: a part of it has changed on the disk."""


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that a search found, and how much of the query it has: above 0, up to 1; None without a query."""

    item: Item
    score: float | None = None
    text: str = ""
    """What it was found by: the texts of its value, or what its paths name. A service does not send it."""


@dataclass(frozen=True, slots=True)
class ItemVersion:
    """One version in the history of an item; `event` is add, update or delete, and a deletion has no value."""

    version: int
    event: str
    value: Any
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class PutItem:
    """A write of one item, for `memory.items.write`; the fields are the arguments of `memory.items.put`."""

    namespace: Sequence[str]
    key: str
    value: Any
    version: int | None = None
    ttl: float | None = None
    index: bool | Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class DeleteItem:
    """A deletion of one item, for `memory.items.write`; the fields are the arguments of `memory.items.delete`."""

    namespace: Sequence[str]
    key: str
    version: int | None = None
