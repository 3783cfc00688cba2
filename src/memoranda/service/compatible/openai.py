"""OpenAI's Conversations API over the sessions of one user, with the paths and answers that its client expects.

A conversation is a session with the source `openai`, and an item is a message whose external id is the item's id. The
content of a message item is that of the message, so that a search finds it; an item of another type (a tool call, its
output, reasoning) is stored unchanged beside an empty message.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.home.session_db import SessionDB
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

SOURCE = "openai"
_FIELD = "openai_item"
_METADATA = "openai_metadata"
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
_ROLES = ("user", "assistant", "system", "developer", "tool", "unknown", "critic", "discriminator")
_MAX_ID_CHARS = 200
# Columns and extra fields of a row that are not handed over when the messages of a session are replaced.
_MESSAGE_FIELDS = ("role", "content", "timestamp", "tool_name", "tool_call_id", "external_id", _FIELD)
# As many as the Agents SDK sends at once; an import of our own API takes more.
_MAX_ITEMS = 20
_MAX_PAGE = 100
_MAX_METADATA = 16
_MAX_NAME_CHARS, _MAX_VALUE_CHARS = 64, 512
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CONVERSATION = "/v1/conversations/{conversation_id}"
_ITEM = f"{_CONVERSATION}/items/{{item_id}}"


class Conversations:
    """Reads and writes the conversations of one user of the home."""

    def __init__(self, db: SessionDB) -> None:
        self._db = db

    def create(self, items: Sequence[Any], metadata: JsonObject) -> JsonObject:
        messages = [_encode(item) for item in items]
        conversation_id = f"conv_{secrets.token_hex(24)}"
        self._db.create_session(conversation_id, SOURCE)
        if metadata:
            self._db.set_extra_fields(conversation_id, **{_METADATA: metadata})
        if messages:
            self._db.append_messages(conversation_id, messages)
        return self.get(conversation_id)

    def get(self, conversation_id: str) -> JsonObject:
        session = self._require(conversation_id)
        return {
            "id": conversation_id,
            "object": "conversation",
            "created_at": int(session["started_at"]),
            "metadata": session.get(_METADATA) or {},
        }

    def update(self, conversation_id: str, metadata: JsonObject) -> JsonObject:
        self._require(conversation_id)
        self._db.set_extra_fields(conversation_id, **{_METADATA: metadata})
        return self.get(conversation_id)

    def delete(self, conversation_id: str) -> None:
        self._require(conversation_id)
        self._db.delete_session(conversation_id)

    def add_items(self, conversation_id: str, items: Sequence[Any]) -> list[JsonObject]:
        """Append items, all or none, and return them as they are stored; an id that is taken gets another one."""
        self._require(conversation_id)
        messages = [_encode(item) for item in items]
        taken = self._db.get_external_ids([conversation_id], [message["external_id"] for message in messages])
        seen: set[str] = set()
        for message in messages:
            if message["external_id"] in taken or message["external_id"] in seen:
                message["external_id"] = _new_id(str(message[_FIELD]["type"]))
            seen.add(message["external_id"])
        ids = self._db.append_messages(conversation_id, messages)
        rows = (self._db.get_message(number) for number in ids)
        return [_decode(row) for row in rows if row is not None]

    def list_items(
        self, conversation_id: str, *, after: str | None, limit: int, order: str
    ) -> tuple[list[JsonObject], bool]:
        """A page of items after one, and whether there are more."""
        self._require(conversation_id)
        ids = sorted(self._db.live_message_ids(conversation_id), reverse=order == "desc")
        start = 0 if after is None else ids.index(self._find(conversation_id, after)) + 1
        chosen = ids[start : start + limit]
        rows = (self._db.get_message(number) for number in chosen)
        return [_decode(row) for row in rows if row is not None], start + limit < len(ids)

    def get_item(self, conversation_id: str, item_id: str) -> JsonObject:
        self._require(conversation_id)
        message = self._db.get_message(self._find(conversation_id, item_id))
        if message is None:
            # Another request has just removed it.
            raise Problem(404, "not_found", f"Item with id '{item_id[:100]}' not found in the conversation.")
        return _decode(message)

    def delete_item(self, conversation_id: str, item_id: str) -> JsonObject:
        """Take an item out of the conversation; like a rewind, this can be undone in the record."""
        self._require(conversation_id)
        number = self._find(conversation_id, item_id)
        ids = sorted(self._db.live_message_ids(conversation_id))
        if number == ids[-1]:
            self._db.pop_message(conversation_id, number)
        else:
            rest = [row for row in self._db.get_messages(conversation_id) if row["id"] != number]
            kept = [{name: row[name] for name in _MESSAGE_FIELDS if row.get(name) is not None} for row in rest]
            self._db.replace_messages(conversation_id, kept, last_seen=ids[-1])
        return self.get(conversation_id)

    def _require(self, conversation_id: str) -> JsonObject:
        session = self._db.get_session(conversation_id)
        if session is None or session["source"] != SOURCE:
            raise Problem(404, "not_found", f"Conversation with id '{conversation_id[:100]}' not found.")
        return session

    def _find(self, conversation_id: str, item_id: str) -> int:
        number = self._db.find_external_id(conversation_id, item_id)
        if number is None:
            raise Problem(404, "not_found", f"Item with id '{item_id[:100]}' not found in the conversation.")
        return number


def _encode(item: Any) -> JsonObject:
    """An item of a request as a message; raises Problem 400 if it is none."""
    fields = require_object(item, "An item")
    kind = fields.get("type") or ("message" if "role" in fields else None)
    if not isinstance(kind, str):
        raise invalid("An item needs a type.")
    item_id = read_text(fields, "id") or _new_id(kind)
    if len(item_id) > _MAX_ID_CHARS:
        raise invalid(f"The id of an item may have {_MAX_ID_CHARS} characters.")
    rest = {name: value for name, value in fields.items() if name not in ("id", "type")}
    if kind != "message":
        speaker = "tool" if kind.endswith("_output") else "assistant"
        return {"role": speaker, "content": None, "external_id": item_id, _FIELD: {"type": kind, **rest}}
    role = fields.get("role")
    if role not in _ROLES:
        raise invalid(f"The role of a message must be one of {', '.join(_ROLES)}.")
    content = rest.pop("content", None)
    if isinstance(content, str):
        content = [_text_part(role, content)]
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise invalid("The content of a message must be text or a list of parts.")
    del rest["role"]
    return {"role": role, "content": content, "external_id": item_id, _FIELD: {"type": kind, **rest}}


def _text_part(role: str, text: str) -> JsonObject:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def _decode(message: Mapping[str, Any]) -> JsonObject:
    """A message as an item of an answer."""
    stored = message.get(_FIELD) or {"type": "message"}
    rest = {name: value for name, value in stored.items() if name != "type"}
    if stored["type"] != "message":
        return {"id": message["external_id"], "type": stored["type"], **rest}
    content = message["content"] if isinstance(message["content"], list) else []
    own = {"role": message["role"], "content": content}
    return {"id": message["external_id"], "type": "message", "status": "completed", **rest, **own}


def _new_id(kind: str) -> str:
    return f"{_PREFIXES.get(kind, 'item')}_{secrets.token_hex(24)}"


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
