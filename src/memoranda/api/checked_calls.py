"""Calls of a developer: what they pass is checked, a tool is called by its name, and a fact is saved for a person.

A mistake of a developer raises at once and says what to do instead. The tools that a model calls are lenient, and
answer a mistake with a refusal in JSON.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from memoranda.errors import HomeError, SessionError
from memoranda.support.origin import Origin
from memoranda.support.suggestions import did_you_mean
from memoranda.support.tool import JsonObject, Tool, tool_refusal

if TYPE_CHECKING:
    from memoranda.memory.curated.settings import Target
    from memoranda.memory.curated.store import MemoryStore
    from memoranda.types import MemoryAnswer


class NotAsync:
    """Refuses `async with`, and names the function whose objects allow it."""

    def __aenter__(self) -> NoReturn:
        raise TypeError(
            f"This {type(self).__name__} is not for asyncio: use 'with', or begin with 'async with "
            "memoranda.open_async(...) as memory'; what that returns has an asyncio form of each method."
        )

    def __aexit__(self, *_: object) -> NoReturn:
        self.__aenter__()


def refuse_unknown_options(function: str, unknown: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError for an option that a function does not have."""
    for name in unknown:
        suggestion = did_you_mean(name, known) or f" There are: {', '.join(known)}."
        raise TypeError(f"{function}() has no option {name!r}.{suggestion}")


def require_hook(name: str, value: object, hook: str) -> None:
    """Raise TypeError unless an object is missing or has a hook: without it, nothing would ever call it."""
    if value is not None and not callable(getattr(value, hook, None)):
        raise TypeError(f"{name} must have a method {hook}(), and {_describe(value)} has none.")


def require_range(name: str, value: int | None, maximum: int) -> None:
    """Raise SessionError unless a number is None or from 1 to the maximum."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise SessionError(f"{name} must be a whole number from 1 to {maximum}, not {_describe(value)}.")
    if not 1 <= value <= maximum:
        raise SessionError(f"{name} must be from 1 to {maximum}, not {value}.")


def require_question(content: Any) -> None:
    """Raise SessionError unless the content is a user's message: text or a list of content parts, and not empty."""
    if not isinstance(content, str | Mapping | Sequence):
        raise SessionError(
            f"A turn begins with the user's message, as text or as a list of content parts, not {_describe(content)}."
        )
    if not content or (isinstance(content, str) and not content.strip()):
        raise SessionError("The user's message is empty, so there is no turn to begin.")


def require_messages(messages: Any) -> None:
    """Raise SessionError unless every message has a known role, and every result of a tool names its call."""
    from memoranda.memory.record.message_rows import require_message

    for message in messages:
        require_message(message)
        if message["role"] == "tool" and not message.get("tool_call_id"):
            raise SessionError(
                "The result of a tool needs the tool_call_id of the call that it answers: "
                'record("tool", result, tool_call_id=call["id"], tool_name=...).'
            )


def require_answer(reply: Any) -> None:
    """Raise SessionError unless a reply can end a turn: text, a message, or several messages."""
    if not isinstance(reply, str | Mapping | Sequence) or (not isinstance(reply, str) and not reply):
        found = "nothing" if reply is not None and not reply else _describe(reply)
        raise SessionError(f"done() takes the answer: text, a message, or a list of messages, not {found}.")
    if not isinstance(reply, str | Mapping):
        require_messages(reply)


def _describe(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def call_tool(
    tools: Sequence[Tool], name: str, arguments: Mapping[str, Any], require_open: Callable[[], None]
) -> JsonObject:
    """Call one of the tools; an unknown name, or a home that was closed, returns a refusal and raises nothing."""
    try:
        require_open()
    except HomeError as error:
        return tool_refusal("unavailable", str(error))
    for tool in tools:
        if tool.name == name:
            return tool.call(arguments)
    offered = ", ".join(tool.name for tool in tools) or "none: memory is switched off"
    return tool_refusal("unavailable", f"There is no tool {name!r} here (offered: {offered}).")


def remember(
    store: "MemoryStore", text: str, target: "Target", session_id: str, *, key: str = "", until: str = ""
) -> "MemoryAnswer":
    """Save a fact at a person's request and return a receipt."""
    from memoranda.memory.curated.settings import NOTES, PROJECT, TARGETS, is_target
    from memoranda.memory.curated.tool import MemoryTool

    if not isinstance(text, str):
        raise TypeError(f"remember() takes the fact as text, not {_describe(text)}.")
    known = (*TARGETS, PROJECT, NOTES)
    if target not in known and not is_target(target):
        suggestion = did_you_mean(str(target), known) or f" There are: {', '.join(known)}."
        raise SessionError(f"There is no memory {target!r}.{suggestion}")
    person = Origin("person", session_id, explicit=True)
    call = {"target": target, "action": "add", "content": text, "key": key, "until": until}
    return cast("MemoryAnswer", MemoryTool(store, person).call(call))
