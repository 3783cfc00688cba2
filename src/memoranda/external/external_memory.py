"""The external memory of one session: recalled text goes into a copy of the user's message, and nowhere else.

It has one provider or several; what is said about "the providers" holds for a single one too.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from memoranda.external.health import write_status
from memoranda.external.tool_answer import ToolAnswer, failure
from memoranda.safety.fence import (
    Quote,
    ScreenedValue,
    build_memory_context_block,
    inject,
    quote,
    screen_text,
    screen_value,
)
from memoranda.support.tool import Tool

if TYPE_CHECKING:
    from memoranda.external.combined_recall import RecalledPart
    from memoranda.external.manager import MemoryManager
    from memoranda.external.outbox.recorded_turns import TurnMarks
    from memoranda.external.provider_group import ProviderGroup
    from memoranda.memory.curated.operations import MemoryReceipt
    from memoranda.support.origin import Origin

_log = logging.getLogger(__name__)

_MAX_DESCRIPTION_CHARS = 4_000
_NO_TOOLS: tuple[Tool, ...] = ()
_NO_TOOL: Tool | None = None
_NO_MARK: dict[str, Any] = {}
_NO_ANSWER = ToolAnswer(failure("No external memory is in use."))
_NOTHING_RECALLED = ScreenedValue("")

Message = dict[str, Any]
MemoryChange = tuple[dict[str, str], dict[str, str], str]
"""A change of curated memory: arguments, metadata and key of a notification."""
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
    """The external memory of one session; without a provider every method returns at once.

    `turns` marks the messages of turns in the record; `max_chars` is how much all providers may recall together.
    """

    def __init__(
        self,
        group: "ProviderGroup | None" = None,
        *,
        max_chars: int = 0,
        turns: "TurnMarks | None" = None,
        toolsets: Collection[str] | None = None,
    ) -> None:
        self._group = group
        self._max_chars = max_chars
        self._record = turns
        self._toolsets = toolsets
        self._lock = threading.Lock()
        self._on_close: list[Callable[[], None]] = []

    @property
    def active(self) -> bool:
        """Whether the session has a provider and has not ended."""
        return self._group is not None

    @guarded("")
    def system_prompt(self) -> str:
        """The blocks of the providers for the system prompt, screened."""
        return "" if self._group is None else _join_screened(self._group.build_system_prompt())

    @guarded(_NO_TOOLS)
    def tools(self) -> tuple[Tool, ...]:
        """The tools of the providers, with their descriptions screened: they are text from outside."""
        if self._group is None:
            return ()
        return tuple(_screen_tool(tool) for tool in self._group.tools_for(self._toolsets))

    @guarded(_NO_TOOL)
    def find_tool(self, name: str, provider: str) -> Tool | None:
        """The tool that an earlier session knew under a name; `provider` is empty if that is not known."""
        return None if self._group is None else self._group.find_tool(name, provider, self._toolsets)

    @guarded("")
    def provider_of(self, tool: str) -> str:
        """The provider of a tool that `tools` has returned."""
        return "" if self._group is None else self._group.provider_of(tool)

    @guarded(_NO_ANSWER)
    def answer_tool(self, name: str, arguments: Mapping[str, Any], provider: str = "") -> ToolAnswer:
        """Call a tool; the answer also has the passages that a model does not see."""
        return _NO_ANSWER if self._group is None else self._group.answer_tool(name, arguments, provider)

    @guarded(_NOTHING_RECALLED)
    def recall_for_person(self, question: str, session_id: str, provider: str = "") -> ScreenedValue:
        """What the providers recall about a question, with the passages that a model does not see."""
        if self._group is None:
            return _NOTHING_RECALLED
        parts = self._group.recall(question, session_id, self._max_chars, provider)
        texts = [part.text if len(parts) == 1 else quote(part.provider, part.text) for part in parts]
        return screen_value("\n".join(texts), source=_name_source(self._group, parts))

    @guarded(_NO_MARK)
    def mark(self, turn: int | None = None, *, done: bool = False) -> dict[str, Any]:
        """Fields for a message that is about to be recorded; `turn` is None for the first message of a turn."""
        if self._record is None:
            return {}
        return self._record.mark(turn, done=done)

    @guarded("")
    def begin_turn(self, text: str, session_id: str, number: Callable[[], int]) -> str:
        """Return what the providers remember about a user message, as a fenced block, within the turn's deadline.

        `number` returns the number of the turn in its conversation, the first being 1.
        """
        if self._group is None:
            return ""
        limit = self._max_chars
        parts = self._group.before_turn(number(), text, session_id, limit)
        quotes = [Quote(part.provider, part.text) for part in parts]
        source = _name_source(self._group, parts)
        return build_memory_context_block(quotes, max_chars=limit, source=source) if limit else ""

    @guarded("")
    def recall_reason(self) -> str:
        """Why providers recalled nothing into the latest turn; empty if all of them recalled something."""
        return "" if self._group is None else self._group.recall_reason()

    @guarded(None)
    def finish_turn(self, question: str, session_id: str) -> None:
        """Deliver a turn that was completed and recorded; not called for an interrupted one."""
        self._notify(lambda manager: manager.turn_recorded(question, session_id))

    @guarded(None)
    def mirror(self, receipt: "MemoryReceipt", origin: "Origin", redact: Callable[[str], str]) -> None:
        """Mirror the changes of a curated write; `redact` returns what may be shown of an entry."""
        if self._group is None:
            return
        for args, metadata, key in memory_changes(receipt, origin, redact):
            self._notify(partial(_send_write, args, metadata, key))

    @guarded(None)
    def switch(
        self, new_id: str, parent: str = "", reason: str = "", *, reset: bool = False, rewound: bool = False
    ) -> None:
        """Notify the providers of a new session id (compression, branch, resume, reset, new_session) or of a rewind."""
        facts = {"reason": reason} if reason else {}
        self._notify(
            lambda manager: manager.on_session_switch(
                new_id, parent_session_id=parent, reset=reset or reason == "new_session", rewound=rewound, **facts
            )
        )

    @guarded(None)
    def delegated(self, task: str, result: str, child_id: str = "") -> None:
        """Notify the providers that a delegate of this session has finished."""
        self._notify(lambda manager: manager.on_delegation(task, result, child_session_id=child_id))

    @guarded("")
    def before_compression(self, messages: Sequence[Message]) -> str:
        """What the providers want a summary of these messages to contain: screened reference text."""
        return "" if self._group is None else _join_screened(self._group.on_pre_compress(list(messages)))

    @guarded(None)
    def commit(self, messages: Sequence[Message], session_id: str) -> None:
        """Notify the providers that the session ends, before the record says so; they stay attached.

        A process that is killed in between repeats the notification, with the same key unless messages were added.
        """
        self._notify(
            lambda manager: manager.on_session_end(
                list(messages), session_id, key=_end_key(manager.name, session_id, messages), recorded=True
            )
        )

    @guarded(None)
    def deliver(self, seconds: float) -> None:
        """Wait, at most so many seconds for each provider, until everything that is due was delivered or refused."""
        for manager in self._group.managers if self._group is not None else ():
            manager.drain(seconds, only_due=True)

    @guarded(None)
    def close(self) -> None:
        """Shut the providers down without ending the session; undelivered jobs stay in the outbox."""
        with self._lock:
            group, self._group = self._group, None
        if group is None:
            return
        try:
            group.shutdown()
            for manager in group.managers:
                _guard(lambda each: write_status(each.home, each.name, each.status().health), manager)
        finally:
            with self._lock:
                steps, self._on_close = self._on_close, []
            for step in steps:
                step()

    def on_close(self, step: Callable[[], None]) -> None:
        """Run `step` when this is closed; at once if it is closed already."""
        with self._lock:
            if self._group is not None:
                self._on_close.append(step)
                return
        step()

    def _notify(self, send: "Callable[[MemoryManager], object]") -> None:
        """Notify every provider; a failure with one does not keep the others from being notified."""
        group = self._group
        for manager in group.managers if group is not None else ():
            _guard(send, manager)


@guarded(None)
def _guard(send: "Callable[[MemoryManager], object]", manager: "MemoryManager") -> None:
    send(manager)


def _send_write(args: Mapping[str, str], metadata: Mapping[str, str], key: str, manager: "MemoryManager") -> None:
    manager.on_memory_write(args["action"], args["target"], args["content"], metadata, key=key)


def _name_source(group: "ProviderGroup", parts: "Sequence[RecalledPart]") -> str:
    return parts[0].provider if len(parts) == 1 else " and ".join(group.names)


def _join_screened(parts: "Sequence[RecalledPart]") -> str:
    """The texts of all providers in one, screened together: an attack can be split over two of them."""
    used = [part for part in parts if part.text.strip()]
    source = " and ".join(part.provider for part in used)
    screened = screen_value([part.text.strip() for part in used], source=source)
    return "\n\n".join(text for text in screened.value if text.strip())


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


def memory_changes(receipt: "MemoryReceipt", origin: "Origin", redact: Callable[[str], str]) -> list[MemoryChange]:
    """The changes of a curated write."""
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


def _screen_tool(tool: Tool) -> Tool:
    return replace(tool, description=_screen(tool.description), parameters=_screen_schema(tool.parameters))


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
