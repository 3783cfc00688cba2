"""The routes of mem0's platform API, with the paths and answers that `mem0.MemoryClient` expects."""

import ast
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from memoranda.memory.record.message_rows import text_of
from memoranda.service.compatible.mem0_memories import ENTITIES, Mem0Memories, Predicate, read_date, read_filters
from memoranda.service.compatible.requests import (
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

_MAX_MESSAGES = 1_000
_MAX_BATCH = 1_000
_MAX_RESULTS = 1_000
_TYPES = {"user": "user_id", "agent": "agent_id", "app": "app_id", "run": "run_id"}
_FEEDBACK = ("POSITIVE", "NEGATIVE", "VERY_NEGATIVE")


def _memories(call: Call) -> Mem0Memories:
    return Mem0Memories(call.memory.items)


def _ping(call: Call) -> Answer:
    project = call.caller.user or "default"
    body = {"status": "ok", "org_id": call.caller.tenant, "project_id": project, "user_email": None}
    return Answer(body)


def _add(call: Call) -> Answer:
    body = require_object(call.body)
    messages = require_list(body.get("messages"), "messages", _MAX_MESSAGES)
    infer = body.get("infer", True)
    fields = _entities(require_object(body.get("filters") or {}, "filters")) | _entities(body)
    if not fields:
        raise invalid(f"Name at least one of {', '.join(ENTITIES)}.")
    for name in ("metadata", "timestamp"):
        if body.get(name) is not None:
            fields[name] = _checked(name, body[name])
    if (until := read_date(body.get("expiration_date"), "expiration_date")) is not None:
        fields["expiration_date"] = until
    texts = _texts_of(messages)
    # Without a model nothing is extracted: what the user said is the memory, and without `infer` every message is.
    said = [pair for pair in texts if pair[0] == "user"] or texts if infer else texts
    events = _memories(call).add(said, fields, once=bool(infer))
    return Answer({"results": events})


def _texts_of(messages: list[Any]) -> list[tuple[str, str]]:
    texts = []
    for message in messages:
        fields = require_object(message, "A message")
        role = read_text(fields, "role", required=True) or ""
        text = text_of(fields.get("content")).strip()
        if text and role != "system":
            texts.append((role, text))
    return texts


def _entities(fields: Mapping[str, Any]) -> JsonObject:
    """The entity ids at the top of a request."""
    return {name: value for name in ENTITIES if (value := read_text(fields, name))}


def _checked(name: str, value: Any) -> Any:
    if name == "metadata":
        return require_object(value, "metadata")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**40:
        raise invalid(f"{name} must be a time in seconds since 1970.")
    return value


def _list(call: Call) -> Answer:
    body = require_object(call.body)
    matches, expired = _read_selection(body)
    pages = {**body, **call.query}
    page = read_number(pages, "page", 1, 1, 10**6)
    size = read_number(pages, "page_size", 100, 1, _MAX_RESULTS)
    found = list(_memories(call).select(matches, with_expired=expired))
    chosen = found[(page - 1) * size : page * size]
    return Answer(
        {
            "count": len(found),
            "next": _page_url(call, page + 1, size) if page * size < len(found) else None,
            "previous": _page_url(call, page - 1, size) if page > 1 else None,
            "results": _choose_fields(chosen, body),
        }
    )


def _page_url(call: Call, page: int, size: int) -> str:
    scheme = "https" if call.headers.get("x-forwarded-proto") == "https" else "http"
    query = urlencode({"page": page, "page_size": size})
    return f"{scheme}://{call.headers.get('host', '')}/v3/memories/?{query}"


def _read_selection(body: JsonObject) -> tuple[Predicate, bool]:
    """The filters of a list or a search, and whether expired memories count."""
    parts = [read_filters(body.get("filters")), read_filters(_entities(body))]
    if body.get("categories"):
        parts.append(read_filters({"categories": {"contains": require_list(body["categories"], "categories", 100)}}))
    for name, operator in (("start_date", "gte"), ("end_date", "lte")):
        if body.get(name) is not None:
            parts.append(read_filters({"created_at": {operator: body[name]}}))
    return (lambda memory: all(part(memory) for part in parts)), body.get("show_expired") is True


def _choose_fields(memories: list[JsonObject], body: JsonObject) -> list[JsonObject]:
    """The memories with the fields that the request asks for, or with all."""
    if not body.get("fields"):
        return memories
    names = require_list(body["fields"], "fields", 100)
    return [{name: value for name, value in memory.items() if name == "id" or name in names} for memory in memories]


def _search(call: Call) -> Answer:
    body = require_object(call.body)
    query = read_text(body, "query", required=True) or ""
    matches, expired = _read_selection(body)
    threshold = body.get("threshold") or 0.0
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)):
        raise invalid("threshold must be a number from 0 to 1.")
    limit = read_number(body, "top_k", 10, 1, _MAX_RESULTS)
    found = _memories(call).search(query, matches, limit=limit, threshold=threshold, with_expired=expired)
    return Answer({"results": _choose_fields(found, body)})


def _get(call: Call) -> Answer:
    return Answer(_memories(call).get(call.path["memory_id"]))


def _update(call: Call) -> Answer:
    (memory,) = _memories(call).update({call.path["memory_id"]: _read_update(require_object(call.body))})
    call.audit("mem0.update", memory["id"])
    return Answer(memory)


def _read_update(body: JsonObject) -> JsonObject:
    fields: JsonObject = {}
    if (text := read_text(body, "text")) is not None:
        fields["memory"] = text
    for name in ("metadata", "timestamp"):
        if body.get(name) is not None:
            fields[name] = _checked(name, body[name])
    if "expiration_date" in body:
        fields["expiration_date"] = read_date(body["expiration_date"], "expiration_date")
    if not fields:
        raise invalid("Name what to update: text, metadata, timestamp or expiration_date.")
    return fields


def _delete(call: Call) -> Answer:
    _memories(call).delete([call.path["memory_id"]])
    call.audit("mem0.delete", call.path["memory_id"])
    return Answer({"message": "Memory deleted successfully!"})


def _delete_all(call: Call) -> Answer:
    entities = _entities(call.query) | _entities(_read_literal(call.query.get("filters")))
    if not entities:
        raise invalid(f"Name whose memories to delete: {', '.join(ENTITIES)}; '*' stands for any.")
    _delete_matching(call, entities)
    return Answer({"message": "Memories deleted successfully!"})


def _read_literal(text: Any) -> JsonObject:
    """The client writes an object into a query as a Python literal."""
    if text is None:
        return {}
    try:
        return require_object(ast.literal_eval(text[:10_000]), "filters")
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise invalid("filters cannot be read.") from None


def _delete_matching(call: Call, entities: JsonObject) -> int:
    memories = _memories(call)
    ids = [memory["id"] for memory in memories.select(read_filters(entities), with_expired=True)]
    memories.delete(ids)
    for memory_id in ids:
        call.audit("mem0.delete", memory_id)
    return len(ids)


def _history(call: Call) -> Answer:
    return Answer(_memories(call).history(call.path["memory_id"]))


def _list_entities(call: Call) -> Answer:
    found: dict[tuple[str, str], JsonObject] = {}
    for memory in _memories(call).select(read_filters(None), with_expired=True):
        for kind, name in _TYPES.items():
            if memory[name] is not None:
                entity = found.setdefault(
                    (kind, memory[name]),
                    {"id": memory[name], "name": memory[name], "type": kind, "total_memories": 0}
                    | {each: memory[each] for each in ("created_at", "updated_at")},
                )
                entity["total_memories"] += 1
                entity["created_at"] = min(entity["created_at"], memory["created_at"])
    results = [found[key] for key in sorted(found)]
    return Answer({"count": len(results), "next": None, "previous": None, "results": results})


def _delete_entity(call: Call) -> Answer:
    field = _TYPES.get(call.path["type"])
    if field is None:
        raise Problem(404, "not_found", f"Entities are of the types {', '.join(_TYPES)}.")
    if not _delete_matching(call, {field: call.path["name"]}):
        raise Problem(404, "not_found", f"There is no {call.path['type']} {call.path['name'][:100]!r}.")
    return Answer({"message": "Entity deleted successfully!"})


def _read_batch(call: Call) -> dict[str, JsonObject]:
    listed = require_list(require_object(call.body).get("memories"), "memories", _MAX_BATCH)
    if not listed:
        raise invalid("memories is empty.")
    fields = [require_object(each, "Each of the memories") for each in listed]
    return {read_text(each, "memory_id", required=True) or "": each for each in fields}


def _update_batch(call: Call) -> Answer:
    updated = _memories(call).update({name: _read_update(fields) for name, fields in _read_batch(call).items()})
    for memory in updated:
        call.audit("mem0.update", memory["id"])
    return Answer({"message": f"Successfully updated {len(updated)} memories"})


def _delete_batch(call: Call) -> Answer:
    ids = list(_read_batch(call))
    _memories(call).delete(ids)
    for memory_id in ids:
        call.audit("mem0.delete", memory_id)
    return Answer({"message": f"Successfully deleted {len(ids)} memories"})


def _give_feedback(call: Call) -> Answer:
    body = require_object(call.body)
    memory_id, feedback = read_text(body, "memory_id", required=True) or "", body.get("feedback")
    if feedback is not None and feedback not in _FEEDBACK:
        raise invalid(f"feedback must be null or one of {', '.join(_FEEDBACK)}.")
    fields = {"feedback": feedback, "feedback_reason": read_text(body, "feedback_reason")}
    _memories(call).update({memory_id: fields})
    return Answer({"id": memory_id, **fields})


def refuse(call: Call) -> Answer:
    """Say what this server has no counterpart for."""
    raise Problem(
        501,
        "not_supported",
        "This server stores and finds memories of mem0's clients; it has no projects, profiles, webhooks, summaries "
        "or exports by schema. GET /v1/export exports everything.",
    )


_MEMORY = "/v1/memories/{memory_id}/"
_PROJECT = "/api/v1/orgs/organizations/{org_id}/projects/{project_id}/"
ROUTES = (
    route("GET", "/v1/ping/", "mem0_ping", "read", _ping),
    route("POST", "/v3/memories/add/", "mem0_add", "curate", _add, body=True),
    route("POST", "/v3/memories/", "mem0_list", "read", _list, body=True),
    route("POST", "/v3/memories/search/", "mem0_search", "read", _search, body=True),
    route("DELETE", "/v1/memories/", "mem0_delete_all", "curate", _delete_all),
    route("GET", _MEMORY, "mem0_get", "read", _get),
    route("PUT", _MEMORY, "mem0_update", "curate", _update, body=True),
    route("DELETE", _MEMORY, "mem0_delete", "curate", _delete),
    route("GET", f"{_MEMORY}history/", "mem0_history", "read", _history),
    route("GET", "/v1/entities/", "mem0_entities", "read", _list_entities),
    route("DELETE", "/v2/entities/{type}/{name}/", "mem0_delete_entity", "curate", _delete_entity),
    route("PUT", "/v1/batch/", "mem0_update_batch", "curate", _update_batch, body=True),
    route("DELETE", "/v1/batch/", "mem0_delete_batch", "curate", _delete_batch, body=True),
    route("POST", "/v1/feedback/", "mem0_feedback", "curate", _give_feedback, body=True),
    route("POST", "/v1/exports/", "mem0_export", "read", refuse, body=True),
    route("POST", "/v1/exports/get/", "mem0_get_export", "read", refuse, body=True),
    route("POST", "/v1/summary/", "mem0_summary", "read", refuse, body=True),
    route("GET", _PROJECT, "mem0_project", "read", refuse),
    route("PATCH", _PROJECT, "mem0_update_project", "admin", refuse, body=True),
    route("GET", "/v2/entities/user/{name}/profile/", "mem0_profile", "read", refuse),
    route("POST", "/v2/profiles/jobs/", "mem0_generate_profile", "admin", refuse, body=True),
    route("GET", "/v2/profiles/settings/", "mem0_profile_settings", "read", refuse),
    route("POST", "/v2/profiles/settings/", "mem0_update_profile_settings", "admin", refuse, body=True),
    route("GET", "/api/v1/webhooks/projects/{project_id}/", "mem0_webhooks", "read", refuse),
    route("POST", "/api/v1/webhooks/projects/{project_id}/", "mem0_create_webhook", "admin", refuse, body=True),
)


def _render_problem(problem: Problem, request_id: str) -> JsonObject:
    """mem0's client shows `detail`, and chooses its exception by the status."""
    return {"detail": problem.detail, "error": problem.detail, "code": problem.reason, "request_id": request_id}


MOUNT = Mount("mem0", ROUTES, _render_problem)
