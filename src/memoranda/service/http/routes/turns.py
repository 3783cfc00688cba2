"""The routes of turns: a question, the steps of its answer and the answer, recorded in this order.

A turn has the id of the user's message that begins it. The library's `Session` and `Turn` do the work, so external
memories, recalled notes and locks behave as they do in one process.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memoranda.api.session import Session
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import Answer, Call, Example, Route
from memoranda.service.http.routes.messages import MAX_MESSAGES, NEW_MESSAGE, new_message
from memoranda.service.http.routes.sessions import SESSION_ID, require_session
from memoranda.service.http.shapes import Anything, Field, ListOf, Object, Text, Whole
from memoranda.support.tool import JsonObject, Tool

TAG = "turns"
_IDS = Object((Field("ids", ListOf(Whole(1), 1, MAX_MESSAGES), "One id per message, in order.", True),), name="TurnIds")
_MESSAGES = Object(
    (Field("messages", ListOf(NEW_MESSAGE, 1, MAX_MESSAGES), "The messages.", required=True),), name="TurnMessages"
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


def _session(call: Call, **options: str) -> Session:
    return call.service.conversations.session(call.memory, call.path["session_id"], **options)


def _existing_session(call: Call) -> Session:
    require_session(call)
    return _session(call)


def _message_id(call: Call) -> int:
    """The message that the path names; raises Problem 404 unless it is a user's message of the session."""
    text = call.path["message_id"]
    row = None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        row = call.memory.sessions.get_message(int(text))
    sessions = call.memory.sessions.get_compression_lineage(call.path["session_id"]) if row is not None else ()
    if row is None or row["role"] != "user" or row["session_id"] not in sessions:
        raise Problem(404, "not_found", f"There is no turn {text[:60]!r} in this session.")
    return int(text)


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
    return Answer({"text": undone.text, "messages": undone.messages, "saved": [asdict(item) for item in undone.saved]})


def open_session(call: Call) -> Answer:
    """Start or resume a session, and store its prompt: every process and every later request gets the same one."""
    session = _session(call, **call.body)
    prompt = session.freeze_prompt()
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in session.tools
        if _may_call(call, tool)
    ]
    return Answer({"session_id": session.id, "prompt": prompt, "tools": tools})


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
    return Answer(answer)


def _may_call(call: Call, tool: Tool) -> bool:
    """Whether the key may call a tool: all but search may change something."""
    return tool.name == "session_search" or "curate" in call.caller.scopes


def _new_messages(call: Call) -> list[Mapping[str, Any]]:
    return [new_message(call, index, message) for index, message in enumerate(call.body["messages"])]


_PATH = "/v1/sessions/{session_id}/turns"
_ONE = f"{_PATH}/{{message_id}}"
_EXAMPLE: JsonObject = {"session_id": "trip-to-lisbon"}
_TURN: JsonObject = {**_EXAMPLE, "message_id": "1"}
_ANSWER: JsonObject = {"messages": [{"role": "assistant", "content": "The Hotel do Rio is near the river."}]}
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
            Field("saved", ListOf(Anything()), "What the turn saved in memory, which stays.", required=True),
        ), name="UndoneTurn"),
        problems=(404, 409), tag=TAG, example=Example(_EXAMPLE),
    ),
    Route(
        "POST", "/v1/sessions/{session_id}/open", "open_session", "append", open_session,
        "Start or resume a session: its prompt and its tools for a model",
        Object((
            Field("session_id", SESSION_ID, "The session; another one than in the path if it was compressed.", True),
            Field("prompt", Text(0, 10_000_000), "The system prompt, the same until compression.", required=True),
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
