"""The session store together with its search index."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from memoranda.db.engine import Engine
from memoranda.errors import SessionError
from memoranda.index.follower import Follower
from memoranda.index.message_text import searchable_text
from memoranda.index.postings import Filters
from memoranda.index.search_index import SearchIndex
from memoranda.recall.evidence import snippet
from memoranda.recall.query import parse
from memoranda.recall.search import Search
from memoranda.safety.redaction import Redactor
from memoranda.sessions.feed import Feed
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore

_CONTEXT = 200


def _names(given: Collection[str]) -> frozenset[str]:
    """One name counts as a list of one."""
    return frozenset({given} if isinstance(given, str) else given)


def _require_sense(query: Any, sort: Any, **numbers: Any) -> None:
    """Raise for what would otherwise silently find nothing, or be found in another order."""
    if not isinstance(query, str):
        raise SessionError(f"A query must be text, not {type(query).__name__}.")
    if sort not in (None, "newest", "oldest"):
        raise SessionError(f"sort must be newest or oldest, not {str(sort)[:60]!r}.")
    for name, value in numbers.items():
        optional = name in ("since", "until") and (value is None or isinstance(value, float))
        if not optional and (not isinstance(value, int) or isinstance(value, bool)):
            raise SessionError(f"{name} must be a number, not {type(value).__name__}.")


def index_path(db_path: Path) -> Path:
    """Where the index of a store lies: beside it."""
    return db_path.with_name(f"{db_path.stem}.index.db")


class SearchableStore(SessionStore):
    """A session store with a search index beside it, which can be deleted at any time."""

    def __init__(
        self,
        engine: Engine,
        index: Path | SearchIndex,
        scope: Scope | None = None,
        *,
        redactor: Redactor | None = None,
        follower: Follower | None = None,
    ) -> None:
        """`index` is the path of the index file, or, in a view for another scope, the index of the whole store."""
        if isinstance(index, Path):
            index = SearchIndex(index, Feed(engine, Scope.everyone(), None))
        self.index = index
        self._follower = follower = follower or Follower(index)
        self._search = Search(index, follower=follower)
        self.find = self._search.find
        """The conversations that match best: `Search.find`."""
        super().__init__(engine, scope, redactor=redactor, on_new_messages=follower.nudge)

    def search_messages(
        self,
        query: str,
        source_filter: Collection[str] | None = None,
        exclude_sources: Collection[str] | None = None,
        role_filter: Collection[str] | None = None,
        limit: int = 20,
        offset: int = 0,
        *,
        sort: Literal["newest", "oldest"] | None = None,
        since: float | None = None,
        until: float | None = None,
        projects: Collection[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Messages that match, best first: id, session_id, role, timestamp, snippet, context, and the session's
        source, model and start. `context` is the message before and the one after, shortened.
        """
        _require_sense(query, sort, limit=limit, offset=offset, since=since, until=until)
        filters = Filters(
            self.scope,
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
        for message_id in self._search.messages(query, filters, limit=limit, offset=max(0, offset), sort=sort):
            window = self.conversations.window_around(message_id, 1)
            if window is None:
                continue
            message = next(each for each in window.messages if each.id == message_id)
            session = self.sessions.get_session(message.session_id) or {}
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
                        {"role": each.role, "content": text_of(each.content)[:_CONTEXT]} for each in window.messages
                    ],
                    "source": session.get("source"),
                    "model": session.get("model"),
                    "session_started": session.get("started_at"),
                }
            )
        return results

    def scoped(self, scope: Scope) -> "SearchableStore":
        """The same store and index for another scope; it closes with the one that it came from."""
        return SearchableStore(self.engine, self.index, scope, redactor=self._redactor, follower=self._follower)

    def close(self) -> None:
        self._follower.close()
        self.index.close()
        super().close()
