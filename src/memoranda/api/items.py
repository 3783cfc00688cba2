"""`memory.items`: the items of one user of an opened home."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from memoranda.memory.record.items import Items
from memoranda.types import FoundItem

if TYPE_CHECKING:
    from memoranda.home.session_db import SessionDB

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _of_store(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """A method of the store's items, with its signature and docstring; the store is looked up at every call."""

    @wraps(method)
    def call(items: "MemoryItems", /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return method(items._sessions().items, *args, **kwargs)

    return call


class MemoryItems:
    """The items of one user of a home.

    A namespace is a tuple of labels, such as `("notes", "work")`; a value is anything that JSON can express. A write
    is durable when the call returns, has credentials removed like a message, and adds a version to the item's history.
    Every method raises SessionError for arguments that cannot be used.
    """

    def __init__(self, sessions: "Callable[[], SessionDB]") -> None:
        self._sessions = sessions

    put = _of_store(Items.put)
    get = _of_store(Items.get)
    delete = _of_store(Items.delete)
    write = _of_store(Items.write)
    list_namespaces = _of_store(Items.list_namespaces)
    history = _of_store(Items.history)
    restore = _of_store(Items.restore)

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
