"""LangGraph's store API, so that `langgraph_sdk`'s client works with a home: items behind the label `langgraph`."""

from typing import Any

from memoranda.service.compatible.requests import (
    as_iso,
    invalid,
    read_number,
    read_text,
    require_list,
    require_object,
    route,
)
from memoranda.service.http.mount import Mount
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call
from memoranda.support.tool import JsonObject
from memoranda.types import Item

ROOT = "langgraph"
"""The first label of the namespaces of all items, so that LangGraph sees its own only."""

_MAX_LABELS = 19
_MAX_RESULTS = 1_000
_MINUTE = 60.0


def _put(call: Call) -> Answer:
    body = require_object(call.body)
    ttl, index = body.get("ttl"), body.get("index")
    if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or ttl <= 0):
        raise invalid("ttl must be a number of minutes above 0.")
    if index is not None and index is not False:
        require_list(index, "index", 100)
    call.memory.items.put(
        _namespace(body.get("namespace"), "namespace", required=True),
        read_text(body, "key", required=True) or "",
        require_object(body.get("value"), "value"),
        ttl=None if ttl is None else ttl * _MINUTE,
        index=index,
    )
    return Answer(status=204)


def _get(call: Call) -> Answer:
    """The item, or null, as LangGraph's own server answers."""
    labels = (read_text(call.query, "namespace") or "").split(".")
    namespace = _namespace([label for label in labels if label], "namespace", required=True)
    key = read_text(call.query, "key", required=True) or ""
    refresh = (read_text(call.query, "refresh_ttl") or "true").lower() != "false"
    item = call.memory.items.get(namespace, key, refresh=refresh and _may_refresh(call))
    return Answer(None if item is None else _as_item(item))


def _may_refresh(call: Call) -> bool:
    """Whether a read extends the life of items, the default of LangGraph's stores; that changes them."""
    return "curate" in call.caller.scopes


def _delete(call: Call) -> Answer:
    body = require_object(call.body)
    namespace = _namespace(body.get("namespace"), "namespace", required=True)
    call.memory.items.delete(namespace, read_text(body, "key", required=True) or "")
    return Answer(status=204)


def _search(call: Call) -> Answer:
    body = require_object(call.body)
    hits = call.memory.items.search(
        _namespace(body.get("namespace_prefix"), "namespace_prefix"),
        read_text(body, "query"),
        filter=None if body.get("filter") is None else require_object(body["filter"], "filter"),
        limit=read_number(body, "limit", 10, 1, _MAX_RESULTS),
        offset=read_number(body, "offset", 0, 0, 10**6),
        refresh=body.get("refresh_ttl") is not False and _may_refresh(call),
    )
    return Answer({"items": [_as_item(hit.item) | {"score": hit.score} for hit in hits]})


def _list_namespaces(call: Call) -> Answer:
    body = require_object(call.body)
    depth = body.get("max_depth")
    found = call.memory.items.list_namespaces(
        prefix=_namespace(body.get("prefix"), "prefix"),
        suffix=_labels(body.get("suffix"), "suffix"),
        max_depth=None if depth is None else read_number(body, "max_depth", 1, 1, _MAX_LABELS) + 1,
        limit=read_number(body, "limit", 100, 1, _MAX_RESULTS),
        offset=read_number(body, "offset", 0, 0, 10**6),
    )
    return Answer({"namespaces": [list(labels[1:]) for labels in found]})


def _namespace(value: Any, name: str, *, required: bool = False) -> tuple[str, ...]:
    labels = _labels(value, name)
    if required and not labels:
        raise invalid(f"{name} is required.")
    return (ROOT, *labels)


def _labels(value: Any, name: str) -> tuple[str, ...]:
    labels = require_list([] if value is None else value, name, _MAX_LABELS)
    for label in labels:
        # The client joins labels with periods in a query.
        if not isinstance(label, str) or not label or "." in label:
            raise Problem(422, "invalid", f"Labels of {name} must be text, not empty, and without periods.")
    return tuple(labels)


def _as_item(item: Item) -> JsonObject:
    return {
        "namespace": list(item.namespace[1:]),
        "key": item.key,
        "value": item.value,
        "created_at": as_iso(item.created_at),
        "updated_at": as_iso(item.updated_at),
    }


def _render_problem(problem: Problem, request_id: str) -> JsonObject:
    """langgraph_sdk shows `detail`, and chooses its exception by the status."""
    return {"detail": problem.detail, "code": problem.reason, "request_id": request_id}


ROUTES = (
    route("PUT", "/store/items", "langgraph_put", "curate", _put, body=True, status=204),
    route("GET", "/store/items", "langgraph_get", "read", _get),
    route("DELETE", "/store/items", "langgraph_delete", "curate", _delete, body=True, status=204),
    route("POST", "/store/items/search", "langgraph_search", "read", _search, body=True),
    route("POST", "/store/namespaces", "langgraph_namespaces", "read", _list_namespaces, body=True),
)
MOUNT = Mount("langgraph", ROUTES, _render_problem)
