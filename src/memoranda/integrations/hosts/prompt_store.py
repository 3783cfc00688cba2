"""The parts of the session store that a hook reads on every prompt, without those that write.

A `SessionDB` would also load the writing parts and start the thread that checks a suspect index. A process that ends
after one search gains nothing from either: the process that records the session keeps the index complete.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from memoranda.memory.record.conversations import Conversations
from memoranda.memory.record.feed import Feed, FeedSession
from memoranda.memory.record.record import open_record
from memoranda.memory.record.scope import Scope
from memoranda.search.index.generations import generations
from memoranda.search.index.search_index import SearchIndex
from memoranda.search.rescorer import MakeRescorers
from memoranda.search.search import Search
from memoranda.support.home import index_path, is_server_url, server_index_path, user_indexes_path


class PromptStore:
    """One user's conversations, and search over them."""

    def __init__(
        self,
        location: Path | str,
        scope: Scope,
        rescorers: Sequence[MakeRescorers] = (),
        *,
        index_directory: Path | None = None,
    ) -> None:
        """`location` is the path of the record, or the URL of its server; then the index is in `index_directory`.

        Where the node has indexes of single users only, it is that of the scope's user.
        """
        self.scope = scope
        self._engine = open_record(location)
        if is_server_url(location):
            assert index_directory is not None, "a server has no directory for the index"
            index = server_index_path(index_directory, location)
        else:
            index = index_path(Path(location))
        self._feed = Feed(self._engine, Scope.everyone(), None)
        self.conversations = Conversations(self._engine, scope, None)
        self.index = self._user_index(index) or SearchIndex(index, self._feed)
        self.find = Search(self.index, rescorers=rescorers).find

    def _user_index(self, index: Path) -> SearchIndex | None:
        directory = user_indexes_path(index)
        if self.scope.all or not directory.is_dir() or generations(index):
            return None
        # Only nodes of large servers have them.
        from memoranda.search.index.user_indexes import UserIndexes  # noqa: PLC0415

        return UserIndexes(directory, self._engine).open(self.scope.user)

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
