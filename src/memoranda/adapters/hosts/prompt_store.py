"""The parts of the session store that a hook reads on every prompt, without those that write.

A `SessionDB` would also load the writing parts and start the thread that checks a suspect index. A process that ends
after one search gains nothing from either: the process that records the session keeps the index complete.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from memoranda.index.search_index import SearchIndex
from memoranda.recall.rescorer import MakeRescorers
from memoranda.recall.search import Search
from memoranda.sessions.conversations import Conversations
from memoranda.sessions.feed import Feed, FeedSession
from memoranda.sessions.record import open_record
from memoranda.sessions.scope import Scope
from memoranda.support.home import index_path


class PromptStore:
    """One user's conversations, and search over them."""

    def __init__(self, state_db: Path, scope: Scope, rescorers: Sequence[MakeRescorers] = ()) -> None:
        self.scope = scope
        self._engine = open_record(state_db)
        self._feed = Feed(self._engine, Scope.everyone(), None)
        self.conversations = Conversations(self._engine, scope, None)
        self.index = SearchIndex(index_path(state_db), self._feed)
        self.find = Search(self.index, rescorers=rescorers).find

    def session(self, session_id: str) -> FeedSession | None:
        """Returns the session of a hit; the search has already limited hits to the scope."""
        return self._feed.feed_sessions([session_id]).get(session_id)

    def close(self) -> None:
        self.index.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
