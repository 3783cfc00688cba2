"""Items at a service: the methods of `memory.items`, except that reading an item never extends its time to live."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from memoranda.api.client.transport import Request, Transport, without_none
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
        body = {"value": value, **without_none({"ttl": ttl, "index": index})}
        return _item(self._transport.send(_item_request("PUT", namespace, key, body=body, version=version)))

    def get(self, namespace: Sequence[str], key: str) -> Item | None:
        """An item, or None if there is none or it has expired."""
        answer = self._send_about_existing(_item_request("GET", namespace, key))
        return None if answer is _MISSING else _item(answer)

    def delete(self, namespace: Sequence[str], key: str, *, version: int | None = None) -> bool:
        """Delete an item; False if there is none. `restore` undoes this."""
        answer = self._send_about_existing(_item_request("DELETE", namespace, key, version=version))
        return answer is not _MISSING

    def write(self, changes: Sequence[PutItem | DeleteItem]) -> list[Item | bool]:
        """Carry out several writes in their order, all of them or none."""
        sent = []
        for change in changes:
            fields = {name: value for name, value in asdict(change).items() if value is not None or name == "value"}
            action = "put" if isinstance(change, PutItem) else "delete"
            sent.append(fields | {"action": action, "namespace": list(change.namespace)})
        answer = self._transport.send(Request("POST", _PATH, {"changes": sent}))
        return [result if isinstance(result, bool) else _item(result) for result in answer["results"]]

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
        found: list[FoundItem] = []
        conditions = {
            "namespace": _labels(namespace) or None,
            "query": query or None,
            "filter": None if filter is None else json.dumps(filter),
        }
        while len(found) < limit:
            page = min(_PAGE, limit - len(found))
            answer = self._transport.read("GET", _PATH, limit=page, offset=offset + len(found), **conditions)
            found += [FoundItem(_item(item), item["score"]) for item in answer["items"]]
            if not answer["more"]:
                break
        return found

    def list_namespaces(
        self, *, prefix: Sequence[str] = (), max_depth: int | None = None, limit: int = 100, offset: int = 0
    ) -> list[tuple[str, ...]]:
        """The namespaces that have items, in order."""
        conditions = {"namespace": _labels(prefix) or None, "max_depth": max_depth, "limit": limit, "offset": offset}
        answer = self._transport.read("GET", "/v1/namespaces", **conditions)
        return [tuple(labels) for labels in answer["namespaces"]]

    def history(self, namespace: Sequence[str], key: str) -> list[ItemVersion]:
        """The versions of an item, oldest first, with its deletions; empty if it never existed or has expired."""
        answer = self._send_about_existing(_item_request("GET", namespace, key, "history"))
        return [] if answer is _MISSING else [ItemVersion(**version) for version in answer["versions"]]

    def restore(self, namespace: Sequence[str], key: str, version: int) -> Item:
        """Store the value of an earlier version as a new one, which undoes what came after it."""
        return _item(self._transport.send(_item_request("POST", namespace, key, "restore", body={"version": version})))

    def _send_about_existing(self, request: Request) -> Any:
        """The answer, or _MISSING if there is no such item."""
        try:
            return self._transport.send(request)
        except SessionError as error:
            if getattr(error, "problem", {}).get("reason") == "not_found":
                return _MISSING
            raise


_MISSING = object()


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
