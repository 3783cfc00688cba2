"""The external memory of one session: what was recalled goes into a copy of the user's message, and nowhere else."""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memoranda.providers.status_file import write_status
from memoranda.safety.fence import build_memory_context_block, inject, screen_text
from memoranda.tools import Tool

if TYPE_CHECKING:
    from memoranda.curated.write_result import MemoryReceipt, Origin
    from memoranda.providers.manager import MemoryManager
    from memoranda.providers.recorded_turns import RecordedTurns

_log = logging.getLogger(__name__)

_LONGEST_DESCRIPTION = 4_000
_NO_TOOLS: tuple[Tool, ...] = ()
_NO_MARK: dict[str, Any] = {}

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

    def __init__(
        self,
        manager: "MemoryManager | None" = None,
        name: str = "",
        *,
        most: int = 0,
        turns: "RecordedTurns | None" = None,
        toolsets: Collection[str] | None = None,
    ) -> None:
        self._manager = manager
        self._name = name
        self._most = most
        self._record = turns
        self._toolsets = toolsets
        self._turns = 0
        self._lock = threading.Lock()
        self._closing: list[Callable[[], None]] = []

    @property
    def active(self) -> bool:
        """Whether there is a provider at all, and the session is not over."""
        return self._manager is not None

    @guarded("")
    def system_prompt(self) -> str:
        """What the provider says in the system prompt."""
        if self._manager is None:
            return ""
        text = self._manager.system_prompt()
        return screen_text(text, max_chars=len(text), source=self._name)

    @guarded(_NO_TOOLS)
    def tools(self) -> tuple[Tool, ...]:
        """The provider's tools; what they say about themselves is a stranger's text, and screened like one."""
        if self._manager is None:
            return ()
        return tuple(
            replace(tool, description=_screened(tool.description), parameters=_without_orders(tool.parameters))
            for tool in self._manager.tools_for(self._toolsets)
        )

    @guarded(_NO_MARK)
    def mark(self, turn: int | None = None, *, done: bool = False) -> dict[str, Any]:
        """Fields for a message that is about to be recorded; `turn` is None for the first message of a turn."""
        if self._record is None:
            return {}
        return self._record.mark(turn, done=done)

    @guarded("")
    def begin_turn(self, text: str, session_id: str) -> str:
        """A user message came in: what is remembered about it, as a block, within the deadline that a turn has."""
        if self._manager is None:
            return ""
        self._turns += 1
        recalled = self._manager.before_turn(self._turns, text, session_id)
        return build_memory_context_block(recalled, max_chars=self._most, source=self._name) if self._most else ""

    @guarded(None)
    def finish_turn(self, question: str, session_id: str) -> None:
        """A turn was completed and recorded, so it is delivered; an interrupted one never comes here."""
        if self._manager is not None:
            self._manager.notify.turn_recorded(question, session_id)

    @guarded(None)
    def mirror(self, receipt: "MemoryReceipt", origin: "Origin", shown: Callable[[str], str]) -> None:
        """Hand on what was really changed in the built-in memory; `shown` is what may be seen of an entry."""
        if self._manager is not None:
            for args, metadata, key in memory_changes(receipt, origin, shown):
                self._manager.notify.memory_written(args["action"], args["target"], args["content"], metadata, key=key)

    @guarded(None)
    def switch(
        self, new_id: str, parent: str = "", reason: str = "", *, reset: bool = False, rewound: bool = False
    ) -> None:
        """The conversation goes on under another id (compression, branch, resume, new_session), or was taken back."""
        if self._manager is not None:
            facts = {"reason": reason} if reason else {}
            self._manager.notify.session_switched(
                new_id, parent_session_id=parent, reset=reset or reason == "new_session", rewound=rewound, **facts
            )

    @guarded(None)
    def delegated(self, task: str, result: str, child_id: str = "") -> None:
        """A sub-agent of this session is done."""
        if self._manager is not None:
            self._manager.notify.delegated(task, result, child_session_id=child_id)

    @guarded("")
    def before_compression(self, messages: Sequence[Message]) -> str:
        """What the provider wants a summary of these messages to hold: reference text, screened, of a bounded size."""
        if self._manager is None:
            return ""
        text = self._manager.before_compress([dict(message) for message in messages])
        return screen_text(text, max_chars=len(text), source=self._name)

    @guarded(None)
    def commit(self, messages: Sequence[Message], session_id: str) -> None:
        """A session is about to be over: the provider hears of it, now or at its next start, and stays.

        Whoever is killed before the record says so tells it again, with the same key unless something was said since.
        """
        if self._manager is not None:
            self._manager.notify.session_ended(
                list(messages), session_id, key=_end_key(self._name, session_id, messages)
            )

    @guarded(None)
    def close(self) -> None:
        """Stop without a word to the provider; what it has not been told waits in the outbox."""
        with self._lock:
            manager, self._manager = self._manager, None
        if manager is None:
            return
        try:
            manager.shutdown()
            write_status(manager.home, self._name, manager.status().health)
        finally:
            with self._lock:
                closing, self._closing = self._closing, []
            for step in closing:
                step()

    def on_close(self, step: Callable[[], None]) -> None:
        """Have something done when this is closed; at once, if it is."""
        with self._lock:
            if self._manager is not None:
                self._closing.append(step)
                return
        step()


def with_recall(messages: Sequence[Message], block: str, question: Any = None) -> list[Message]:
    """A copy of the messages with what was recalled behind the user's last one; the record never has it.

    `question` is what the user said last, where a summary may stand behind it.
    """
    copied = [dict(message) for message in messages]
    users = [message for message in copied if message.get("role") == "user"]
    said = [message for message in users if question is not None and message.get("content") == question]
    asked = (said or users)[-1] if users else None
    if block and asked is not None:
        content = asked.get("content")
        asked["content"] = inject(content if isinstance(content, str | list) else str(content or ""), block)
    return copied


def memory_changes(
    receipt: "MemoryReceipt", origin: "Origin", shown: Callable[[str], str]
) -> list[tuple[dict[str, str], dict[str, str], str]]:
    """What a write to the built-in memory changed: arguments, metadata and key of each change."""
    changes = []
    for place, edit in enumerate(receipt.edits):
        action = "add" if edit.before is None else "remove" if edit.after is None else "replace"
        by = "assistant_tool" if origin.actor == "agent" else origin.actor
        metadata = {"session_id": origin.session, "tool_name": "memory", "write_origin": by}
        if edit.before is not None:
            metadata["old_text"] = shown(edit.before)
        args = {"action": action, "target": receipt.target, "content": shown(edit.after) if edit.after else ""}
        changes.append((args, metadata, f"memory:{receipt.stored_in}:{receipt.change}:{place}"))
    return changes


def _end_key(provider: str, session_id: str, messages: Sequence[Message]) -> str:
    """The same for the same end of a session: it may be taken up again, and end again with more in it."""
    said = json.dumps(messages, sort_keys=True, default=str)
    return f"session_end:{provider}:{session_id}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@lru_cache(maxsize=256)
def _screened(text: str) -> str:
    return screen_text(text, max_chars=_LONGEST_DESCRIPTION)


def _without_orders(schema: Any) -> Any:
    """A JSON schema whose descriptions are screened."""
    if isinstance(schema, Mapping):
        return {
            key: _screened(value) if key == "description" and isinstance(value, str) else _without_orders(value)
            for key, value in schema.items()
        }
    return [_without_orders(each) for each in schema] if isinstance(schema, list) else schema
