"""Items at a service: the methods of `memory.items`, except that reading an item never extends its time to live."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from memoranda.api.client.transport import AsyncTransport, Operation, Request, Transport, awaitable, reading
from memoranda.errors import SessionError
from memoranda.types import DeleteItem, FoundItem, Item, ItemVersion, PutItem

_PATH = "/v1/items"
_PAGE = 100


class RemoteItems:
    """The items of one user. Raises SessionError for arguments that cannot be used, as the library does."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

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
        """Store a value and return the item; with `version`, only over that one, or ItemConflictError."""
        return self._transport.run(_put(PutItem(namespace, key, value, version, ttl, index)))

    def get(self, namespace: Sequence[str], key: str) -> Item | None:
        """An item, or None if there is none or it has expired."""
        return self._transport.run(_get(namespace, key))

    def delete(self, namespace: Sequence[str], key: str, *, version: int | None = None) -> bool:
        """Delete an item; False if there is none. `restore` undoes this."""
        return self._transport.run(_delete(DeleteItem(namespace, key, version)))

    def write(self, changes: Sequence[PutItem | DeleteItem]) -> list[Item | bool]:
        """Carry out several writes in their order, all of them or none."""
        return self._transport.run(_write(changes))

    def search(
        self,
        namespace: Sequence[str] = (),
        query: str | None = None,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[FoundItem]:
        """The items below a namespace that have words of the query, best first; the latest written without one."""
        return self._transport.run(_search(namespace, query, filter, limit, offset))

    def list_namespaces(
        self, *, prefix: Sequence[str] = (), max_depth: int | None = None, limit: int = 100, offset: int = 0
    ) -> list[tuple[str, ...]]:
        """The namespaces that have items, in order."""
        return self._transport.run(_list_namespaces(prefix, max_depth, limit, offset))

    def history(self, namespace: Sequence[str], key: str) -> list[ItemVersion]:
        """The versions of an item, oldest first, with its deletions; empty if it never existed or has expired."""
        return self._transport.run(_history(namespace, key))

    def restore(self, namespace: Sequence[str], key: str, version: int) -> Item:
        """Store the value of an earlier version as a new one, which undoes what came after it."""
        return self._transport.run(_restore(namespace, key, version))


class AsyncRemoteItems:
    """The items of one user, for asyncio; the methods are those of `RemoteItems`."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    put = awaitable(RemoteItems.put)
    get = awaitable(RemoteItems.get)
    delete = awaitable(RemoteItems.delete)
    write = awaitable(RemoteItems.write)
    search = awaitable(RemoteItems.search)
    list_namespaces = awaitable(RemoteItems.list_namespaces)
    history = awaitable(RemoteItems.history)
    restore = awaitable(RemoteItems.restore)


def _item_request(
    method: str, namespace: Sequence[str], key: str, *parts: str, body: Any = None, version: int | None = None
) -> Request:
    """A request about one item. With a version it is sent once: the second time, the item would have another one."""
    path = "/".join([_PATH, quote(key, safe=""), *parts])
    headers = {} if version is None else {"If-Match": f'"{version}"'}
    safe = version is None and method in ("GET", "PUT")
    return Request(method, path, body, {"namespace": _labels(namespace)}, headers, safe)


def _labels(namespace: Sequence[str]) -> str:
    """A namespace as the service takes it; raises SessionError for a text, whose letters would be the labels."""
    if isinstance(namespace, str):
        raise SessionError("A namespace is a tuple of labels, such as ('notes',), and not a text.")
    return "/".join(quote(label, safe="") for label in namespace)


def _item(answer: Mapping[str, Any]) -> Item:
    fields = {name: value for name, value in answer.items() if name != "score"}
    return Item(**fields | {"namespace": tuple(answer["namespace"])})


def _is_missing(error: SessionError) -> bool:
    return getattr(error, "problem", {}).get("reason") == "not_found"


def _put(change: PutItem) -> Operation[Item]:
    options = {name: value for name, value in (("ttl", change.ttl), ("index", change.index)) if value is not None}
    body = {"value": change.value, **options}
    answer = yield _item_request("PUT", change.namespace, change.key, body=body, version=change.version)
    return _item(answer)


def _get(namespace: Sequence[str], key: str) -> Operation[Item | None]:
    try:
        answer = yield _item_request("GET", namespace, key)
    except SessionError as error:
        if _is_missing(error):
            return None
        raise
    return _item(answer)


def _delete(change: DeleteItem) -> Operation[bool]:
    try:
        yield _item_request("DELETE", change.namespace, change.key, version=change.version)
    except SessionError as error:
        if _is_missing(error):
            return False
        raise
    return True


def _write(changes: Sequence[PutItem | DeleteItem]) -> Operation[list[Item | bool]]:
    sent = []
    for change in changes:
        fields = {name: value for name, value in asdict(change).items() if value is not None or name == "value"}
        action = "put" if isinstance(change, PutItem) else "delete"
        sent.append(fields | {"action": action, "namespace": list(change.namespace)})
    answer = yield Request("POST", _PATH, {"changes": sent})
    return [result if isinstance(result, bool) else _item(result) for result in answer["results"]]


def _search(
    namespace: Sequence[str], query: str | None, filters: Mapping[str, Any] | None, limit: int, offset: int
) -> Operation[list[FoundItem]]:
    found: list[FoundItem] = []
    conditions = {
        "namespace": _labels(namespace) or None,
        "query": query or None,
        "filter": None if filters is None else json.dumps(filters),
    }
    while len(found) < limit:
        page = min(_PAGE, limit - len(found))
        answer = yield reading("GET", _PATH, limit=page, offset=offset + len(found), **conditions)
        found += [FoundItem(_item(item), item["score"]) for item in answer["items"]]
        if not answer["more"]:
            break
    return found


def _list_namespaces(
    prefix: Sequence[str], max_depth: int | None, limit: int, offset: int
) -> Operation[list[tuple[str, ...]]]:
    below = _labels(prefix) or None
    answer = yield reading("GET", "/v1/namespaces", namespace=below, max_depth=max_depth, limit=limit, offset=offset)
    return [tuple(labels) for labels in answer["namespaces"]]


def _history(namespace: Sequence[str], key: str) -> Operation[list[ItemVersion]]:
    try:
        answer = yield _item_request("GET", namespace, key, "history")
    except SessionError as error:
        if _is_missing(error):
            return []
        raise
    return [ItemVersion(**version) for version in answer["versions"]]


def _restore(namespace: Sequence[str], key: str, version: int) -> Operation[Item]:
    answer = yield _item_request("POST", namespace, key, "restore", body={"version": version})
    return _item(answer)
