"""The routes of messages: append, list, read one."""

from memoranda.api.recall_filter import strip_recall
from memoranda.memory.record.message_roles import ROLES
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import PAGE_FIELDS, require_session
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Number, Object, Text, Whole, optional
from memoranda.support.tool import JsonObject

TAG = "messages"
MAX_MESSAGES = 1_000
_MAX_CONTENT_CHARS = 4_000_000
# Fields that link rows of the record; a client could otherwise refer to the messages of another user.
_RESERVED = frozenset(
    {
        *("id", "session_id", "active", "compacted", "rewound", "content_format", "extra", "checksum", "shadowed"),
        *("copy_of", "is_summary", "redacted", "memoranda_turn", "memoranda_done", "memoranda_damaged"),
        *("platform_message_id", "message_id"),
    }
)
_HIDDEN = frozenset({"active", "compacted", "rewound", "copy_of", "memoranda_turn", "memoranda_done", "shadowed"})

NEW_MESSAGE = Object(
    (
        Field("role", Text(choices=ROLES), "Who speaks.", required=True),
        Field("content", Anything(), "Text, or a list of content parts as chat APIs take it."),
        Field("external_id", Text(1, 200), "Your id of the message: a second one with it is not added."),
        Field("timestamp", Number(), "In seconds since 1970; now without one."),
        Field("tool_calls", ListOf(Anything(), 0, 1_000), "The calls of an assistant, as chat APIs write them."),
        Field("tool_call_id", Text(1, 500), "The call that a tool's message answers."),
        Field("tool_name", Text(1, 200), "The tool."),
        Field("finish_reason", Text(0, 100), "Why the model stopped."),
        Field("reasoning", Text(0, _MAX_CONTENT_CHARS), "The model's reasoning, if it is shown."),
        Field("token_count", Whole(), "How many tokens the message has."),
    ),
    extra=True,
    name="NewMessage",
)
MESSAGE = Object(
    (
        Field("id", Whole(1), "The id, which grows with every message.", required=True),
        Field("session_id", Text(), "The session.", required=True),
        Field("role", Text(), "Who speaks.", required=True),
        Field("content", Anything(), "As it was recorded, without credentials.", required=True),
        Field("timestamp", Number(), "In seconds since 1970.", required=True),
        Field("external_id", optional(Text(), "text"), "The id that the client gave it."),
    ),
    extra=True,
    name="Message",
)


def message_json(message: JsonObject) -> JsonObject:
    """A message as the service shows it: without empty fields and without links between rows."""
    always = {"id", "session_id", "role", "content", "timestamp"}
    return {
        name: value
        for name, value in message.items()
        if name in always or (name not in _HIDDEN and value is not None and not (name == "is_summary" and not value))
    }


def append(call: Call) -> Answer:
    """Append messages in one transaction; they are durable when the answer arrives."""
    messages = [new_message(call, index, message) for index, message in enumerate(call.body["messages"])]
    db = call.memory.sessions
    ids = db.append_messages(call.path["session_id"], messages, fail_if_continued=True)
    call.service.metrics.add("memoranda_appended_messages_total", len(ids))
    return Answer({"ids": ids}, 201)


def new_message(call: Call, index: int, message: JsonObject) -> JsonObject:
    for name in message:
        if name in _RESERVED:
            raise Problem(422, "invalid", f"messages[{index}].{name} cannot be set.")
    if message["role"] == "tool" and not message.get("tool_call_id"):
        raise Problem(422, "invalid", f"messages[{index}].tool_call_id is missing: the call that it answers.")
    if call.token is not None and message.get("external_id") is None:
        message = {**message, "external_id": f"http_{call.token[:32]}_{index}"}
    return dict(strip_recall(message))


def list_messages(call: Call) -> Answer:
    """One page of the messages of a session, in order."""
    session_id = require_session(call)["id"]
    limit, after = call.query.get("limit", 100), 0
    if "cursor" in call.query:
        (after,) = read_cursor(call.query["cursor"], "messages", (int,))
    rows = call.memory.sessions.get_messages(
        session_id, include_inactive=call.query.get("all", False), limit=limit + 1, after=after
    )
    page = rows[:limit]
    answer: JsonObject = {"messages": [message_json(row) for row in page]}
    if page:
        # Also on the last page, so that a client can ask for what comes later.
        answer["cursor"] = write_cursor("messages", page[-1]["id"])
    answer["more"] = len(rows) > limit
    return Answer(answer)


def get(call: Call) -> Answer:
    """One message."""
    text = call.path["message_id"]
    found = None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        found = call.memory.sessions.get_message(int(text))
    if found is None or found["session_id"] != call.path["session_id"]:
        raise Problem(404, "not_found", f"There is no message {text[:60]!r} in this session.")
    return Answer(message_json(found))


_PATH = {"session_id": "trip-to-lisbon"}
ROUTES = (
    Route(
        "POST", "/v1/sessions/{session_id}/messages", "append_messages", "append", append,
        "Append 1 to 1000 messages, all or none",
        Object((Field("ids", ListOf(Whole(1), 1, MAX_MESSAGES), "One id per message, in order.", True),),
               name="AppendedMessages"),
        201,
        body=Object((Field("messages", ListOf(NEW_MESSAGE, 1, MAX_MESSAGES), "The messages.", required=True),),
                    name="NewMessages"),
        idempotent=True, problems=(404, 409), tag=TAG,
        example=Example(
            _PATH, headers={"Idempotency-Key": "a7f3"},
            body={"messages": [{"role": "user", "content": "Which hotel is near the river?", "external_id": "tg-91"}]},
        ),
    ),
    Route(
        "GET", "/v1/sessions/{session_id}/messages", "list_messages", "read", list_messages,
        "List the messages of a session in order",
        Object((
            Field("messages", ListOf(MESSAGE), "One page.", required=True),
            Field("cursor", Text(), "Where to continue, now or later; missing on an empty page."),
            Field("more", Flag(), "Whether there are more now.", required=True),
        ), name="MessagePage"),
        query=(
            Field("limit", Whole(1, 1_000), "How many to return; 100 without it."),
            PAGE_FIELDS[1],
            Field("all", Flag(), "With those that compression removed from the context."),
        ),
        problems=(404,), tag=TAG, example=Example(_PATH, {"limit": 2}),
    ),
    Route(
        "GET", "/v1/sessions/{session_id}/messages/{message_id}", "get_message", "read", get, "Read one message",
        MESSAGE, problems=(404,), tag=TAG, example=Example({**_PATH, "message_id": "1"}),
    ),
)  # fmt: skip
