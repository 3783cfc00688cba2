"""Past messages as a model reads them that summarises, compresses or reviews a conversation.

They pass the filter of everything that quotes stored text (`memoranda.safety.fence`): a tool result that gave orders to
the model of the conversation must not give them to the next model too.
"""

import json
from collections.abc import Mapping
from typing import Any

from memoranda.safety.fence import screen_stored

_SOURCE = "an earlier message"


def screen_transcript(text: str) -> str:
    """A transcript, or the text of one message in it, without live tags and attack passages."""
    return str(screen_stored(text, source=_SOURCE).value)


def screen_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the form of chat APIs without attack passages, in its content and in the arguments of its calls.

    A message without an attack stays as it is, byte for byte, because the service may have it in its prompt cache.
    """
    shown = dict(message)
    content = screen_stored(message.get("content"), source=_SOURCE)
    if content.passages:
        shown["content"] = content.value
    if isinstance(calls := message.get("tool_calls"), list):
        shown["tool_calls"] = [_screen_call(call) for call in calls]
    return shown


def _screen_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return call
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        # A service refuses arguments that are not JSON, so they are not a text that a model reads.
        return call
    screened = screen_stored(parsed, source=_SOURCE)
    if not screened.passages:
        return call
    return {**call, "function": {**function, "arguments": json.dumps(screened.value, ensure_ascii=False)}}
