"""Search for single messages: the implementation of `SessionDB.search_messages`."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from memoranda.errors import SessionError
from memoranda.memory.record.conversations import Conversations, ReadAhead, WindowShape
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.store import SessionStore
from memoranda.search.excerpts import excerpt
from memoranda.search.index.message_text import searchable_text
from memoranda.search.index.postings import Filters
from memoranda.search.query import Query, parse
from memoranda.search.search import Search

_MAX_CONTEXT_CHARS = 200
_WINDOW = WindowShape(1, counted=False)
_BATCH_SIZE = 100


def search_messages(
    store: SessionStore,
    search: Search,
    query: str,
    *,
    source_filter: Collection[str] | None,
    exclude_sources: Collection[str] | None,
    role_filter: Collection[str] | None,
    limit: int,
    offset: int,
    sort: Literal["newest", "oldest"] | None,
    since: float | None,
    until: float | None,
    projects: Collection[str] | None,
) -> list[dict[str, Any]]:
    """The messages that match, best first, each with a snippet, its neighbours and facts about its session."""
    _check_arguments(query, sort, limit=limit, offset=offset, since=since, until=until)
    filters = Filters(
        store.scope,
        excluded_sources=_stored(exclude_sources or (), store),
        roles=_names(role_filter) if role_filter else None,
        since=since,
        until=until,
        titles=False,
    )
    for column, values in (("source", source_filter), ("project", projects)):
        if values is not None:
            filters = filters.with_values(column, _stored(values, store))
    parsed = parse(query)
    found = search.messages(query, filters, limit=limit, offset=max(0, offset), sort=sort)
    with store.conversations.view_in_file():
        batches = (found.ids[start : start + _BATCH_SIZE] for start in range(0, len(found.ids), _BATCH_SIZE))
        return [row for ids in batches for row in _describe(store.conversations, ids, parsed, found.how)]


def _describe(store: Conversations, ids: Sequence[int], query: Query, how: str) -> Iterator[dict[str, Any]]:
    if store.batches_reads:
        ahead = ReadAhead(store)
        ahead.read_windows(ids, (_WINDOW,))
        ahead.read_facts({message.session_id for message in ahead.known_messages(ids).values()})
        store = ahead
    for message_id in ids:
        window = store.window_around(message_id, _WINDOW.size, counted=False)
        if window is None:
            continue
        message = next(candidate for candidate in window.messages if candidate.id == message_id)
        session = store.session_facts(message.session_id)
        words = searchable_text(message)
        yield {
            "id": message.id,
            "session_id": message.session_id,
            "role": message.role,
            "timestamp": message.timestamp,
            "tool_name": message.tool_name,
            "snippet": excerpt(f"{words.text}\n{words.tool_text}".strip(), query).text,
            "context": [
                {"role": neighbour.role, "content": text_of(neighbour.content)[:_MAX_CONTEXT_CHARS]}
                for neighbour in window.messages
            ],
            "source": session and session.source,
            "model": session and session.model,
            "session_started": session and session.started_at,
            "matched": how,
        }


def _stored(names: Collection[str], store: SessionStore) -> frozenset[str]:
    return frozenset(map(store.stored_name, _names(names)))


def _names(names: Collection[str]) -> frozenset[str]:
    """One name counts as a list of one."""
    return frozenset({names} if isinstance(names, str) else names)


def _check_arguments(query: Any, sort: Any, **numbers: Any) -> None:
    """Raises for arguments that would otherwise silently find nothing, or in another order."""
    if not isinstance(query, str):
        raise SessionError(f"A query must be text, not {type(query).__name__}.")
    if sort not in (None, "newest", "oldest"):
        raise SessionError(f"sort must be newest or oldest, not {str(sort)[:60]!r}.")
    for name, value in numbers.items():
        optional = name in ("since", "until") and (value is None or isinstance(value, float))
        if not optional and (not isinstance(value, int) or isinstance(value, bool)):
            raise SessionError(f"{name} must be a number, not {type(value).__name__}.")
