"""`memory.items`: JSON values under a namespace and a key, searchable, with a history; one user's only."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memoranda.types import DeleteItem, FoundItem, Item, ItemVersion, PutItem

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB


class MemoryItems:
    """The items of one user of a home.

    A namespace is a tuple of labels, such as `("notes", "work")`; a value is anything that JSON can express. A write
    is durable when the call returns, has credentials removed like a message, and adds a version to the item's history.
    Every method raises SessionError for arguments that cannot be used.
    """

    def __init__(self, sessions: "Callable[[], SessionDB]") -> None:
        self._sessions = sessions

    def put(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        version: int | None = None,
        ttl: float | None = None,
        index: bool | Sequence[str] | None = None,
    ) -> Item:
        """Store a value and return the item with its new version.

        With `version`, only if that is the item's version now, 0 meaning that there is none: else ItemConflictError.
        The item expires `ttl` seconds later. `index` names what a search finds it by: paths in the value such as
        `"text"` or `"notes[*].title"`, or False for nothing; by default every text, the names of fields, and the key.
        """
        return self._sessions().items.put(namespace, key, value, version=version, ttl=ttl, index=index)

    def get(self, namespace: Sequence[str], key: str, *, refresh: bool = False) -> Item | None:
        """An item, or None if there is none or it has expired; `refresh` starts its time to live again."""
        return self._sessions().items.get(namespace, key, refresh=refresh)

    def delete(self, namespace: Sequence[str], key: str, *, version: int | None = None) -> bool:
        """Delete an item; False if there is none. Its history stays, so that `restore` can undo this."""
        return self._sessions().items.delete(namespace, key, version=version)

    def write(self, changes: Sequence[PutItem | DeleteItem]) -> list[Item | bool]:
        """Carry out several writes in their order in one transaction: all of them or none.

        The answers are those of `put` and `delete`.
        """
        return self._sessions().items.write(changes)

    def search(
        self,
        namespace: Sequence[str] = (),
        query: str | None = None,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh: bool = False,
    ) -> list[FoundItem]:
        """The items whose namespace starts with these labels and that have words of the query, best first.

        Without a query the latest written come first, with the score None. `filter` compares fields of the value:
        `{"kind": "note", "year": {"$gte": 2020}}`, with $eq, $ne, $gt, $gte, $lt and $lte.
        """
        return self._sessions().search_items(
            namespace, query, filters=filter, limit=limit, offset=offset, refresh=refresh
        )

    def list_namespaces(
        self,
        *,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """The namespaces that have items, in order; `*` in `prefix` or `suffix` stands for any one label.

        With `max_depth`, longer namespaces are cut to so many labels, and each is listed once.
        """
        return self._sessions().items.list_namespaces(
            prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset
        )

    def history(self, namespace: Sequence[str], key: str) -> list[ItemVersion]:
        """The versions of an item, oldest first, with its deletions; empty if it never existed or has expired.

        The last 100 versions are kept.
        """
        return self._sessions().items.history(namespace, key)

    def restore(self, namespace: Sequence[str], key: str, version: int) -> Item:
        """Store the value of an earlier version as a new one, which undoes what came after it."""
        return self._sessions().items.restore(namespace, key, version)
