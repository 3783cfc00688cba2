"""The external memory of one session: recalled text goes into a copy of the user's message, and nowhere else."""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memoranda.providers.status_file import write_status
from memoranda.providers.tool_answer import ToolAnswer, failure
from memoranda.safety.fence import ScreenedValue, build_memory_context_block, inject, screen_text, screen_value
from memoranda.tools import Tool

if TYPE_CHECKING:
    from memoranda.curated.write_result import MemoryReceipt, Origin
    from memoranda.providers.manager import MemoryManager
    from memoranda.providers.recorded_turns import RecordedTurns

_log = logging.getLogger(__name__)

_MAX_DESCRIPTION_CHARS = 4_000
_NO_TOOLS: tuple[Tool, ...] = ()
_NO_MARK: dict[str, Any] = {}
_NO_ANSWER = ToolAnswer(failure("No external memory is in use."))
_NOTHING_RECALLED = ScreenedValue("")

Message = dict[str, Any]
_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


def guarded(
    instead: _Result, part: str = "External memory"
) -> Callable[[Callable[_Params, _Result]], Callable[_Params, _Result]]:
    """Log what a method raises and return `instead`, so that the conversation continues."""

    def decorate(method: Callable[_Params, _Result]) -> Callable[_Params, _Result]:
        @wraps(method)
        def guarded(*args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
            try:
                return method(*args, **kwargs)
            except Exception:
                _log.exception("%s failed in %s", part, method.__name__)
                return instead

        return guarded

    return decorate


class ExternalMemory:
    """The external memory of one session; without a provider every method returns at once."""

    def __init__(
        self,
        manager: "MemoryManager | None" = None,
        name: str = "",
        *,
        max_chars: int = 0,
        turns: "RecordedTurns | None" = None,
        toolsets: Collection[str] | None = None,
    ) -> None:
        self._manager = manager
        self._name = name
        self._max_chars = max_chars
        self._record = turns
        self._toolsets = toolsets
        self._lock = threading.Lock()
        self._on_close: list[Callable[[], None]] = []

    @property
    def active(self) -> bool:
        """Whether the session has a provider and has not ended."""
        return self._manager is not None

    @guarded("")
    def system_prompt(self) -> str:
        """The provider's block of the system prompt, screened."""
        if self._manager is None:
            return ""
        text = self._manager.build_system_prompt()
        return screen_text(text, max_chars=len(text), source=self._name)

    @guarded(_NO_TOOLS)
    def tools(self) -> tuple[Tool, ...]:
        """The provider's tools, with their descriptions screened: they are text from outside."""
        if self._manager is None:
            return ()
        return tuple(
            replace(tool, description=_screen(tool.description), parameters=_screen_schema(tool.parameters))
            for tool in self._manager.tools_for(self._toolsets)
        )

    @guarded(_NO_ANSWER)
    def answer_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Call a tool of the provider; the answer also has the passages that a model does not see."""
        return _NO_ANSWER if self._manager is None else self._manager.answer_tool(name, arguments)

    @guarded(_NOTHING_RECALLED)
    def recall_for_person(self, question: str, session_id: str) -> ScreenedValue:
        """What the provider recalls about a question, with the passages that a model does not see."""
        if self._manager is None:
            return _NOTHING_RECALLED
        return screen_value(self._manager.recall(question, session_id), source=self._name)

    @guarded(_NO_MARK)
    def mark(self, turn: int | None = None, *, done: bool = False) -> dict[str, Any]:
        """Fields for a message that is about to be recorded; `turn` is None for the first message of a turn."""
        if self._record is None:
            return {}
        return self._record.mark(turn, done=done)

    @guarded("")
    def begin_turn(self, text: str, session_id: str, number: Callable[[], int]) -> str:
        """Return what the provider remembers about a user message, as a fenced block, within the turn's deadline.

        `number` returns the number of the turn in its conversation, the first being 1.
        """
        if self._manager is None:
            return ""
        recalled = self._manager.before_turn(number(), text, session_id)
        return (
            build_memory_context_block(recalled, max_chars=self._max_chars, source=self._name)
            if self._max_chars
            else ""
        )

    @guarded(None)
    def finish_turn(self, question: str, session_id: str) -> None:
        """Deliver a turn that was completed and recorded; not called for an interrupted one."""
        if self._manager is not None:
            self._manager.notify.turn_recorded(question, session_id)

    @guarded(None)
    def mirror(self, receipt: "MemoryReceipt", origin: "Origin", redact: Callable[[str], str]) -> None:
        """Mirror the changes of a curated write; `redact` returns what may be shown of an entry."""
        if self._manager is not None:
            for args, metadata, key in memory_changes(receipt, origin, redact):
                self._manager.notify.memory_written(args["action"], args["target"], args["content"], metadata, key=key)

    @guarded(None)
    def switch(
        self, new_id: str, parent: str = "", reason: str = "", *, reset: bool = False, rewound: bool = False
    ) -> None:
        """Notify the provider of a new session id (compression, branch, resume, reset, new_session), or of a rewind."""
        if self._manager is not None:
            facts = {"reason": reason} if reason else {}
            self._manager.notify.session_switched(
                new_id, parent_session_id=parent, reset=reset or reason == "new_session", rewound=rewound, **facts
            )

    @guarded(None)
    def delegated(self, task: str, result: str, child_id: str = "") -> None:
        """Notify the provider that a delegate of this session has finished."""
        if self._manager is not None:
            self._manager.notify.delegated(task, result, child_session_id=child_id)

    @guarded("")
    def before_compression(self, messages: Sequence[Message]) -> str:
        """What the provider wants a summary of these messages to contain: screened reference text."""
        if self._manager is None:
            return ""
        text = self._manager.on_pre_compress([dict(message) for message in messages])
        return screen_text(text, max_chars=len(text), source=self._name)

    @guarded(None)
    def commit(self, messages: Sequence[Message], session_id: str) -> None:
        """Notify the provider that the session ends, before the record says so; the provider stays attached.

        A process that is killed in between repeats the notification, with the same key unless messages were added.
        """
        if self._manager is not None:
            self._manager.notify.session_ended(
                list(messages), session_id, key=_end_key(self._name, session_id, messages)
            )

    @guarded(None)
    def close(self) -> None:
        """Shut the provider down without ending the session; undelivered jobs stay in the outbox."""
        with self._lock:
            manager, self._manager = self._manager, None
        if manager is None:
            return
        try:
            manager.shutdown()
            write_status(manager.home, self._name, manager.status().health)
        finally:
            with self._lock:
                steps, self._on_close = self._on_close, []
            for step in steps:
                step()

    def on_close(self, step: Callable[[], None]) -> None:
        """Run `step` when this is closed; at once if it is closed already."""
        with self._lock:
            if self._manager is not None:
                self._on_close.append(step)
                return
        step()


def with_recall(messages: Sequence[Message], block: str, question: Any = None) -> list[Message]:
    """A copy of the messages with the recalled block appended to the user's last message; the record never contains it.

    `question` is the content of that message, because a summary may follow it.
    """
    copied = [dict(message) for message in messages]
    users = [message for message in copied if message.get("role") == "user"]
    matching = [message for message in users if question is not None and message.get("content") == question]
    target = (matching or users)[-1] if users else None
    if block and target is not None:
        content = target.get("content")
        target["content"] = inject(content if isinstance(content, str | list) else str(content or ""), block)
    return copied


def memory_changes(
    receipt: "MemoryReceipt", origin: "Origin", redact: Callable[[str], str]
) -> list[tuple[dict[str, str], dict[str, str], str]]:
    """The changes of a curated write, each as arguments, metadata and key of a job."""
    changes = []
    for index, edit in enumerate(receipt.edits):
        action = "add" if edit.before is None else "remove" if edit.after is None else "replace"
        write_origin = "assistant_tool" if origin.actor == "agent" else origin.actor
        metadata = {"session_id": origin.session, "tool_name": "memory", "write_origin": write_origin}
        if edit.before is not None:
            metadata["old_text"] = redact(edit.before)
        args = {"action": action, "target": receipt.target, "content": redact(edit.after) if edit.after else ""}
        changes.append((args, metadata, f"memory:{receipt.stored_in}:{receipt.change}:{index}"))
    return changes


def _end_key(provider: str, session_id: str, messages: Sequence[Message]) -> str:
    """The same for the same end of a session, which may be resumed and end again with more messages."""
    transcript = json.dumps(messages, sort_keys=True, default=str)
    return f"session_end:{provider}:{session_id}:{hashlib.sha256(transcript.encode()).hexdigest()[:16]}"


@lru_cache(maxsize=256)
def _screen(text: str) -> str:
    return screen_text(text, max_chars=_MAX_DESCRIPTION_CHARS)


def _screen_schema(schema: Any) -> Any:
    """A JSON schema with its descriptions screened."""
    if isinstance(schema, Mapping):
        return {
            key: _screen(value) if key == "description" and isinstance(value, str) else _screen_schema(value)
            for key, value in schema.items()
        }
    return [_screen_schema(item) for item in schema] if isinstance(schema, list) else schema
