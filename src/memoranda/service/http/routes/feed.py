"""The routes of the feed: what is new, as a page, as a long poll, and as a stream of events."""

from collections.abc import AsyncIterator
from functools import partial
from time import monotonic
from typing import Any

from memoranda.errors import MemorandaError
from memoranda.memory.record.feed import FeedMessage, Head
from memoranda.service.http.callers import read_token
from memoranda.service.http.cursors import read_cursor, write_cursor
from memoranda.service.http.json_text import write_json
from memoranda.service.http.problems import Problem
from memoranda.service.http.route import EVENTS, Answer, Call, Example, LiveAnswer, Route, WaitingAnswer
from memoranda.service.http.shapes import Field, ListOf, Object, Text, Whole
from memoranda.storage.position import START, Position
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.tool import JsonObject

TAG = "feed"
_MAX_EVENTS = 500
_MAX_WAIT = 60
_HEARTBEAT_SECONDS = 15.0
EVENT = Object(
    (
        Field("type", Text(choices=("message", "change")), "A new message, or a session to read again.", True),
        Field("cursor", Text(), "Where to continue after this event.", required=True),
        Field("message", Object((), extra=True), "The new message."),
        Field("session_id", Text(), "The session that changed: a title, an archive flag, rewound messages."),
        Field("from_message", Whole(), "The first message to read again; missing if only the session changed."),
    ),
    name="FeedEvent",
)


@dataclass(frozen=True, slots=True)
class _Page:
    events: list[JsonObject]
    head: Head


def _start(call: Call) -> Head:
    """Where to begin: at a cursor, at the beginning, or now."""
    text = call.headers.get("last-event-id") or call.query.get("cursor")
    if text is not None:
        try:
            message, change = map(Position.parse, read_cursor(text, "feed", (str, str)))
        except ValueError:
            raise Problem(422, "wrong_cursor", "The cursor is not one that the feed returned.") from None
        if max(message.row, change.row, message.transaction, change.transaction) >= 2**62:
            raise Problem(422, "wrong_cursor", "The cursor is not one that the feed returned.")
        return Head(message, change)
    return Head(START, START) if call.query.get("start") == "beginning" else call.memory.sessions.head()


def _cursor(head: Head) -> str:
    return write_cursor("feed", str(head.message), str(head.change))


def _read(call: Call, head: Head, limit: int) -> _Page:
    """The events after a position: changes first, so that a session is read again before its new messages."""
    db, events = call.memory.sessions, list[JsonObject]()
    for change in db.changes_after(head.change, limit):
        head = Head(head.message, change.position)
        first = {} if change.from_message is None else {"from_message": change.from_message}
        events.append({"type": "change", "cursor": _cursor(head), "session_id": change.session_id, **first})
    if len(events) < limit:
        batch = db.messages_after(head.message, limit - len(events))
        for message, position in zip(batch.messages, batch.positions, strict=True):
            head = Head(position, head.change)
            events.append({"type": "message", "cursor": _cursor(head), "message": _message_json(message)})
    return _Page(events, head)


def _message_json(message: FeedMessage) -> JsonObject:
    always = {"id", "session_id", "role", "content", "timestamp"}
    return {name: value for name, value in message._asdict().items() if name in always or value}


def feed(call: Call) -> Answer | WaitingAnswer:
    """The next events; with `wait`, as soon as there are any."""
    limit, wait = call.query.get("limit", 100), call.query.get("wait", 0)
    head = _start(call)

    async def answer() -> Answer:
        watch, until, position = call.service.feed, monotonic() + wait, head
        while True:
            change = watch.next_change()
            page = await call.service.workers.run(partial(_read, call, position, limit))
            remaining = until - monotonic()
            if page.events or remaining <= 0 or call.service.stopping.is_set():
                return Answer({"events": page.events, "cursor": _cursor(page.head)})
            position = page.head
            # It also ends with events of other users, and when the watch looks at the feed for the first time.
            await watch.wait(change, remaining)

    return WaitingAnswer(answer)


def stream(call: Call) -> LiveAnswer:
    """The events as they happen, until the client leaves, its key is revoked, or the service stops."""
    service = call.service
    if service.feed.streams >= service.settings.max_streams:
        raise Problem(503, "overloaded", "Too many clients follow the feed.", {"Retry-After": "10"})
    head, token = _start(call), read_token(call.headers)

    async def parts() -> AsyncIterator[bytes]:
        position = head
        service.feed.streams += 1
        try:
            yield f"retry: 2000\nid: {_cursor(position)}\n\n".encode()
            while not service.stopping.is_set():
                change = service.feed.next_change()
                page = await service.workers.run(partial(_read, call, position, _MAX_EVENTS))
                position = page.head
                for event in page.events:
                    yield _format_event(event)
                if page.events:
                    continue
                await service.feed.wait(change, _HEARTBEAT_SECONDS)
                if not change.is_set():
                    await service.workers.run(lambda: service.authenticator.identify(token))
                    yield b": still here\n\n"
        except (Problem, MemorandaError) as error:
            yield f"event: problem\ndata: {write_json({'detail': str(error)}).decode()}\n\n".encode()
        finally:
            service.feed.streams -= 1

    return LiveAnswer(parts, EVENTS)


def _format_event(event: JsonObject) -> bytes:
    data: dict[str, Any] = {name: value for name, value in event.items() if name not in ("type", "cursor")}
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event["cursor"].encode(), event["type"].encode(), write_json(data))


_START = Field("start", Text(choices=("now", "beginning")), "Where to begin without a cursor; now without it.")
_CURSOR = Field("cursor", Text(1, 1_000), "Where to continue: the cursor of an event or of an answer.")
ROUTES = (
    Route(
        "GET", "/v1/feed", "feed", "read", feed, "Read what is new, or wait for it",
        Object((
            Field("events", ListOf(EVENT), "The oldest first.", required=True),
            Field("cursor", Text(), "Where to continue.", required=True),
        ), name="FeedPage"),
        query=(
            _CURSOR, _START,
            Field("limit", Whole(1, _MAX_EVENTS), "How many events; 100 without it."),
            Field("wait", Whole(0, _MAX_WAIT), "Seconds to wait for an event if there is none; 0 without it."),
        ),
        tag=TAG, example=Example(query={"start": "beginning", "limit": 1}),
    ),
    Route(
        "GET", "/v1/feed/stream", "feed_stream", "read", stream, "Follow the feed as server-sent events", None,
        query=(_CURSOR, _START), media_type=EVENTS, tag=TAG,
    ),
)  # fmt: skip
