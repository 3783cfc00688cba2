"""`SessionDB`: the session store together with the index beside it, so that what is recorded can be found."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from memoranda.errors import SessionError
from memoranda.index.follower import Follower
from memoranda.index.message_text import searchable_text
from memoranda.index.postings import Filters
from memoranda.index.search_index import SearchIndex
from memoranda.recall.evidence import snippet
from memoranda.recall.query import parse
from memoranda.recall.search import Search, SearchResult
from memoranda.safety.redaction import Redactor
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.store import SessionStore
from memoranda.sessions.transfer import ImportReport

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


class SessionDB(SessionStore):
    """Sessions and messages in `state.db`, found again through an index that can be deleted at any time."""

    def __init__(self, db_path: Path | str, *, redactor: Redactor | None = None, wait: float = 10.0) -> None:
        super().__init__(db_path, redactor=redactor, wait=wait)
        self.index = SearchIndex(index_path(Path(db_path)), self)
        self._search = Search(self.index)
        self._follower = Follower(self.index)

    def append_messages(
        self, session_id: str, messages: Iterable[Mapping[str, Any]], *, fail_if_continued: bool = False
    ) -> list[int]:
        """Record several messages in one commit: all of them or none. The index follows by itself."""
        ids = super().append_messages(session_id, messages, fail_if_continued=fail_if_continued)
        self._follower.nudge()
        return ids

    def import_sessions(
        self, sessions: Iterable[Mapping[str, Any]], progress: Callable[[int], None] | None = None
    ) -> ImportReport:
        """Take in exported sessions, each in one commit. The index follows by itself."""
        report = super().import_sessions(sessions, progress)
        self._follower.nudge()
        return report

    def find(self, query: str, filters: Filters, **options: Any) -> SearchResult:
        """The conversations that match best; see `Search.find`. An index that is far behind goes on behind it."""
        found = self._search.find(query, filters, now=time.time(), **options)
        if found.note or found.missing or not found.hits:
            # What is not found may have been lost from the index.
            self._follower.nudge(hurry=True, doubtful=not found.note)
        return found

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
        source, model and start. `context` is the message before and the one after, cut short.
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
            window = self.window_around(message_id, 1)
            if window is None:
                continue
            message = next(each for each in window.messages if each.id == message_id)
            session = self.get_session(message.session_id) or {}
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

    def close(self) -> None:
        self._follower.close()
        self.index.close()
        super().close()
