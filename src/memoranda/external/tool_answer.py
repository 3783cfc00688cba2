"""The answer of a provider's tool as a model may see it.

Whatever the provider returns becomes a JSON object with a `success` key. Its texts come from outside, so they pass the
same filter as recalled text: passages that the scan objects to are withheld, tags of the fence are neutralised, and the
answer says where it is from.
"""

import json
from collections.abc import Callable
from typing import Any

from memoranda.safety import scan
from memoranda.safety.fence import PAST_DATA, ScreenedValue, screen_value
from memoranda.safety.withheld_passages import WithheldPassage
from memoranda.support.json_texts import list_texts, map_texts
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

_OWN_KEYS = ("recalled_from", "withheld", "truncated")
# Parsing more than this would take longer than the answer is worth; it is shortened as plain text.
_MAX_PARSED_CHARS = 20_000_000


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer as a model sees it, and the passages that it does not see."""

    json: JsonObject
    withheld: tuple[WithheldPassage, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """Which tool of which provider answers, and how long its answer may be."""

    provider: str
    tool: str
    max_chars: int


_KEYS_OF_CALLS = ('"arguments"', '"parameters"', '"args"', '"input"')


def failure(error: str) -> JsonObject:
    return {"success": False, "error": error}


def answer_failure(error: str, origin: ToolOrigin) -> ToolAnswer:
    """The answer of a tool that failed; the error may quote what a service said."""
    screened = screen_value(error, source=origin.provider)
    return _labelled(failure(screened.value), screened, origin)


def answer_reply(reply: object, origin: ToolOrigin, clean: Callable[[str], str]) -> ToolAnswer:
    """The answer for a provider's reply, whatever that is: text, JSON as text, or a value."""
    if not isinstance(reply, str):
        # Many providers return the value itself.
        try:
            reply = json.dumps(reply)
        except (TypeError, ValueError, RecursionError):
            return ToolAnswer(failure(f"answered with {type(reply).__name__}, which is not JSON"))
    try:
        return _answer_text(reply, origin, clean)
    except RecursionError:
        return ToolAnswer(failure("answered with JSON that is nested too deeply"))


def _answer_text(reply: str, origin: ToolOrigin, clean: Callable[[str], str]) -> ToolAnswer:
    value, limit = _parse(reply), origin.max_chars
    if value is None:
        return ToolAnswer(failure("returned no answer"))
    if is_long := len(reply) > limit:
        value = _Start(limit).of(value)
    screened = screen_value(map_texts(value, clean), source=origin.provider)
    text = json.dumps(screened.value, ensure_ascii=False)
    if is_long or len(text) > limit:
        # As text, because a part of a JSON value is not a JSON value.
        text = screened.value if isinstance(screened.value, str) else text
        answer = {"success": True, "truncated": True, "result": shorten_end(text, limit, whole_lines=True)}
    elif isinstance(screened.value, dict):
        # A provider must not be able to write what we say about it.
        theirs = {f"{key} (provider)" if key in _OWN_KEYS else key: each for key, each in screened.value.items()}
        answer = {"success": "error" not in theirs, **theirs}
    else:
        answer = {"success": True, "result": screened.value}
    return _labelled(answer, screened, origin)


def _parse(reply: str) -> Any:
    if len(reply) > _MAX_PARSED_CHARS:
        return reply
    try:
        value = json.loads(reply)
    except (ValueError, RecursionError):
        return reply
    # A call of a tool is found in the whole text only: its keys and values are harmless one by one.
    is_call = any(key in reply for key in _KEYS_OF_CALLS) and any(found.id == "tool_call" for found in scan(reply))
    return reply if is_call else value


def _labelled(answer: JsonObject, screened: ScreenedValue, origin: ToolOrigin) -> ToolAnswer:
    """The answer with its origin, if it contains words, and with a note of what it does not contain."""
    label: JsonObject = {}
    if answer["success"] is True and any(len(text.split()) > 1 for text in list_texts(answer)):
        label["recalled_from"] = f"{origin.provider}: {PAST_DATA}"
    command = f"memoranda provider call {origin.tool} --provider {origin.provider} --withheld"
    if withheld := screened.describe_withheld(f"'{command}' shows it to a person"):
        label["withheld"] = withheld
    return ToolAnswer(answer | label, screened.passages)


class _Start:
    """Takes the start of a value in the order in which it is read, so that no more than that has to be screened."""

    def __init__(self, room: int) -> None:
        self._room = room

    def of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        self._room -= 1
        if isinstance(value, dict):
            return {self._text(key): self.of(item) for key, item in value.items() if self._room > 0}
        if isinstance(value, list):
            return [self.of(item) for item in value if self._room > 0]
        return value

    def _text(self, text: str) -> str:
        kept = shorten_end(text, max(self._room, 0))
        self._room -= len(kept) + 2
        return kept
