"""The calls of the interface as operations: which requests each sends, and what it makes of their answers."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import quote

from memoranda.api.client.transport import Operation, Request, reading, writing
from memoranda.errors import MemorandaError, SessionError, UnknownSessionError
from memoranda.support.tool import JsonObject
from memoranda.types import ChatMessage, ConversationAnswer, MemoryAnswer, SearchAnswer

Reply = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
_REFUSALS = frozenset({
    "invalid", "disabled", "blocked", "over_budget", "no_match", "ambiguous", "approval", "drift", "conflict",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class UndoneTurn:
    """A turn that was undone: the user's text, how many messages left the context, and what it saved in memory."""

    text: str
    messages: int
    saved: tuple[JsonObject, ...] = ()


def session_path(session_id: str, *parts: str | int) -> str:
    """The path of a session, or of something below it; ids may contain any character."""
    return "/".join(["/v1/sessions", quote(session_id, safe=""), *(quote(str(part), safe="") for part in parts)])


def search(query: str, options: Mapping[str, Any]) -> Operation[SearchAnswer | ConversationAnswer]:
    body = _without_none(options)
    if "session_id" in body:
        read = {name: body[name] for name in ("session_id", "around_message_id", "window", "cursor") if name in body}
        answer = yield reading("POST", "/v1/read", read)
    else:
        answer = yield reading("POST", "/v1/search", {"query": query, **body})
    return cast("SearchAnswer | ConversationAnswer", {"success": True} | answer)


def recall(question: str, options: Mapping[str, Any]) -> Operation[JsonObject]:
    answer = yield reading("POST", "/v1/recall", {"question": question, **_without_none(options)})
    return cast(JsonObject, answer)


def remember(text: str, target: str, session_id: str = "") -> Operation[MemoryAnswer]:
    """A refusal (blocked, over the limit …) is an answer, as in the library."""
    body = {"text": text} | ({"session_id": session_id} if session_id else {})
    try:
        answer = yield writing("POST", f"/v1/memory/{quote(target, safe='')}/entries", body)
    except SessionError as error:
        problem = getattr(error, "problem", {})
        if problem.get("reason") not in _REFUSALS:
            raise
        findings = {"findings": problem["findings"]} if "findings" in problem else {}
        return cast("MemoryAnswer", {"success": False, "reason": problem["reason"], "error": str(error)} | findings)
    receipt = {name: value for name, value in answer.items() if value is not None and name not in ("ids", "proposal")}
    staged = {"staged": True, "pending_id": answer["proposal"]} if "proposal" in answer else {}
    return cast("MemoryAnswer", {"success": True} | receipt | staged)


def entries(target: str) -> Operation[tuple[str, ...]]:
    answer = yield reading("GET", f"/v1/memory/{quote(target, safe='')}/entries")
    return tuple(entry["text"] for entry in answer["entries"])


def open_session(session_id: str, options: Mapping[str, str]) -> Operation[JsonObject]:
    """Starts or resumes a session; returns its id, which changes with compression, its prompt and its tools."""
    answer = yield Request("POST", session_path(session_id, "open"), dict(options), safe=True)
    return cast(JsonObject, answer)


def conversation(session_id: str) -> Operation[list[ChatMessage]]:
    """The recorded messages in the form that chat APIs accept; none for a session that has no row yet."""
    try:
        answer = yield reading("GET", session_path(session_id, "conversation"))
    except UnknownSessionError:
        return []
    return cast("list[ChatMessage]", answer["messages"])


def call_tool(session_id: str, name: str, arguments: Mapping[str, Any]) -> Operation[JsonObject]:
    """Sent once: a tool may do something twice."""
    answer = yield Request("POST", session_path(session_id, "tools", name), {"arguments": dict(arguments)})
    return cast(JsonObject, answer)


def begin_turn(session_id: str, content: Any, options: Mapping[str, str]) -> Operation[tuple[str, int]]:
    """Returns the id of the session, which changes with compression, and that of the user's message."""
    answer = yield writing("POST", session_path(session_id, "turns"), {"content": content, **options})
    return str(answer["session_id"]), int(answer["message_id"])


def turn_messages(session_id: str, message_id: int) -> Operation[list[ChatMessage]]:
    answer = yield reading("GET", session_path(session_id, "turns", message_id, "messages"))
    return cast("list[ChatMessage]", answer["messages"])


def record_step(session_id: str, message_id: int, message: Mapping[str, Any]) -> Operation[int]:
    path = session_path(session_id, "turns", message_id, "messages")
    answer = yield writing("POST", path, {"messages": [_without_none(message)]})
    return int(answer["ids"][0])


def finish_turn(session_id: str, message_id: int, reply: Reply) -> Operation[list[int]]:
    messages = [_without_none(message) for message in as_messages(reply)]
    answer = yield writing("POST", session_path(session_id, "turns", message_id, "done"), {"messages": messages})
    return [int(number) for number in answer["ids"]]


def leave_turn(session_id: str, message_id: int) -> Operation[None]:
    yield Request("DELETE", session_path(session_id, "turns", message_id), safe=True)


def undo_turn(session_id: str) -> Operation[UndoneTurn | None]:
    """Sent once: a second time it would undo another turn."""
    try:
        answer = yield Request("POST", session_path(session_id, "undo"))
    except UnknownSessionError:
        return None
    return UndoneTurn(answer["text"], answer["messages"], tuple(answer["saved"]))


def append(session_id: str, messages: Sequence[Mapping[str, Any]]) -> Operation[list[int]]:
    body = {"messages": [_without_none(message) for message in messages]}
    answer = yield writing("POST", session_path(session_id, "messages"), body)
    return [int(number) for number in answer["ids"]]


def create_session(fields: Mapping[str, Any]) -> Operation[str]:
    answer = yield writing("POST", "/v1/sessions", _without_none(fields))
    return str(answer["id"])


def find_session(session_id: str) -> Operation[JsonObject | None]:
    try:
        answer = yield reading("GET", session_path(session_id))
    except UnknownSessionError:
        return None
    return cast(JsonObject, answer)


def list_sessions(limit: int, filters: Mapping[str, Any]) -> Operation[list[JsonObject]]:
    found: list[JsonObject] = []
    cursor: str | None = None
    while len(found) < limit:
        page = min(100, limit - len(found))
        answer = yield reading("GET", "/v1/sessions", limit=page, cursor=cursor, **filters)
        found += answer["sessions"]
        cursor = answer.get("next_cursor")
        if cursor is None:
            break
    return found


def get_messages(session_id: str, *, include_inactive: bool = False) -> Operation[list[JsonObject]]:
    found: list[JsonObject] = []
    cursor: str | None = None
    while True:
        everything = True if include_inactive else None
        path = session_path(session_id, "messages")
        answer = yield reading("GET", path, limit=1_000, cursor=cursor, all=everything)
        found += answer["messages"]
        if not answer["more"]:
            return found
        cursor = answer["cursor"]


def end_session(session_id: str, reason: str) -> Operation[None]:
    yield Request("POST", session_path(session_id, "end"), {"reason": reason}, safe=True)


def end_if_started(session_id: str, reason: str) -> Operation[None]:
    """Ends a session; one in which nothing was recorded does not exist, and needs no end."""
    try:
        yield from end_session(session_id, reason)
    except UnknownSessionError:
        return


def delete_session(session_id: str) -> Operation[None]:
    # Not repeated: a second answer would say that there is no such session.
    yield Request("DELETE", session_path(session_id))


def forget(body: Mapping[str, Any]) -> Operation[JsonObject]:
    answer = yield Request("POST", "/v1/forget", _without_none(body))
    return cast(JsonObject, answer)


def usage() -> Operation[JsonObject]:
    answer = yield reading("GET", "/v1/usage")
    return cast(JsonObject, answer)


def ready() -> Operation[JsonObject]:
    answer = yield reading("GET", "/readyz")
    return cast(JsonObject, answer)


def as_messages(reply: Reply) -> list[Mapping[str, Any]]:
    """An answer as a list of messages; raises SessionError for one that is empty."""
    if isinstance(reply, str):
        reply = [{"role": "assistant", "content": reply}]
    elif isinstance(reply, Mapping):
        reply = [{"role": "assistant", **reply}]
    if not reply:
        raise SessionError("The answer has no message, and the turn is not done.")
    return list(reply)


def new_session_id() -> str:
    """An id for a session that this client starts; ids sort by time."""
    return f"{datetime.now(UTC):%Y%m%d_%H%M%S}_{secrets.token_hex(6)}"


class BusyWait:
    """How long a turn waits for another one of its conversation: the service never waits, so the client asks again."""

    _PAUSE = 0.1

    def __init__(self, wait: float) -> None:
        self._deadline = time.monotonic() + wait

    def pause(self, error: MemorandaError) -> float:
        """The seconds until the next attempt; raises the error when the time is over."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise error
        return min(self._PAUSE, remaining)


def _without_none(fields: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
