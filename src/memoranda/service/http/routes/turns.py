"""The routes of messages and of turns: a question, the steps of its answer and the answer, recorded in this order.

A turn has the id of the user's message that begins it. The library's `Session` and `Turn` do the work, so external
memories, recalled notes and locks behave as they do in one process.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memoranda.api.session import Session
from memoranda.api.session_parts.record import strip_recall
from memoranda.memory.record.message_rows import ROLES
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.sessions import PAGE_FIELDS, SESSION_ID, require_session
from memoranda.service.http.shapes import Anything, Field, Flag, ListOf, Number, Object, Text, Whole, optional
from memoranda.support.tool import JsonObject, Tool

_MESSAGES_TAG = "messages"
_MAX_MESSAGES = 1_000
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

_NEW_MESSAGE = Object(
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
_MESSAGES_PATH = {"session_id": "trip-to-lisbon"}
TAG = "turns"
_IDS = Object(
    (Field("ids", ListOf(Whole(1), 1, _MAX_MESSAGES), "One id per message, in order.", True),), name="TurnIds"
)
_MESSAGES = Object(
    (Field("messages", ListOf(_NEW_MESSAGE, 1, _MAX_MESSAGES), "The messages.", required=True),), name="TurnMessages"
)
_BEGUN = Object(
    (
        Field("session_id", SESSION_ID, "The session; another one than in the path if it was compressed.", True),
        Field("message_id", Whole(1), "The user's message, which also names the turn.", required=True),
    ),
    name="Turn",
)
_CONVERSATION = Object(
    (Field("messages", ListOf(Anything(), 0, 1_000_000), "In the form that chat APIs accept.", True),),
    name="Conversation",
)
_OPTIONS = (
    Field("source", Text(1, 100), "For a new session: where the conversation takes place; http without it."),
    Field("model", Text(1, 200), "For a new session: the model that answers."),
    Field("instructions", Text(0, 100_000), "For a new session: your own text for the prompt."),
)
_TOOL = Object(
    (
        Field("name", Text(), "The name that a model calls.", required=True),
        Field("description", Text(0, 100_000), "What a model reads about it.", required=True),
        Field("parameters", Anything(), "Its arguments as JSON schema.", required=True),
    ),
    name="Tool",
)
_PATH = "/v1/sessions/{session_id}/turns"
_ONE = f"{_PATH}/{{message_id}}"
_EXAMPLE: JsonObject = {"session_id": "trip-to-lisbon"}
_TURN: JsonObject = {**_EXAMPLE, "message_id": "1"}
_ANSWER: JsonObject = {"messages": [{"role": "assistant", "content": "The Hotel do Rio is near the river."}]}


def _message_json(message: JsonObject) -> JsonObject:
    """A message as the service shows it: without empty fields and without links between rows."""
    always = {"id", "session_id", "role", "content", "timestamp"}
    return {
        name: value
        for name, value in message.items()
        if name in always or (name not in _HIDDEN and value is not None and not (name == "is_summary" and not value))
    }


def append(call: Call) -> Answer:
    """Append messages in one transaction; they are durable when the answer arrives."""
    db = call.memory.sessions
    ids = db.append_messages(call.path["session_id"], _new_messages(call), fail_if_continued=True)
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
    answer: JsonObject = {"messages": [_message_json(row) for row in page]}
    if page:
        # Also on the last page, so that a client can ask for what comes later.
        answer["cursor"] = write_cursor("messages", page[-1]["id"])
    answer["more"] = len(rows) > limit
    return Answer(answer)


def get(call: Call) -> Answer:
    found = _find_message(call)
    if found is None or found["session_id"] != call.path["session_id"]:
        raise Problem(404, "not_found", f"There is no message {call.path['message_id'][:60]!r} in this session.")
    return Answer(_message_json(found))


MESSAGE_ROUTES = (
    Route(
        "POST", "/v1/sessions/{session_id}/messages", "append_messages", "append", append,
        "Append 1 to 1000 messages, all or none",
        Object((Field("ids", ListOf(Whole(1), 1, _MAX_MESSAGES), "One id per message, in order.", True),),
               name="AppendedMessages"),
        201,
        body=Object((Field("messages", ListOf(_NEW_MESSAGE, 1, _MAX_MESSAGES), "The messages.", required=True),),
                    name="NewMessages"),
        idempotent=True, problems=(404, 409), tag=_MESSAGES_TAG,
        example=Example(
            _MESSAGES_PATH, headers={"Idempotency-Key": "a7f3"},
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
        problems=(404,), tag=_MESSAGES_TAG, example=Example(_MESSAGES_PATH, {"limit": 2}),
    ),
    Route(
        "GET", "/v1/sessions/{session_id}/messages/{message_id}", "get_message", "read", get, "Read one message",
        MESSAGE, problems=(404,), tag=_MESSAGES_TAG, example=Example({**_MESSAGES_PATH, "message_id": "1"}),
    ),
)  # fmt: skip


def _session(call: Call, **options: str) -> Session:
    return call.service.conversations.session(call.memory, call.path["session_id"], **options)


def _existing_session(call: Call) -> Session:
    require_session(call)
    return _session(call)


def _message_id(call: Call) -> int:
    """The message that the path names; raises Problem 404 unless it is a user's message of the session."""
    row = _find_message(call)
    sessions = call.memory.sessions.get_compression_lineage(call.path["session_id"]) if row is not None else ()
    if row is None or row["role"] != "user" or row["session_id"] not in sessions:
        raise Problem(404, "not_found", f"There is no turn {call.path['message_id'][:60]!r} in this session.")
    return int(row["id"])


def _find_message(call: Call) -> JsonObject | None:
    text = call.path["message_id"]
    is_number = text.isascii() and text.isdigit() and len(text) <= 18
    return call.memory.sessions.get_message(int(text)) if is_number else None


def begin(call: Call) -> Answer:
    """Record the user's message; it is durable when the answer arrives."""
    options = {name: call.body[name] for name in ("source", "model", "instructions") if name in call.body}
    session = _session(call, **options)
    # Repeated after the service was killed, the request finds the message that it recorded.
    external_id = None if call.token is None else f"http_{call.token[:32]}"
    turn = call.service.conversations.begin(call.memory, session, call.body["content"], external_id)
    call.service.metrics.add("memoranda_appended_messages_total")
    return Answer({"session_id": session.id, "message_id": turn.message_id}, 201)


def conversation(call: Call) -> Answer:
    """The messages for the model, with what memory recalled in a copy of the question."""
    session, message_id = _existing_session(call), _message_id(call)
    turn = call.service.conversations.find(call.memory, message_id)
    return Answer({"messages": session.conversation() if turn is None else turn.messages})


def record(call: Call) -> Answer:
    """Record steps of the turn, such as tool calls and their results, in one commit."""
    session, message_id = _existing_session(call), _message_id(call)
    # Asking for the turn also says that its client is still there.
    call.service.conversations.find(call.memory, message_id)
    mark = session.external.mark(message_id)
    ids = session.record_all([{**message, **mark} for message in _new_messages(call)])
    call.service.metrics.add("memoranda_appended_messages_total", len(ids))
    return Answer({"ids": ids}, 201)


def done(call: Call) -> Answer:
    """Record the answer and end the turn."""
    session, message_id = _existing_session(call), _message_id(call)
    ids = call.service.conversations.finish(call.memory, session, message_id, _new_messages(call))
    call.service.metrics.add("memoranda_appended_messages_total", len(ids))
    return Answer({"ids": ids}, 201)


def leave(call: Call) -> Answer:
    """Leave the turn, so that the next one can begin."""
    require_session(call)
    call.service.conversations.leave(call.memory, _message_id(call))
    return Answer(status=204)


def undo(call: Call) -> Answer:
    """Remove the last turn from the context."""
    undone = _existing_session(call).undo(wait=0)
    if undone is None:
        raise Problem(404, "nothing_to_undo", "The conversation has no turn that can be undone.")
    call.audit("session.undo", call.path["session_id"])
    text, saved = (undone.text, [asdict(item) for item in undone.saved]) if _may_read(call) else ("", [])
    return Answer({"text": text, "messages": undone.messages, "saved": saved})


def open_session(call: Call) -> Answer:
    """Start or resume a session, and store its prompt: every process and every later request gets the same one."""
    session = _session(call, **call.body)
    prompt = session.freeze_prompt()
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in session.tools
        if _may_call(call, tool)
    ]
    return Answer({"session_id": session.id, "prompt": prompt if _may_read(call) else "", "tools": tools})


def show_conversation(call: Call) -> Answer:
    """The recorded messages in the form that chat APIs accept."""
    return Answer({"messages": _existing_session(call).conversation()})


def call_tool(call: Call) -> Answer:
    """Call a tool as a model would; what the tool refuses is an answer, not a problem."""
    session, name = _existing_session(call), call.path["tool"]
    tool = next((tool for tool in session.tools if tool.name == name), None)
    if tool is None:
        raise Problem(404, "not_found", f"There is no tool {name[:60]!r}.")
    if not _may_call(call, tool):
        call.caller.require("curate")
    answer = session.call(name, call.body["arguments"])
    if tool.name == "memory" and answer.get("change"):
        call.audit("memory.tool", f"{answer.get('target')} change {answer['change']}")
    return Answer(call.service.hide_home_in(answer))


def _may_read(call: Call) -> bool:
    """Whether the key may see what is recorded and remembered: one that only appends may not."""
    return "read" in call.caller.scopes


def _may_call(call: Call, tool: Tool) -> bool:
    """Whether the key may call a tool; the route itself requires the scope `read`."""
    return tool.facts.scope == "read" or "curate" in call.caller.scopes


def _new_messages(call: Call) -> list[Mapping[str, Any]]:
    return [new_message(call, index, message) for index, message in enumerate(call.body["messages"])]


ROUTES = (
    Route(
        "POST", _PATH, "begin_turn", "append", begin, "Record a user's message and begin a turn", _BEGUN, 201,
        body=Object((
            Field("content", Anything(), "The user's message: text, or content parts as chat APIs take them.", True),
            *_OPTIONS,
        ), name="NewTurn"),
        idempotent=True, problems=(403, 409), tag=TAG,
        example=Example({"session_id": "planning"}, body={"content": "Which hotel is near the river?"}),
    ),
    Route(
        "GET", f"{_ONE}/messages", "turn_messages", "read", conversation, "The conversation for the model",
        _CONVERSATION, problems=(404,), tag=TAG, example=Example(_TURN),
    ),
    Route(
        "POST", f"{_ONE}/messages", "record_steps", "append", record, "Record steps of a turn", _IDS, 201,
        body=_MESSAGES, idempotent=True, problems=(404,), tag=TAG, example=Example(_TURN, body=_ANSWER),
    ),
    Route(
        "POST", f"{_ONE}/done", "finish_turn", "append", done, "Record the answer and end the turn", _IDS, 201,
        body=_MESSAGES, idempotent=True, problems=(404,), tag=TAG, example=Example(_TURN, body=_ANSWER),
    ),
    Route(
        "DELETE", _ONE, "leave_turn", "append", leave, "Leave a turn; without an answer it is interrupted", None, 204,
        problems=(404,), tag=TAG, example=Example(_TURN),
    ),
    Route(
        "POST", "/v1/sessions/{session_id}/undo", "undo_turn", "append", undo, "Undo the last turn",
        Object((
            Field("text", Text(0, 4_000_000), "The user's message.", required=True),
            Field("messages", Whole(), "How many messages left the context.", required=True),
            Field("saved", ListOf(Anything()), "What the turn saved in memory, which stays; empty without `read`.",
                  required=True),
        ), name="UndoneTurn"),
        problems=(404, 409), tag=TAG, example=Example(_EXAMPLE),
    ),
    Route(
        "POST", "/v1/sessions/{session_id}/open", "open_session", "append", open_session,
        "Start or resume a session: its prompt and its tools for a model",
        Object((
            Field("session_id", SESSION_ID, "The session; another one than in the path if it was compressed.", True),
            Field("prompt", Text(0, 10_000_000), "The system prompt, the same until compression; empty without `read`.",
                  required=True),
            Field("tools", ListOf(_TOOL), "Those that this key may call.", required=True),
        ), name="OpenSession"),
        body=Object(_OPTIONS, name="SessionOptions"), problems=(403,), tag=TAG, example=Example(_EXAMPLE, body={}),
    ),
    Route(
        "GET", "/v1/sessions/{session_id}/conversation", "conversation", "read", show_conversation,
        "The recorded messages in the form that chat APIs accept", _CONVERSATION, problems=(404,), tag=TAG,
        example=Example(_EXAMPLE),
    ),
    Route(
        "POST", "/v1/sessions/{session_id}/tools/{tool}", "call_tool", "read", call_tool, "Call a tool like a model",
        Object((), extra=True, name="ToolAnswer"),
        body=Object((Field("arguments", Object((), extra=True), "The arguments.", required=True),), name="ToolCall"),
        problems=(403, 404), tag=TAG,
        example=Example({**_EXAMPLE, "tool": "session_search"}, body={"arguments": {"query": "ferry"}}),
    ),
)  # fmt: skip
