"""Search for single messages: the implementation of `SessionDB.search_messages`."""

from collections.abc import Collection
from typing import Any, Literal

from memoranda.errors import SessionError
from memoranda.index.message_text import searchable_text
from memoranda.index.postings import Filters
from memoranda.recall.excerpts import snippet
from memoranda.recall.query import parse
from memoranda.recall.search import Search
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.store import SessionStore

_MAX_CONTEXT_CHARS = 200


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
        sources=None if source_filter is None else _names(source_filter),
        excluded_sources=_names(exclude_sources or ()),
        roles=_names(role_filter) if role_filter else None,
        since=since,
        until=until,
        titles=False,
        projects=None if projects is None else _names(projects),
    )
    parsed = parse(query)
    results = []
    found = search.messages(query, filters, limit=limit, offset=max(0, offset), sort=sort)
    for message_id in found.ids:
        window = store.conversations.window_around(message_id, 1)
        if window is None:
            continue
        message = next(candidate for candidate in window.messages if candidate.id == message_id)
        session = store.sessions.get_session(message.session_id) or {}
        words = searchable_text(message)
        results.append(
            {
                "id": message.id,
                "session_id": message.session_id,
                "role": message.role,
                "timestamp": message.timestamp,
                "tool_name": message.tool_name,
                "snippet": snippet(f"{words.text}\n{words.tool_text}".strip(), parsed),
                "context": [
                    {"role": neighbour.role, "content": text_of(neighbour.content)[:_MAX_CONTEXT_CHARS]}
                    for neighbour in window.messages
                ],
                "source": session.get("source"),
                "model": session.get("model"),
                "session_started": session.get("started_at"),
                "matched": found.how,
            }
        )
    return results


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
