"""The manager: the one door between a conversation and external memory.

Built-in memory is always there and is not a provider; next to it there is at most one. Nothing that the provider does,
or fails to do, comes through this door except text that it recalled and answers of its tools, both in time and of a
bounded size. What it is to be told (turns, memory writes, session boundaries) goes through the outbox.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.providers.calling import Calling, Pending
from memoranda.providers.delivery import HOOKS, Delivery
from memoranda.providers.health import Health, HealthBook
from memoranda.providers.outbox import Backlog, Job, Kind, Outbox
from memoranda.providers.provider import MemoryProvider, Message, has_own
from memoranda.providers.recall import Recall
from memoranda.providers.settings import CORE_TOOLS, Mode, ProviderSettings
from memoranda.providers.starting import Starting
from memoranda.providers.text import cleaned, plain_text, whole
from memoranda.providers.tools import ProviderTools, gated
from memoranda.tools import JsonObject, Tool

_log = logging.getLogger(__name__)

_WRITES = ("add", "replace", "remove")


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The state of external memory; `provider` is empty when there is only the built-in one."""

    provider: str
    ready: bool
    mode: Mode
    tools: tuple[str, ...]
    health: Health
    backlog: Backlog


class MemoryManager:
    """External memory for one conversation at a time. No method raises because of a provider, and none waits long.

    `clean` takes recalled text out of what is captured; `reserved` are more tool names that are taken; `toolsets`
    says what is in a toolset of a platform.
    """

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        clean: Callable[[str], str] = lambda text: text,
        reserved: Collection[str] = (),
        toolsets: Callable[[str], Collection[str]] | None = None,
    ) -> None:
        self._home = home
        self._settings = settings or ProviderSettings()
        self._clean: Callable[[str], str] = lambda text: whole(clean(text))
        self._reserved = CORE_TOOLS | set(reserved)
        self._toolsets = toolsets
        self._health = HealthBook()
        self._outbox = Outbox(home, self._settings)
        self._provider: MemoryProvider | None = None
        self._own: frozenset[str] = frozenset()
        self._calling: Calling
        self._recall: Recall
        self._tools: ProviderTools
        self._starting: Starting
        self._delivery: Delivery | None = None
        self._scope = ""
        self._session_id = ""
        self._closed = False

    # The provider

    def add_provider(self, provider: MemoryProvider) -> bool:
        """Take a provider in. False, with a warning, when there is one already or it cannot be used as it is."""
        if self._provider is not None:
            _log.warning(
                "Only one memory provider can be used: %s stays, %s is refused.",
                self._calling.name, type(provider).__name__,
            )  # fmt: skip
            return False
        answer = Pending(lambda: _look_at(provider), "memoranda-provider-name").wait(self._settings.call_seconds)
        name, own = answer.value if answer and answer.ok else (None, frozenset())
        if not isinstance(name, str) or not name.strip() or name == "builtin":
            _log.warning("A memory provider cannot be called %r; %s is refused.", name, type(provider).__name__)
            return False
        calling = Calling(provider, name, self._health)
        available = calling.call("is_available", within=self._settings.call_seconds)
        if not available.ok or available.value is not True:
            _log.warning("Memory provider %s is not available: %s", name, available.error or "it says so itself.")
            return False
        self._calling = calling
        self._recall = Recall(calling, self._settings, self._health)
        self._tools = ProviderTools(calling, self._settings, self._reserved, self._clean)
        self._starting = Starting(calling, self._settings, self._started)
        self._own = own
        self._provider = provider
        return True

    @property
    def home(self) -> Path:
        return self._home

    @property
    def provider(self) -> MemoryProvider | None:
        return self._provider

    def initialize(self, session_id: str, **facts: Any) -> bool:
        """Start the provider, and deliver what it missed. False when it is not ready yet; that is tried again."""
        if self._provider is None or self._closed:
            return False
        if self._delivery is not None:
            return self._starting.ready
        self._session_id = session_id
        self._scope = str(facts.get("user_id") or "")
        facts.setdefault("hermes_home", str(self._home))
        ready = self._starting.begin(session_id, facts)
        self._delivery = Delivery(
            self._outbox, self._calling, self._settings, ready=self._starting.again, told=self._told, scope=self._scope
        )
        self._delivery.wake()
        return ready

    def shutdown(self) -> bool:
        """Deliver what can be delivered within the limit and close; the rest is delivered at the next start.

        True when nothing is left over.
        """
        if self._closed:
            return True
        self._closed = True
        limit = self._settings.shutdown_seconds
        deadline = time.monotonic() + limit
        # In threads, because even the disk may keep us waiting.
        delivered = Pending(lambda: self._wind_up(limit), "memoranda-shutdown").wait(limit * 0.8)
        closed = True
        if "shutdown" in self._own:
            closed = self._calling.call("shutdown", within=max(0.05, deadline - time.monotonic())).ok
        Pending(self._outbox.close, "memoranda-shutdown").wait(max(0.05, deadline - time.monotonic()))
        return delivered is not None and delivered.value is True and closed

    # A turn

    def system_prompt(self) -> str:
        """The provider's static text for the system prompt."""
        return self._text("system_prompt_block", {}, {}, self._settings.prompt_chars)

    def turn_started(self, turn_number: int, message: str, session_id: str = "", **facts: Any) -> None:
        """Tell the provider that a turn begins."""
        if self._wants("on_turn_start") and self._starting.ready:
            args = {"turn_number": turn_number, "message": self._clean(message)}
            # Before the recall, whose deadline is what a user waits for.
            within = min(self._settings.call_seconds, self._settings.recall_seconds) / 2
            self._calling.call("on_turn_start", args, {"session_id": self._of(session_id), **facts}, within=within)

    def recall(self, query: str, session_id: str = "") -> str:
        """What the provider remembers about a query; empty when nothing, or not in time."""
        if self._provider is None or self._closed or not self._starting.ready:
            return ""
        return self._recall.before_turn(self._clean(query), self._of(session_id))

    def turn_finished(
        self,
        user: object,
        assistant: object,
        session_id: str = "",
        messages: list[Message] | None = None,
        *,
        key: str = "",
    ) -> bool:
        """Hand over a turn that was completed; one without a question or an answer is not.

        True when it is durable in the outbox. The same `key` is never queued twice.
        """
        question, answer = self._clean(plain_text(user)).strip(), self._clean(plain_text(assistant)).strip()
        if not question or not answer:
            return False
        session_id = self._of(session_id)
        facts: dict[str, Any] = {"session_id": session_id}
        if messages is not None and self._wants("sync_turn") and self._calling.takes("sync_turn", "messages"):
            facts["messages"] = messages
        args = {"user_content": question, "assistant_content": answer}
        queued = self._tell("turn", session_id, args, facts, key)
        if self._wants("queue_prefetch") and self._starting.ready:
            self._recall.warm_up(question, session_id)
        return queued

    # What else happens

    def memory_written(
        self, action: str, target: str, content: str | None, metadata: Mapping[str, Any] | None = None, *, key: str = ""
    ) -> bool:
        """Mirror a write to built-in memory that was committed: add, replace or remove."""
        if action not in _WRITES:
            return False
        session_id = self._of(str((metadata or {}).get("session_id") or ""))
        args = {"action": action, "target": target, "content": content or ""}
        return self._tell("memory_write", session_id, args, {"metadata": dict(metadata or {})}, key)

    def session_ended(self, messages: list[Message], session_id: str = "", *, key: str = "") -> bool:
        """A session is over; the provider hears of it after everything that happened in it."""
        session_id = self._of(session_id)
        return self._tell("session_end", session_id, {"messages": messages}, {"session_id": session_id}, key)

    def session_switched(
        self,
        new_session_id: str,
        *,
        parent_session_id: str = "",
        reset: bool = False,
        rewound: bool = False,
        key: str = "",
        **facts: Any,
    ) -> bool:
        """The conversation goes on under another id, or was taken back: what was recalled for it is dropped at once."""
        if not new_session_id or self._provider is None:
            return False
        self._recall.drop()
        self._session_id = new_session_id
        facts |= {"parent_session_id": parent_session_id, "reset": reset} | ({"rewound": True} if rewound else {})
        return self._tell("session_switch", new_session_id, {"new_session_id": new_session_id}, facts, key)

    def delegated(
        self, task: str, result: str, *, child_session_id: str = "", session_id: str = "", key: str = "", **facts: Any
    ) -> bool:
        """A sub-agent of a session is done."""
        session_id = self._of(session_id)
        facts |= {"child_session_id": child_session_id, "session_id": session_id}
        return self._tell("delegation", session_id, {"task": task, "result": result}, facts, key)

    def before_compress(self, messages: list[Message], session_id: str = "") -> str:
        """What the provider wants a summary of these messages to hold."""
        args = {"messages": messages}
        return self._text("on_pre_compress", args, {"session_id": self._of(session_id)}, self._settings.recall_chars)

    # Tools

    def tools_for(self, platform_toolsets: Collection[str] | None = None) -> list[Tool]:
        """The provider's tools, where the platform has the memory toolset; asked of the provider each time."""
        if self._provider is None or not self._starting.ready or not gated(platform_toolsets, self._toolsets):
            return []
        self._tools.refresh()
        return self._tools.for_model(self.call_tool)

    def call_tool(self, name: str, args: Mapping[str, Any]) -> JsonObject:
        """Call a tool of the provider; the answer is always a JSON object with a `success` key."""
        if self._provider is None or self._closed or not self._starting.ready:
            return {"success": False, "error": f"No memory provider has a tool {name!r}."}
        return self._tools.call(name, args, self._session_id)

    def handle_tool_call(self, tool_name: str, args: Mapping[str, Any]) -> str:
        """The same as JSON text."""
        return json.dumps(self.call_tool(tool_name, args), ensure_ascii=False)

    # What can be seen

    def drain(self, timeout: float) -> bool:
        """Wait until everything is delivered, at most so long."""
        try:
            return self._delivery is None or self._delivery.drain(timeout)
        except StorageError as error:
            self._failed("outbox", error)
            return False

    def backlog(self) -> Backlog:
        """What the provider has yet to be told; of all providers when there is none."""
        try:
            return self._outbox.backlog(self._calling.name if self._provider else None)
        except StorageError as error:
            return Backlog(last_error=str(error))

    def retry_parked(self) -> int:
        """Try parked deliveries again; how many there are."""
        if self._provider is None:
            return 0
        count = self._outbox.retry_parked(self._calling.name)
        if self._delivery is not None:
            self._delivery.wake()
        return count

    def status(self) -> ProviderStatus:
        """Everything that is known about the provider, without calling it."""
        if self._provider is None:
            return ProviderStatus("", False, self._settings.mode, (), self._health.value(), self.backlog())
        ready = self._starting.ready
        tools = self._tools.names if ready else ()
        mode = self._recall.settings.mode
        return ProviderStatus(self._calling.name, ready, mode, tools, self._health.value(), self.backlog())

    # Inside

    def _wind_up(self, limit: float) -> bool:
        """Deliver for half of the time, finish the last delivery in another quarter; whether nothing is left over."""
        if self._delivery is None:
            return True
        began = time.monotonic()
        try:
            # A provider that is not there would not be told anything within the time that there is.
            self._delivery.drain(limit / 2 if self._starting.ready else 0.0, only_due=True)
        finally:
            finished = self._delivery.stop(limit * 0.75 - (time.monotonic() - began))
        return finished and self._delivery.drain(0.0)

    def _started(self) -> None:
        """The provider is there: its limits count, and its tools are known."""
        answer = self._calling.call("limits", within=self._settings.call_seconds) if self._wants("limits") else None
        if answer is not None and answer.ok and isinstance(answer.value, Mapping):
            self._recall.settings = self._tools.settings = self._settings.narrowed(answer.value)
        self._tools.refresh()

    def _told(self, job: Job) -> None:
        """A switch that another process left behind has led the provider away from our session: lead it back."""
        if job.kind == "session_switch" and job.orphan and job.args["new_session_id"] != self._session_id:
            args = {"new_session_id": self._session_id}
            self._tell("session_switch", self._session_id, args, {"reason": "resume"}, "")

    def _of(self, session_id: str) -> str:
        return session_id or self._session_id

    def _wants(self, hook: str) -> bool:
        return self._provider is not None and not self._closed and hook in self._own

    def _text(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any], most: int) -> str:
        if not self._wants(hook) or not self._starting.ready:
            return ""
        answer = self._calling.call(hook, args, facts, within=self._settings.call_seconds)
        return self._calling.as_text(hook, answer, most) if answer.ok else ""

    def _tell(self, kind: Kind, session_id: str, args: Mapping[str, Any], facts: Mapping[str, Any], key: str) -> bool:
        """Queue something for the provider; a hook that it does not have is not queued."""
        if not self._wants(HOOKS[kind]):
            return False
        try:
            self._outbox.put(
                self._calling.name, kind, session_id, cleaned(args, self._clean), cleaned(facts, self._clean),
                scope=self._scope, key=key,
            )  # fmt: skip
        except (StorageError, RecursionError) as error:
            self._failed("outbox", error)
            return False
        if self._delivery is not None:
            self._delivery.wake()
        return True

    def _failed(self, phase: str, error: Exception) -> None:
        _log.error("External memory failed in %s: %s", phase, error)
        self._health.failed(phase, str(error))


def _look_at(provider: MemoryProvider) -> tuple[object, frozenset[str]]:
    """A provider's name, and the hooks that it has of its own."""
    members = [member for member in vars(MemoryProvider) if not member.startswith("_")]
    return provider.name, frozenset(member for member in members if has_own(provider, member))
