"""The routes of OpenAI's Conversations API, with the paths and answers that its client expects."""

from memoranda.service.compatible.openai.conversations import Conversations
from memoranda.service.compatible.requests import (
    invalid,
    read_choice,
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

# As many as the Agents SDK sends at once; an import of our own API takes more.
_MAX_ITEMS = 20
_MAX_PAGE = 100
_MAX_METADATA = 16
_MAX_NAME_CHARS, _MAX_VALUE_CHARS = 64, 512
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _conversations(call: Call) -> Conversations:
    return Conversations(call.memory.sessions)


def _create(call: Call) -> Answer:
    body = require_object(call.body)
    items = require_list(body.get("items") or [], "items", _MAX_ITEMS)
    return Answer(_conversations(call).create(items, _read_metadata(body)))


def _read_metadata(body: JsonObject) -> JsonObject:
    metadata = require_object(body.get("metadata") or {}, "metadata")
    fits = all(
        isinstance(value, str) and len(name) <= _MAX_NAME_CHARS and len(value) <= _MAX_VALUE_CHARS
        for name, value in metadata.items()
    )
    if len(metadata) > _MAX_METADATA or not fits:
        raise invalid(
            f"metadata has at most {_MAX_METADATA} names of {_MAX_NAME_CHARS} characters, each with a text of "
            f"{_MAX_VALUE_CHARS}."
        )
    return metadata


def _get(call: Call) -> Answer:
    return Answer(_conversations(call).get(call.path["conversation_id"]))


def _update(call: Call) -> Answer:
    metadata = _read_metadata(require_object(call.body))
    return Answer(_conversations(call).update(call.path["conversation_id"], metadata))


def _delete(call: Call) -> Answer:
    conversation_id = call.path["conversation_id"]
    _conversations(call).delete(conversation_id)
    call.audit("session.delete", conversation_id)
    return Answer({"id": conversation_id, "object": "conversation.deleted", "deleted": True})


def _add_items(call: Call) -> Answer:
    items = require_list(require_object(call.body).get("items"), "items", _MAX_ITEMS)
    return Answer(_as_list(_conversations(call).add_items(call.path["conversation_id"], items), has_more=False))


def _list_items(call: Call) -> Answer:
    items, more = _conversations(call).list_items(
        call.path["conversation_id"],
        after=read_text(call.query, "after"),
        limit=read_number(call.query, "limit", 20, 1, _MAX_PAGE),
        order=read_choice(call.query, "order", ("asc", "desc"), "desc"),
    )
    return Answer(_as_list(items, has_more=more))


def _as_list(items: list[JsonObject], *, has_more: bool) -> JsonObject:
    first, last = (items[0]["id"], items[-1]["id"]) if items else ("", "")
    return {"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}


def _get_item(call: Call) -> Answer:
    return Answer(_conversations(call).get_item(call.path["conversation_id"], call.path["item_id"]))


def _delete_item(call: Call) -> Answer:
    return Answer(_conversations(call).delete_item(call.path["conversation_id"], call.path["item_id"]))


_CONVERSATION = "/v1/conversations/{conversation_id}"
_ITEM = f"{_CONVERSATION}/items/{{item_id}}"
ROUTES = (
    route("POST", "/v1/conversations", "openai_create", "append", _create, body=True),
    route("GET", _CONVERSATION, "openai_get", "read", _get),
    route("POST", _CONVERSATION, "openai_update", "append", _update, body=True),
    route("DELETE", _CONVERSATION, "openai_delete", "admin", _delete),
    route("POST", f"{_CONVERSATION}/items", "openai_add_items", "append", _add_items, body=True),
    route("GET", f"{_CONVERSATION}/items", "openai_list_items", "read", _list_items),
    route("GET", _ITEM, "openai_get_item", "read", _get_item),
    route("DELETE", _ITEM, "openai_delete_item", "append", _delete_item),
)


def _render_problem(problem: Problem, request_id: str) -> JsonObject:
    kind = _TYPES.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    return {"error": {"message": problem.detail, "type": kind, "param": None, "code": problem.reason}}


MOUNT = Mount("openai", ROUTES, _render_problem)
