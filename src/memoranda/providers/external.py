"""The external memory of one session: what was recalled goes into a copy of the user's message, and nowhere else."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memoranda.providers.status import keep
from memoranda.safety.fence import build_memory_context_block, inject, screened
from memoranda.tools import Tool

if TYPE_CHECKING:
    from memoranda.providers.manager import MemoryManager

_log = logging.getLogger(__name__)

_LONGEST_DESCRIPTION = 4_000
_NO_TOOLS: tuple[Tool, ...] = ()

Message = dict[str, Any]
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def guarded(instead: _Result) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """A conversation goes on, whatever happens here: what fails is logged, and `instead` is returned."""

    def decorate(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(method)
        def guarded(*given: _Given.args, **named: _Given.kwargs) -> _Result:
            try:
                return method(*given, **named)
            except Exception:
                _log.exception("External memory failed in %s", method.__name__)
                return instead

        return guarded

    return decorate


class ExternalMemory:
    """The external memory of one session; without a provider it does nothing, at once."""

    def __init__(self, manager: "MemoryManager | None" = None, name: str = "", *, most: int = 0) -> None:
        self._manager = manager
        self._name = name
        self._most = most
        self._turns = 0
        self._block = ""

    @property
    def active(self) -> bool:
        """Whether there is a provider at all."""
        return self._manager is not None

    @guarded("")
    def system_prompt(self) -> str:
        """What the provider says in the system prompt."""
        if self._manager is None:
            return ""
        text = self._manager.system_prompt()
        return screened(text, most=len(text), source=self._name)

    @guarded(_NO_TOOLS)
    def tools(self) -> tuple[Tool, ...]:
        """The provider's tools; what they say about themselves is a stranger's text, and screened like one."""
        if self._manager is None:
            return ()
        return tuple(
            replace(tool, description=_screened(tool.description), parameters=_without_orders(tool.parameters))
            for tool in self._manager.tools_for()
        )

    @guarded(None)
    def begin_turn(self, text: str, session_id: str) -> None:
        """A user message came in: ask what is remembered about it, under the manager's deadline."""
        self._block = ""
        if self._manager is None:
            return
        self._turns += 1
        self._manager.turn_started(self._turns, text, session_id)
        recalled = self._manager.recall(text, session_id)
        self._block = build_memory_context_block(recalled, most=self._most, source=self._name) if self._most else ""

    def with_recall(self, messages: Sequence[Message]) -> list[Message]:
        """A copy of the messages with what was recalled behind the user's last one; the record never has it."""
        copied = [dict(message) for message in messages]
        asked = next((message for message in reversed(copied) if message.get("role") == "user"), None)
        if self._block and asked is not None:
            content = asked.get("content")
            asked["content"] = inject(content if isinstance(content, str | list) else str(content or ""), self._block)
        return copied

    @guarded(None)
    def finish_turn(self, user: Any, reply: Any, session_id: str, messages: Sequence[Message], key: str) -> None:
        """A completed turn, to be delivered; an interrupted one never comes here."""
        if self._manager is not None:
            self._manager.turn_finished(user, reply, session_id, list(messages), key=key)

    @guarded(None)
    def mirror(self, result: Mapping[str, Any], session_id: str) -> None:
        """Hand on what the memory tool really changed; what was staged or refused changed nothing."""
        if self._manager is None:
            return
        for args, metadata, key in memory_changes(result, session_id):
            self._manager.memory_written(args["action"], args["target"], args["content"], metadata, key=key)

    @guarded(None)
    def end(self, messages: Sequence[Message], session_id: str) -> None:
        """The session is over: the provider hears of it, now or at its next start."""
        if self._manager is not None:
            self._manager.session_ended(list(messages), session_id)
        self.close()

    @guarded(None)
    def close(self) -> None:
        """Stop without a word to the provider; what it has not been told waits in the outbox."""
        if self._manager is None:
            return
        manager, self._manager = self._manager, None
        manager.shutdown()
        keep(manager.home, self._name, manager.status().health)


def memory_changes(result: Mapping[str, Any], session_id: str) -> list[tuple[dict[str, str], dict[str, str], str]]:
    """What a call of the memory tool really changed: arguments, metadata and key of each change."""
    if result.get("success") is not True or result.get("staged"):
        return []
    changes = []
    for place, change in enumerate(result.get("changed") or ()):
        metadata = {"session_id": session_id, "tool_name": "memory", "write_origin": "assistant_tool"}
        if change.get("before") is not None:
            metadata["old_text"] = change["before"]
        target = str(result.get("target", "memory"))
        args = {"action": str(change["action"]), "target": target, "content": str(change.get("after") or "")}
        changes.append((args, metadata, f"memory:{result.get('stored_in', '')}:{result.get('change', '')}:{place}"))
    return changes


@lru_cache(maxsize=256)
def _screened(text: str) -> str:
    return screened(text, most=_LONGEST_DESCRIPTION)


def _without_orders(schema: Any) -> Any:
    """A JSON schema whose descriptions are screened."""
    if isinstance(schema, Mapping):
        return {
            key: _screened(value) if key == "description" and isinstance(value, str) else _without_orders(value)
            for key, value in schema.items()
        }
    return [_without_orders(each) for each in schema] if isinstance(schema, list) else schema
