"""Message: one message in full, in parts if it is long."""

from dataclasses import dataclass

from memoranda.memory.record.message_rows import text_of
from memoranda.service.http.problems import Problem
from memoranda.service.viewer.page import Page, PageRequest, View
from memoranda.service.viewer.shown_messages import ShownMessage, TextBudget, show_messages

_PART_CHARS = 60_000


@dataclass(frozen=True, slots=True)
class MessageView:
    """What the page shows: the message, and the part of its text from a character on."""

    session: str
    message: ShownMessage
    text: str
    start: int
    chars: int
    earlier: int | None
    later: int | None


def show(request: PageRequest) -> View:
    """The page; raises Problem 404 for a message that does not exist."""
    missing = Problem(404, "not_found", "There is no such message.")
    name = request.path["message"]
    if not request.has_record or not (name.isascii() and name.isdigit() and len(name) < 16):
        raise missing
    db = request.memory.sessions
    window = db.window_around(int(name), 1, counted=False)
    conversation = db.conversation_of(request.path["session"])
    if window is None or window.conversation != conversation:
        raise missing
    message = next(found for found in window.messages if found.id == int(name))
    text = text_of(message.content)
    start = request.number("from", 0)
    part = TextBudget(2 * _PART_CHARS).shorten(text[start:], _PART_CHARS).text
    later = start + len(part)
    data = MessageView(
        request.path["session"],
        next(show_messages([message], TextBudget(_PART_CHARS))),
        part,
        start,
        len(text),
        max(0, start - _PART_CHARS) if start else None,
        later if later < len(text) and part else None,
    )
    return View("message.html", f"Message {name}", data)


PAGE = Page("message", "/sessions/{session}/messages/{message}", show)
