"""A throw-away home with conversations, and how to search it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import open_store
from memoranda.search.index.postings import Filters
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.search import Search, SearchResult

NOW = 1_800_000_000.0
DAY = 86_400.0

Message = str | Mapping[str, Any]


class Library:
    """Sessions by name; each message is a text, or a mapping with a role and a text."""

    everyone = Filters(Scope.everyone())

    def __init__(self, home: Path, sessions: Mapping[str, Sequence[Message]] | None = None) -> None:
        self.store = open_store(home / "state.db")
        self.index = SearchIndex(home / "index.db", self.store.feed)
        self.search = Search(self.index)
        self.ids: dict[str, list[int]] = {}
        for name, messages in (sessions or {}).items():
            self.add(name, *messages)

    def add(
        self, name: str, *messages: Message, source: str = "cli", title: str | None = None, time: float = NOW - 30 * DAY
    ) -> list[int]:
        """Record a session; its messages are a second apart."""
        self.store.sessions.create_session(name, source, title=title, started_at=time)
        rows = [{"role": "user", "content": each} if isinstance(each, str) else dict(each) for each in messages]
        timed = [{"timestamp": time + place, **row} for place, row in enumerate(rows)]
        self.ids[name] = self.store.messages.append_messages(name, timed) if timed else []
        return self.ids[name]

    def find(self, text: str, **options: Any) -> SearchResult:
        options = {"limit": 10, "now": NOW, **options}
        filters = options.pop("filters", None) or self.everyone
        return self.search.find(text, filters, **options)

    def names(self, text: str, **options: Any) -> list[str]:
        """The sessions that a search finds, best first."""
        return [hit.session_id for hit in self.find(text, **options).hits]

    def close(self) -> None:
        self.index.close()
        self.store.close()
