"""The routes of sessions: create, list, read, end and delete."""

from typing import Any

from memoranda.api.services import new_session_id
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.shapes import Field, Flag, Number, Object, Text, Whole, optional
from memoranda.service.http.shapes import ListOf as List
from memoranda.support.tool import JsonObject

TAG = "sessions"
SESSION_ID = Text(1, 200)
_MAX_PAGE = 100
_TEXT = Text(0, 2_000)

SESSION = Object(
    (
        Field("id", SESSION_ID, "The id of the session.", required=True),
        Field("source", _TEXT, "Where it came from: cli, telegram, http …", required=True),
        Field("title", optional(_TEXT, "text"), "Its name for people.", required=True),
        Field("model", optional(_TEXT, "text"), "The model that answers.", required=True),
        Field("project", optional(_TEXT, "text"), "The repository or directory that it is about.", required=True),
        Field("started_at", Number(), "In seconds since 1970.", required=True),
        Field("last_active", optional(Number(), "a number"), "The time of the last message.", required=True),
        Field("ended_at", optional(Number(), "a number"), "When it ended; null while it is open.", required=True),
        Field("end_reason", optional(_TEXT, "text"), "Why it ended.", required=True),
        Field("message_count", Whole(), "How many messages it has.", required=True),
        Field("parent_session_id", optional(_TEXT, "text"), "The session that it continues, or works for.", True),
        Field("relation", optional(_TEXT, "text"), "How: compression, branch or delegation.", True),
        Field("successor_id", optional(_TEXT, "text"), "The session that continues it after compression.", True),
        Field("archived", Flag(), "Whether lists leave it out.", required=True),
        Field("preview", _TEXT, "The start of the first message; only in lists."),
    ),
    name="Session",
)
_CREATE = Object(
    (
        Field("id", SESSION_ID, "The id; without one the service chooses it."),
        Field("source", Text(1, 100), "Where the conversation takes place; http without one."),
        Field("title", Text(1, 100), "Its name for people; each user can use a title once."),
        Field("model", Text(1, 200), "The model that answers."),
        Field("project", Text(1, 1_000), "The repository or directory that it is about."),
        Field("parent_session_id", SESSION_ID, "The session that it works for or continues."),
        Field("relation", Text(choices=("branch", "delegation")), "How it relates to its parent."),
        Field("started_at", Number(), "When it began, in seconds since 1970; now without one."),
    ),
    name="NewSession",
)
_CREATED = Object(
    (
        Field("id", SESSION_ID, "The id of the session.", required=True),
        Field("created", Flag(), "False if the session existed; then only its empty fields were filled.", True),
    ),
    name="CreatedSession",
)
PAGE_FIELDS = (
    Field("limit", Whole(1, _MAX_PAGE), "How many to return; 20 without it."),
    Field("cursor", Text(1, 1_000), "The `next_cursor` of the page before."),
)


def session_json(row: JsonObject) -> JsonObject:
    """A session as the service shows it."""
    names = [item.name for item in SESSION.fields if item.name in row]
    return {name: row[name] for name in names} | {"archived": bool(row["archived"])}


def create(call: Call) -> Answer:
    """Create a session, or fill the empty fields of an existing one."""
    fields: dict[str, Any] = dict(call.body)
    session_id = fields.pop("id", None) or (new_session_id() if call.token is None else f"http_{call.token[:32]}")
    db = call.memory.sessions
    existed = db.get_session(session_id) is not None
    db.create_session(session_id, fields.pop("source", "http"), **fields)
    return Answer({"id": session_id, "created": not existed}, 200 if existed else 201)


def list_sessions(call: Call) -> Answer:
    """One page of the conversations of a user, the newest first."""
    limit = call.query.get("limit", 20)
    filters: JsonObject = {name: call.query[name] for name in ("source", "title", "model") if name in call.query}
    if "project" in call.query:
        filters["projects"] = [call.query["project"]]
    filters |= {"include_archived": call.query.get("archived", False)}
    last: tuple[float, str] | None = None
    if "cursor" in call.query:
        started_at, session_id = read_cursor(call.query["cursor"], "sessions", (float, str))
        last = (started_at, session_id)
    rows = _rows_after(call, last, limit + 1, filters)
    page = rows[:limit]
    answer: JsonObject = {"sessions": [session_json(row) for row in page]}
    if len(rows) > limit:
        answer["next_cursor"] = write_cursor("sessions", *_key(page[-1]))
    return Answer(answer)


def _key(row: JsonObject) -> tuple[float, str]:
    """The place of a conversation in the list: when it started, and the id of its first session."""
    return float(row["started_at"]), str(row.get("_lineage_root_id") or row["id"])


def _rows_after(call: Call, last: tuple[float, str] | None, limit: int, filters: JsonObject) -> list[JsonObject]:
    """The next conversations after one; several may have started at the same time."""
    listing = call.memory.sessions.list_sessions_rich
    if last is None:
        return listing(limit=limit, **filters)
    fetched = limit
    while True:
        fetched = fetched * 2 + 1
        rows = listing(limit=fetched, started_before=last[0], **filters)
        found = [row for row in rows if _key(row) < last]
        if len(found) >= limit or len(rows) < fetched:
            return found[:limit]


def require_session(call: Call) -> JsonObject:
    """The session that the path names; raises Problem 404 for one that does not exist or belongs to another user."""
    row = call.memory.sessions.get_session(call.path["session_id"])
    if row is None:
        raise Problem(404, "not_found", f"There is no session {call.path['session_id'][:200]!r}.")
    return row


def get(call: Call) -> Answer:
    return Answer(session_json(require_session(call)))


def end(call: Call) -> Answer:
    """End a session; ending it again changes nothing."""
    session_id = require_session(call)["id"]
    call.service.conversations.end(call.memory, session_id, (call.body or {}).get("reason", "session_end"))
    return Answer(session_json(require_session(call)))


def delete(call: Call) -> Answer:
    """Delete a session, its messages and the work that it delegated."""
    session_id = require_session(call)["id"]
    call.memory.sessions.delete_session(session_id)
    call.audit("session.delete", session_id)
    return Answer(status=204)


_EXAMPLE_ID = {"session_id": "trip-to-lisbon"}
ROUTES = (
    Route(
        "POST", "/v1/sessions", "create_session", "append", create, "Create a session", _CREATED, 201,
        body=_CREATE, idempotent=True, other_statuses=(200,), problems=(403, 404), tag=TAG,
        example=Example(
            body={"id": "booking-the-hotel", "source": "telegram", "title": "Hotel"},
            answer={"id": "booking-the-hotel", "created": True},
        ),
    ),
    Route(
        "GET", "/v1/sessions", "list_sessions", "read", list_sessions, "List the conversations of a user",
        Object((
            Field("sessions", List(SESSION), "One page, the newest first.", required=True),
            Field("next_cursor", Text(), "For the next page; missing on the last one."),
        ), name="SessionPage"),
        query=(
            *PAGE_FIELDS,
            Field("source", Text(1, 100), "Only sessions with this source."),
            Field("project", Text(1, 1_000), "Only sessions of this project."),
            Field("title", Text(1, 100), "Only sessions whose title contains this."),
            Field("model", Text(1, 200), "Only sessions whose model contains this."),
            Field("archived", Flag(), "With archived sessions."),
        ),
        tag=TAG, example=Example(query={"limit": 1}),
    ),
    Route(
        "GET", "/v1/sessions/{session_id}", "get_session", "read", get, "Read a session", SESSION,
        problems=(404,), tag=TAG, example=Example(_EXAMPLE_ID),
    ),
    Route(
        "POST", "/v1/sessions/{session_id}/end", "end_session", "append", end, "End a session", SESSION,
        body=Object((Field("reason", Text(1, 100), "Why; session_end without one."),), name="SessionEnd"),
        problems=(404,), tag=TAG, example=Example(_EXAMPLE_ID, body={"reason": "booked"}),
    ),
    Route(
        "DELETE", "/v1/sessions/{session_id}", "delete_session", "admin", delete,
        "Delete a session with its messages", None, 204, problems=(404,), tag=TAG,
        example=Example({"session_id": "old-notes"}),
    ),
)  # fmt: skip
