"""The routes of items: values under a namespace and a key, with a version, a history, and a search."""

from dataclasses import asdict
from typing import Any
from urllib.parse import unquote

from memoranda.errors import ItemConflictError
from memoranda.service.http.json_text import read_json
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.shapes import (
    Anything,
    Field,
    Flag,
    ListOf,
    Number,
    Object,
    OneOf,
    Text,
    Whole,
    optional,
)
from memoranda.support.tool import JsonObject
from memoranda.types import DeleteItem, Item, PutItem

TAG = "items"
_MAX_CHANGES = 1_000
_LABELS = ListOf(Text(1, 1_000), 1, 32)
_INDEX = OneOf((Flag(), ListOf(Text(1, 1_000), 0, 100)), "true, false or a list of paths")
ITEM = Object(
    (
        Field("namespace", _LABELS, "Its labels.", required=True),
        Field("key", Text(), "Its name in the namespace.", required=True),
        Field("value", Anything(), "As it was stored, without credentials.", required=True),
        Field("version", Whole(1), "How often it was written; the ETag, too.", required=True),
        Field("created_at", Number(), "In seconds since 1970.", required=True),
        Field("updated_at", Number(), "In seconds since 1970.", required=True),
        Field("expires_at", optional(Number(), "a number"), "When it expires; null for never.", required=True),
        Field("score", optional(Number(), "a number"), "How much of the query it has; only in lists."),
    ),
    extra=True,
    name="Item",
)
_VERSION = Object(
    (
        Field("version", Whole(1), "The version.", required=True),
        Field("event", Text(choices=("add", "update", "delete")), "What happened.", required=True),
        Field("value", Anything(), "The value; null for a deletion.", required=True),
        Field("created_at", Number(), "When the item was added.", required=True),
        Field("updated_at", Number(), "When this version was written.", required=True),
    ),
    extra=True,
    name="ItemVersion",
)
_PUT_FIELDS = (
    Field("value", Anything(), "Anything that JSON can express.", required=True),
    Field("ttl", Number(), "Seconds after which it expires; never without it."),
    Field("index", _INDEX, "What a search finds it by: paths such as notes[*].title, false for nothing."),
)
_CHANGE = Object(
    (
        Field("action", Text(choices=("put", "delete")), "What to do.", required=True),
        Field("namespace", _LABELS, "The labels.", required=True),
        Field("key", Text(1, 1_000), "The key.", required=True),
        Field("version", Whole(), "Only if the item has this version now; 0 if there must be none."),
        Field("value", Anything(), "The value, for put."),
        *_PUT_FIELDS[1:],
    ),
    name="ItemChange",
)


def _namespace(call: Call) -> tuple[str, ...]:
    """The labels of the parameter `namespace`, each percent-encoded, with slashes between them."""
    text: str = call.query.get("namespace", "")
    try:
        return tuple(unquote(label, errors="strict") for label in text.split("/")) if text else ()
    except UnicodeDecodeError:
        raise Problem(422, "invalid", "The labels of the namespace are not UTF-8.") from None


def _expected_version(call: Call) -> int | None:
    """The version that If-Match asks for; None without it. Raises Problem 400 for anything but a version."""
    condition = call.headers.get("if-match")
    if condition is None:
        return None
    text = condition.strip().strip('"')
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise Problem(400, "invalid", 'If-Match must be the version of the item, such as "3", or "0" for a new one.')
    return int(text)


def _item_json(item: Item) -> JsonObject:
    shown = asdict(item) | {"namespace": list(item.namespace)}
    return {name: value for name, value in shown.items() if name != "damaged" or value}


def _as_answer(item: Item) -> Answer:
    return Answer(_item_json(item), headers={"ETag": f'"{item.version}"'})


def _missing(call: Call) -> Problem:
    return Problem(404, "not_found", f"There is no item {call.path['key'][:60]!r} in this namespace.")


def _changed(error: ItemConflictError) -> Problem:
    return Problem(412, "changed", str(error), version=error.current)


def list_items(call: Call) -> Answer:
    """Items below a namespace: the latest written, or with a query those that match it best."""
    query = call.query
    try:
        filters = read_json(query["filter"].encode("utf-8", "surrogatepass")) if "filter" in query else None
    except Problem as problem:
        detail = problem.detail.replace("The body", "filter")
        raise Problem(422, "invalid", f'{detail} An example: {{"kind": "note"}}.') from None
    limit, offset = query.get("limit", 10), query.get("offset", 0)
    found = call.memory.items.search(
        _namespace(call), query.get("query"), filter=filters, limit=limit + 1, offset=offset
    )
    shown = [_item_json(hit.item) | {"score": hit.score} for hit in found[:limit]]
    return Answer({"items": shown, "more": len(found) > limit})


def get(call: Call) -> Answer:
    """One item, with its version as ETag."""
    item = call.memory.items.get(_namespace(call), call.path["key"])
    if item is None:
        raise _missing(call)
    return _as_answer(item)


def put(call: Call) -> Answer:
    """Store a value under a key; with If-Match only over that version."""
    try:
        item = call.memory.items.put(_namespace(call), call.path["key"], version=_expected_version(call), **call.body)
    except ItemConflictError as error:
        raise _changed(error) from None
    return _as_answer(item)


def delete(call: Call) -> Answer:
    """Delete an item; its history stays, so that it can be restored."""
    try:
        deleted = call.memory.items.delete(_namespace(call), call.path["key"], version=_expected_version(call))
    except ItemConflictError as error:
        raise _changed(error) from None
    if not deleted:
        raise _missing(call)
    call.audit("item.delete", call.path["key"])
    return Answer(status=204)


def write(call: Call) -> Answer:
    """Carry out several changes in one transaction."""
    changes = [_change(index, change) for index, change in enumerate(call.body["changes"])]
    try:
        results = call.memory.items.write(changes)
    except ItemConflictError as error:
        raise _changed(error) from None
    for change, result in zip(changes, results, strict=True):
        if isinstance(change, DeleteItem) and result:
            call.audit("item.delete", change.key)
    return Answer({"results": [_item_json(result) if isinstance(result, Item) else result for result in results]})


def _change(index: int, change: JsonObject) -> PutItem | DeleteItem:
    fields: dict[str, Any] = {name: value for name, value in change.items() if name != "action"}
    if change["action"] == "put":
        if "value" not in fields:
            raise Problem(422, "invalid", f"changes[{index}].value is missing.")
        return PutItem(**fields)
    surplus = {"value", "ttl", "index"}.intersection(fields)
    if surplus:
        raise Problem(422, "invalid", f"changes[{index}].{min(surplus)} is not for a deletion.")
    return DeleteItem(**fields)


def history(call: Call) -> Answer:
    """The versions of an item, the oldest first."""
    versions = call.memory.items.history(_namespace(call), call.path["key"])
    if not versions:
        raise _missing(call)
    return Answer({"versions": [asdict(version) for version in versions]})


def restore(call: Call) -> Answer:
    """Store the value of an earlier version as a new one."""
    items, namespace, key = call.memory.items, _namespace(call), call.path["key"]
    if not items.history(namespace, key):
        raise _missing(call)
    return _as_answer(items.restore(namespace, key, call.body["version"]))


def list_namespaces(call: Call) -> Answer:
    """The namespaces that have items, in order."""
    limit, query = call.query.get("limit", 100), call.query
    found = call.memory.items.list_namespaces(
        prefix=_namespace(call), max_depth=query.get("max_depth"), limit=limit + 1, offset=query.get("offset", 0)
    )
    return Answer({"namespaces": [list(labels) for labels in found[:limit]], "more": len(found) > limit})


_BELOW = Field("namespace", Text(1, 8_000), "The first labels of the namespaces, such as `notes/work`; all without it.")
_IN = Field(
    "namespace", Text(1, 8_000), "The labels, each percent-encoded, with slashes between them: `notes/work`.", True
)
_OFFSET = Field("offset", Whole(0, 1_000_000), "How many to skip; 0 without it.")
_MORE = Field("more", Flag(), "Whether there are more.", required=True)
_PATH, _NOTES = {"key": "opening-hours"}, {"namespace": "notes/office"}
ROUTES = (
    Route(
        "GET", "/v1/items", "list_items", "read", list_items, "List items, or search them",
        Object((Field("items", ListOf(ITEM, 0, 1_000), "The items.", required=True), _MORE), name="ItemPage"),
        query=(
            _BELOW,
            Field("query", Text(1, 10_000), "Words to look for; the latest written items without it."),
            Field("filter", Text(1, 10_000), 'Fields of the value as JSON: {"kind": "note", "year": {"$gte": 2020}}.'),
            Field("limit", Whole(1, 100), "How many to return; 10 without it."),
            _OFFSET,
        ),
        tag=TAG, pool="search", example=Example(query={"namespace": "notes", "query": "closed"}),
    ),
    Route(
        "POST", "/v1/items", "write_items", "curate", write, "Write and delete items, all or none",
        Object((Field("results", ListOf(Anything(), 1, _MAX_CHANGES),
                      "For each change the item, or for a deletion whether there was one.", True),),
               name="WrittenItems"),
        body=Object((Field("changes", ListOf(_CHANGE, 1, _MAX_CHANGES), "In their order.", required=True),),
                    name="ItemChanges"),
        problems=(412,), tag=TAG,
        example=Example(body={"changes": [
            {"action": "put", "namespace": ["notes", "office"], "key": "printer", "value": {"floor": 2}},
            {"action": "delete", "namespace": ["notes", "office"], "key": "fax"},
        ]}),
    ),
    Route(
        "GET", "/v1/namespaces", "list_namespaces", "read", list_namespaces, "List the namespaces of items",
        Object((Field("namespaces", ListOf(_LABELS, 0, 1_000), "The labels of each.", required=True), _MORE),
               name="NamespacePage"),
        query=(
            _BELOW,
            Field("max_depth", Whole(1, 32), "Cut longer namespaces to so many labels."),
            Field("limit", Whole(1, 1_000), "How many to return; 100 without it."),
            _OFFSET,
        ),
        tag=TAG, example=Example(),
    ),
    Route(
        "GET", "/v1/items/{key}", "get_item", "read", get, "Read one item", ITEM, query=(_IN,), problems=(404,),
        tag=TAG, example=Example(_PATH, _NOTES),
    ),
    Route(
        "PUT", "/v1/items/{key}", "put_item", "curate", put, "Store a value under a key", ITEM, query=(_IN,),
        body=Object(_PUT_FIELDS, name="NewItem"), conditional=True, problems=(412,), tag=TAG,
        example=Example(_PATH, _NOTES, {"If-Match": '"1"'}, {"value": {"days": "Monday to Thursday"}}),
    ),
    Route(
        "DELETE", "/v1/items/{key}", "delete_item", "curate", delete, "Delete an item; restore undoes it", None, 204,
        query=(_IN,), conditional=True, problems=(404, 412), tag=TAG, example=Example(_PATH, _NOTES),
    ),
    Route(
        "GET", "/v1/items/{key}/history", "item_history", "read", history, "List the versions of an item",
        Object((Field("versions", ListOf(_VERSION, 1, 1_000), "The oldest first.", required=True),),
               name="ItemHistory"),
        query=(_IN,), problems=(404,), tag=TAG, example=Example(_PATH, _NOTES),
    ),
    Route(
        "POST", "/v1/items/{key}/restore", "restore_item", "curate", restore, "Store an earlier version again", ITEM,
        query=(_IN,), body=Object((Field("version", Whole(1), "The version.", required=True),), name="RestoredVersion"),
        problems=(404,), tag=TAG, example=Example(_PATH, _NOTES, body={"version": 1}),
    ),
)  # fmt: skip
