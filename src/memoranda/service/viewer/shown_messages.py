"""Messages as a page shows them: long texts shortened, so that a page stays small, with a link to the whole."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from memoranda.memory.record.feed import FeedMessage
from memoranda.memory.record.message_rows import text_of

_MAX_TEXT_CHARS = 6_000
_MAX_FOLDED_CHARS = 2_500
_MAX_ARGUMENT_CHARS = 1_200
_MAX_CALLS = 20
_MAX_SUMMARY_CHARS = 90
# What is left for a text when the page is full.
_MIN_CHARS = 160
PAGE_CHARS = 110_000
"""The most characters of HTML that the texts of one page have."""


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text, perhaps only the start of it."""

    text: str
    chars: int

    @property
    def is_cut(self) -> bool:
        """Whether the text continues."""
        return len(self.text) < self.chars

    @property
    def first_line(self) -> str:
        """The start of it on one line, for a folded text."""
        line = " ".join(self.text[: 4 * _MAX_SUMMARY_CHARS].split())
        return line if len(line) <= _MAX_SUMMARY_CHARS else f"{line[:_MAX_SUMMARY_CHARS]}…"


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call: the name of the tool, and its arguments."""

    name: str
    arguments: ShownText


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of a conversation."""

    id: int
    session_id: str
    role: str
    tool: str
    timestamp: float
    body: ShownText
    calls: tuple[ShownCall, ...]
    more_calls: int
    is_damaged: bool

    @property
    def is_folded(self) -> bool:
        """Whether the page shows it closed: the output of tools, and what programs tell the model."""
        return self.role not in ("user", "assistant")


class TextBudget:
    """Shortens texts so that all of them together stay within a size; the first ones get more."""

    def __init__(self, chars: int = PAGE_CHARS) -> None:
        self._left = chars

    def shorten(self, text: str, limit: int) -> ShownText:
        """The start of a text, as long as the limit and the budget allow."""
        room = min(limit, max(_MIN_CHARS, self._left))
        shown = text[:room]
        size = len(escape(shown))
        if size > max(room, self._left):
            # Escaped, it needs up to five times its length.
            shown = shown[: max(_MIN_CHARS, room * max(self._left, room) // size)]
            size = len(escape(shown))
        self._left -= size
        return ShownText(shown, len(text))


def show_messages(messages: Iterable[FeedMessage], budget: TextBudget) -> Iterator[ShownMessage]:
    """The messages in order."""
    for message in messages:
        calls = list(_calls(message.tool_calls))
        folded = message.role not in ("user", "assistant")
        yield ShownMessage(
            message.id,
            message.session_id,
            message.role,
            message.tool_name or "",
            message.timestamp,
            budget.shorten(text_of(message.content), _MAX_FOLDED_CHARS if folded else _MAX_TEXT_CHARS),
            tuple(
                ShownCall(name, budget.shorten(arguments, _MAX_ARGUMENT_CHARS))
                for name, arguments in calls[:_MAX_CALLS]
            ),
            max(0, len(calls) - _MAX_CALLS),
            message.damaged,
        )


def _calls(calls: Any) -> Iterator[tuple[str, str]]:
    """The name and the arguments of each tool call, whatever form the program recorded."""
    for call in calls if isinstance(calls, list) else [calls] if calls else []:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict):
            yield "tool", call if isinstance(call, str) else json.dumps(call, ensure_ascii=False)
            continue
        arguments = function.get("arguments", function.get("input", ""))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
        yield str(function.get("name") or "tool")[:200], text
