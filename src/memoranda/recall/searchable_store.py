"""The session store together with its search index.

An append needs neither the index nor its code. The first search, or the thread that follows the record, loads both, so
a program that only records starts quickly.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memoranda.db import fork_safety
from memoranda.db.engine import Engine
from memoranda.index.follower import Follower
from memoranda.safety.redaction import Redactor
from memoranda.sessions.feed import Feed
from memoranda.sessions.message_rows import text_of
from memoranda.sessions.scope import Scope
from memoranda.sessions.store import SessionStore
from memoranda.support.lazy_attribute import lazy_attribute
from memoranda.support.text_matcher import TextMatcher

if TYPE_CHECKING:
    from memoranda.index.search_index import SearchIndex
    from memoranda.recall.rescorer import Rescorer
    from memoranda.recall.search import Search, SearchResult


class StoreIndex:
    """The search index of one store and its follower, shared by the views of all scopes."""

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path = path
        self._engine = engine
        self._opened: dict[str, SearchIndex] = {}
        self.follower = Follower(self.open)
        self.forgetters: list[Callable[[], None]] = []
        """What else must forget deleted messages at once."""
        self.text_forgetters: list[Callable[[TextMatcher, Scope], None]] = []
        """What else must forget the text of a redacted message of a scope at once, such as waiting deliveries."""
        self.rescorers: list[Callable[[], Sequence[Rescorer]]] = []
        """What changes the order of results, such as their meaning; the caller that opens the store sets it."""

    def open(self) -> "SearchIndex":
        """The index; the first caller creates it."""
        if not self._opened:
            # A fork waits: the child could never import a module that a thread was importing during the fork.
            with fork_safety.gate:
                from memoranda.index.search_index import SearchIndex

            # Two threads may get here at once: one index is kept, and creating the other opened no file.
            self._opened.setdefault("index", SearchIndex(self._path, Feed(self._engine, Scope.everyone(), None)))
        return self._opened["index"]

    def close(self) -> None:
        for follower in (self.follower, *self.follower.others):
            follower.close()
        if self._opened:
            self.open().close()


class SearchableStore(SessionStore):
    """A session store with a search index beside it, which can be deleted at any time."""

    def __init__(
        self, engine: Engine, index: StoreIndex, scope: Scope | None = None, *, redactor: Redactor | None = None
    ) -> None:
        self._store_index = index
        super().__init__(engine, scope, redactor=redactor, on_new_messages=index.follower.nudge)

    @property
    def index(self) -> "SearchIndex":
        return self._store_index.open()

    def rescore_with(self, rescorers: "Callable[[], Sequence[Rescorer]]") -> None:
        """Let these change the order of results, in the views of all scopes."""
        self._store_index.rescorers[:] = [rescorers]

    def follow_with(self, follower: Follower, forget_deleted: Callable[[], None]) -> None:
        """Let an append wake another thread until the store is closed, and `forget_deleted` call this function."""
        self._store_index.follower.others.append(follower)
        self._store_index.forgetters.append(forget_deleted)

    def forget_deleted(self) -> None:
        """Remove deleted messages from what follows the record beside the index; a person waits for it."""
        for forget in self._store_index.forgetters:
            forget()

    def redact_message(self, message_id: int, content: str = "[redacted]") -> bool:
        """Replace all text of a message and its copies permanently, in the record, the indexes and waiting deliveries.

        False if it does not exist in this scope.
        """
        message = self.messages.get_message(message_id)
        if not self.edits.redact_message(message_id, content):
            return False
        self.index.purge()
        self.forget_deleted()
        matcher = TextMatcher([text_of(message["content"]) if message else ""], entire=True)
        for forget in self._store_index.text_forgetters if matcher else ():
            forget(matcher, self.scope)
        return True

    def forget_texts_with(self, forget: "Callable[[TextMatcher, Scope], None]") -> None:
        """Let `redact_message` call this function with the text that it removed."""
        self._store_index.text_forgetters.append(forget)

    @lazy_attribute
    def find(self) -> "Callable[..., SearchResult]":
        """The conversations that match best: `Search.find`."""
        return self._search.find

    @lazy_attribute
    def _search(self) -> "Search":
        with fork_safety.gate:
            from memoranda.recall.search import Search

        shared = self._store_index
        return Search(self.index, follower=shared.follower, rescorers=shared.rescorers)

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
        source, model and start. `context` is the message before and the one after, shortened. `matched` says how the
        words match: for a question, and where no message has all words of a query without phrases and groups, those
        with most of them do.
        """
        with fork_safety.gate:
            from memoranda.recall.message_search import search_messages

        return search_messages(
            self,
            self._search,
            query,
            source_filter=source_filter,
            exclude_sources=exclude_sources,
            role_filter=role_filter,
            limit=limit,
            offset=offset,
            sort=sort,
            since=since,
            until=until,
            projects=projects,
        )

    def scoped(self, scope: Scope) -> "SearchableStore":
        """The same store and index for another scope; closing the original closes it, too."""
        return SearchableStore(self.engine, self._store_index, scope, redactor=self._redactor)

    def close(self) -> None:
        self._store_index.close()
        super().close()
