"""The session store together with its search index.

An append needs neither the index nor its code. The first search, or the thread that follows the record, loads both, so
a program that only records starts quickly.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memoranda.memory.record.feed import Feed, ItemFeed
from memoranda.memory.record.message_rows import text_of
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from memoranda.safety.redaction import Redactor
from memoranda.search.index.follower import Follower
from memoranda.storage.engine import Engine, Watching
from memoranda.support.home import items_index_path, user_indexes_path
from memoranda.support.lazy_attribute import lazy_attribute
from memoranda.support.text_matcher import TextMatcher

if TYPE_CHECKING:
    from memoranda.memory.record.feed import ChangeHeads
    from memoranda.search.index.search_index import SearchIndex
    from memoranda.search.index.user_indexes import UserIndexes, UserIndexUpkeep, UserNudge
    from memoranda.search.legs.leg import Rescorer
    from memoranda.search.search import Search, SearchResult
    from memoranda.types import FoundItem


class StoreIndex:
    """The search index of one store and its follower, shared by the views of all scopes."""

    def __init__(self, path: Path, engine: Engine, *, user_index_mb: int = 0) -> None:
        """With `user_index_mb`, every user has an index file of their own, in a directory of at most that size."""
        self._path = path
        self._engine = engine
        self._user_index_mb = user_index_mb
        self._opened: dict[str, SearchIndex] = {}
        self._users: dict[str, UserIndexes] = {}
        self.follower = Follower(self.open)
        self.item_follower = Follower(self.open_items)
        self._upkeep: dict[str, UserIndexUpkeep] = {}
        self._upkeep_follower = Follower(self._open_upkeep)
        self.forgetters: list[Callable[[], None]] = []
        """What else must forget deleted messages at once."""
        self.text_forgetters: list[Callable[[TextMatcher, Scope], None]] = []
        """What else must forget the text of a redacted message of a scope at once, such as waiting deliveries."""
        self.watching: Watching | None = None
        self.rescorers: list[Callable[[], Sequence[Rescorer]]] = []
        """What changes the order of results, such as their meaning; the caller that opens the store sets it."""

    def follow_others(self, notify: Callable[[], object] = lambda: None) -> None:
        """Index what other processes record as soon as they announce it, and announce what this one records."""
        if self.watching is None:

            def wake() -> None:
                # The index of a user catches up when that user is searched for.
                if not self._user_index_mb:
                    self.follower.nudge(hurry=True)
                for other in self.follower.others:
                    other.nudge()
                self._follow_deletions()
                notify()

            self.watching = self._engine.watch(wake)
            if self.watching is not None:
                # What other nodes have deleted while this one was off.
                self._follow_deletions()

    def _follow_deletions(self) -> None:
        """Remove what other nodes have deleted from the indexes that nothing else keeps up to date."""
        if user_indexes_path(self._path).is_dir() or self._has_files(items_index_path(self._path)):
            self._upkeep_follower.nudge(hurry=True)

    def _open_upkeep(self) -> "UserIndexUpkeep":
        known = self._upkeep.get("")
        if known is not None:
            return known
        from memoranda.search.index.user_indexes import UserIndexUpkeep

        directory = user_indexes_path(self._path)
        made = UserIndexUpkeep(directory, self._engine, self.users, self._wake_others)
        return self._upkeep.setdefault("", made)

    def _wake_others(self, before: "ChangeHeads | None", now: "ChangeHeads") -> None:
        """Let the indexes of all users follow changes; with an index per user, an append does not wake the first."""
        if self._user_index_mb and (before is None or before.session != now.session) and self._has_files(self._path):
            self.follower.nudge(hurry=True)
        if (before is None or before.item != now.item) and self._has_files(items_index_path(self._path)):
            self.item_follower.nudge(hurry=True)

    def _has_files(self, path: Path) -> bool:
        return any(path.parent.glob(f"{path.name}.*"))

    def note_append(self, scope: Scope) -> None:
        """Wake the follower after an append, and those of other processes."""
        if self.is_per_user(scope):
            # Without a search before, none of them is in use.
            for users in self._users.values():
                users.nudge(scope.user, hurry=False, doubtful=False)
            for other in self.follower.others:
                other.nudge()
        elif not self._user_index_mb:
            self.follower.nudge()
        if self.watching is not None:
            self.watching.announce()

    def is_per_user(self, scope: Scope) -> bool:
        """Whether searches of a scope use the index of one user."""
        return bool(self._user_index_mb) and not scope.all

    def of_scope(self, scope: Scope) -> "SearchIndex":
        """The index for the searches of a scope: of the user, or of everyone."""
        return self.users().open(scope.user) if self.is_per_user(scope) else self.open()

    def follower_of(self, scope: Scope) -> "Follower | UserNudge":
        """What keeps the index of a scope up to date."""
        return self.users().nudge_for(scope.user) if self.is_per_user(scope) else self.follower

    def users(self) -> "UserIndexes":
        """The indexes of single users; the first caller loads their code."""
        known = self._users.get("")
        if known is not None:
            return known
        from memoranda.search.index.user_indexes import UserIndexes

        made = UserIndexes(
            user_indexes_path(self._path),
            self._engine,
            self._user_index_mb * 1_000_000 or None,
            self._upkeep_follower.nudge,
        )
        return self._users.setdefault("", made)

    def purge(self, scope: Scope) -> None:
        """Remove every word of deleted messages of a scope from the files of this node."""
        if not self._user_index_mb or self.open().files:
            self.open().purge()
        if user_indexes_path(self._path).is_dir():
            if scope.all:
                # Nothing says which of them have the deleted words, and each is built again in seconds.
                self.users().remove_all()
            else:
                self.users().purge(scope.user)

    def open(self) -> "SearchIndex":
        """The index; the first caller creates it."""
        return self._opened.get("messages") or self._open("messages", self._path, Feed)

    def open_items(self) -> "SearchIndex":
        """The index of items, a file beside that of messages; the first caller creates it."""
        return self._opened.get("items") or self._open("items", items_index_path(self._path), ItemFeed)

    def _open(self, name: str, path: Path, feed: type[Feed]) -> "SearchIndex":
        from memoranda.search.index.search_index import SearchIndex

        # Two threads may get here at once: one index is kept, and creating the other opened no file.
        return self._opened.setdefault(name, SearchIndex(path, feed(self._engine, Scope.everyone(), None)))

    def close(self) -> None:
        if self.watching is not None:
            self.watching.close()
            self.watching = None
        for upkeep in self._upkeep.values():
            upkeep.stop()
        for follower in (self._upkeep_follower, self.follower, self.item_follower, *self.follower.others):
            follower.close()
        for users in self._users.values():
            users.close()
        for index in self._opened.values():
            index.close()


class SearchableStore(SessionStore):
    """A session store with a search index beside it, which can be deleted at any time."""

    def __init__(
        self, engine: Engine, index: StoreIndex, scope: Scope | None = None, *, redactor: Redactor | None = None
    ) -> None:
        self._store_index = index
        super().__init__(
            engine,
            scope,
            redactor=redactor,
            on_new_messages=partial(index.note_append, scope or Scope.everyone()),
            on_new_items=index.item_follower.nudge,
        )

    @property
    def index(self) -> "SearchIndex":
        """The index for the searches of this scope; ask again before each use."""
        return self._store_index.of_scope(self.scope)

    def purge_indexes(self) -> None:
        """Remove every word of deleted messages from the index files of this node, before the call returns."""
        self._store_index.purge(self.scope)

    def remove_user_indexes(self) -> None:
        """Delete the index files of single users on this node; searches build them again."""
        self._store_index.users().remove_all()

    def follow_others(self, notify: "Callable[[], object]" = lambda: None) -> None:
        """For a process that runs long: index what other processes record at once, not with the next search.

        `notify` is called, in a thread, when another process may have recorded something. In a file nothing happens.
        """
        self._store_index.follow_others(notify)

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
        self.purge_indexes()
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
        if self._store_index.is_per_user(self.scope):
            # The index is opened again for each search, so that those in use are known.
            return lambda *args, **options: self._make_search().find(*args, **options)
        return self._search.find

    @property
    def item_index(self) -> "SearchIndex":
        return self._store_index.open_items()

    @lazy_attribute
    def search_items(self) -> "Callable[..., list[FoundItem]]":
        """The items that match best: `ItemSearch.search`."""
        from memoranda.search.item_search import ItemSearch

        return ItemSearch(self.item_index, self.items, self.scope, self._store_index.rescorers).search

    @lazy_attribute
    def _search(self) -> "Search":
        return self._make_search()

    def _make_search(self) -> "Search":
        from memoranda.search.search import Search

        shared = self._store_index
        return Search(self.index, follower=shared.follower_of(self.scope), rescorers=shared.rescorers)

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
        from memoranda.search.message_search import search_messages

        return search_messages(
            self,
            self._make_search() if self._store_index.is_per_user(self.scope) else self._search,
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
        # In the child of a fork nothing of it is open, and its threads exist only in the parent.
        if not self.engine.closed:
            self._store_index.close()
        super().close()
