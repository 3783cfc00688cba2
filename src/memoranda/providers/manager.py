"""The manager: the one door between a conversation and external memory.

Built-in memory is always there and is not a provider; next to it there is at most one. Nothing that the provider does,
or fails to do, comes through this door except text that it recalled and answers of its tools, both in time and of a
bounded size. What it is to be told (turns, memory writes, session boundaries) goes through the outbox.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.providers.delivery import HOOKS, Delivery
from memoranda.providers.guarded_call import CallResult, GuardedProvider, PendingCall
from memoranda.providers.health import HealthTracker, ProviderHealth
from memoranda.providers.jobs import Backlog, Job, NewJob
from memoranda.providers.notifications import ProviderNotifier
from memoranda.providers.outbox import Outbox
from memoranda.providers.outbox_writer import PATIENCE, OutboxWriter
from memoranda.providers.provider import MemoryProvider, Message, own_members
from memoranda.providers.recall import Recall
from memoranda.providers.recorded_turns import TurnSource
from memoranda.providers.settings import CORE_TOOLS, Mode, ProviderSettings
from memoranda.providers.startup import ProviderStartup
from memoranda.providers.text import whole
from memoranda.providers.tools import ProviderTools, gated
from memoranda.safety.redaction import Redactor
from memoranda.tools import JsonObject, Tool

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The state of external memory; `provider` is empty when there is only the built-in one."""

    provider: str
    ready: bool
    mode: Mode
    tools: tuple[str, ...]
    health: ProviderHealth
    backlog: Backlog


class MemoryManager(ProviderNotifier):
    """External memory for one conversation at a time. No method raises because of a provider, and none waits long.

    `name` is what the provider is called here, if that is known before it is there. `clean` takes recalled text out of
    what is captured; `reserved` are more tool names that are taken; `toolsets` says what is in a toolset of a platform;
    `redactor` knows the credentials that no error may show.
    """

    def __init__(
        self,
        home: Path,
        settings: ProviderSettings | None = None,
        *,
        name: str = "",
        clean: Callable[[str], str] = lambda text: text,
        reserved: Collection[str] = (),
        toolsets: Callable[[str], Collection[str]] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._home = home
        self._name = name
        self._redactor = redactor
        self._settings = settings or ProviderSettings()
        self._clean: Callable[[str], str] = lambda text: whole(clean(text))
        self._reserved = CORE_TOOLS | set(reserved)
        self._toolsets = toolsets
        self._health = HealthTracker()
        self._outbox = Outbox(home, self._settings, wait=PATIENCE)
        self._queue = OutboxWriter(self._outbox, self._clean)
        self._provider: MemoryProvider | None = None
        self._own: frozenset[str] = frozenset()
        self._calling: GuardedProvider
        self._recall: Recall
        self._tools: ProviderTools
        self._starting: ProviderStartup
        self._delivery: Delivery | None = None
        self._beginning: PendingCall | None = None
        self._joining = threading.Lock()
        self._prompt = ""
        self._session_id = ""
        self._closed = False

    # The provider

    def add_provider(self, provider: MemoryProvider) -> bool:
        """Take a provider in. False, with a warning, when there is one already or it cannot be used as it is."""
        if self._provider is not None:
            _log.warning(
                "Only one memory provider can be used: %s stays, %s is refused.",
                self._calling.name,
                type(provider).__name__,
            )
            return False
        answer = PendingCall(lambda: (provider.name, own_members(provider)), "memoranda-provider-name").wait(
            self._settings.call_seconds
        )
        name, own = answer.value if answer and answer.ok else (None, frozenset())
        if not isinstance(name, str) or not name.strip() or name == "builtin":
            _log.warning("A memory provider cannot be called %r; %s is refused.", name, type(provider).__name__)
            return False
        name = self._name or name
        calling = GuardedProvider(provider, name, self._health, self._redactor)
        available = calling.call("is_available", within=self._settings.call_seconds)
        if not available.ok or available.value is not True:
            _log.warning("Memory provider %s is not available: %s", name, available.error or "it says so itself.")
            return False
        self._calling = calling
        self._recall = Recall(calling, self._settings, self._health)
        self._tools = ProviderTools(calling, self._settings, self._reserved, self._clean)
        self._starting = ProviderStartup(calling, self._settings, self._started)
        self._own = own
        self._name = name
        self._provider = provider
        return True

    def begin(
        self,
        find: Callable[[], tuple[MemoryProvider, Mapping[str, Any]]],
        session_id: str,
        source: TurnSource | None = None,
        *,
        started: Callable[[CallResult], None] = lambda answer: None,
        **facts: Any,
    ) -> PendingCall:
        """Find a provider, take it in and start it, all in the background; what happens meanwhile is queued for it.

        `find` gives the provider and more facts to start it with. `source` is where completed turns are found.
        `started` is called when it is ready, or will not be.
        """
        self._meet(session_id, facts)
        if source is not None:
            try:
                self._queue.follow(source)
            except (StorageError, OSError) as error:
                self._failed("outbox", error)
        name = f"memoranda-{self._name}-start"
        call = partial(self._join, find, session_id, facts)
        self._beginning = PendingCall(call, name, lambda answer: self._joined(answer, started), redactor=self._redactor)
        return self._beginning

    def was_late(self, late: bool) -> None:
        """Note whether the provider was ready in time when the session began."""
        self._health.started(late=late)

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
        self._meet(session_id, facts)
        facts.setdefault("hermes_home", str(self._home))
        ready = self._starting.begin(session_id, facts)
        with self._joining:
            if self._closed:
                # It has been told to shut down already, and was not there to hear it.
                if "shutdown" in self._own:
                    self._calling.tell("shutdown")
                return False
            self._delivery = Delivery(
                self._outbox,
                self._calling,
                self._settings,
                ready=self._starting.again,
                told=self._told,
                settle=self._queue.settle,
                settled=lambda: self._queue.settled,
                scope=self._queue.scope,
            )
            self._delivery.wake()
        return ready

    def shutdown(self) -> bool:
        """Deliver what can be delivered within the limit and close; the rest is delivered at the next start.

        True when nothing is left over.
        """
        with self._joining:
            if self._closed:
                return True
            self._closed = True
        limit = self._settings.shutdown_seconds
        deadline = time.monotonic() + limit
        # In threads, because even the disk may keep us waiting.
        delivered = PendingCall(lambda: self._wind_up(limit), "memoranda-shutdown").wait(limit * 0.8)
        closed = True
        if self._provider is not None:
            if "shutdown" in self._own:
                closed = self._calling.call("shutdown", within=max(0.05, deadline - time.monotonic())).ok
            self._calling.close()
        if self._queue.later:
            _log.error("%d things that %s was to be told could not be kept.", self._queue.later, self._name)
        PendingCall(self._let_go, "memoranda-shutdown").wait(max(0.05, deadline - time.monotonic()))
        return delivered is not None and delivered.value is True and closed

    # A turn

    def system_prompt(self) -> str:
        """The provider's static text for the system prompt, as it was when the provider was started."""
        return self._prompt if self._provider is not None and self._starting.ready and not self._closed else ""

    def turn_started(self, turn_number: int, message: str, session_id: str = "", **facts: Any) -> None:
        """Tell the provider that a turn begins."""
        if self._wants("on_turn_start") and self._starting.ready:
            args = {"turn_number": turn_number, "message": self._clean(message)}
            # At most half of what a turn waits for; the other half is for the recall.
            within = min(self._settings.call_seconds, self._recall.settings.recall_seconds / 2)
            self._calling.call("on_turn_start", args, {"session_id": self._of(session_id), **facts}, within=within)

    def recall(self, query: str, session_id: str = "", *, within: float | None = None) -> str:
        """What the provider remembers about a query; empty when nothing, or not in time."""
        if self._provider is None or self._closed or not self._starting.ready:
            return ""
        return self._recall.before_turn(self._clean(query), self._of(session_id), within)

    def before_turn(self, turn_number: int, message: str, session_id: str = "", **facts: Any) -> str:
        """Both of the above within the one deadline that a turn has."""
        if self._provider is None:
            return ""
        deadline = time.monotonic() + self._recall.settings.recall_seconds
        self.turn_started(turn_number, message, session_id, **facts)
        return self.recall(message, session_id, within=deadline - time.monotonic())

    # What else is asked

    def before_compress(self, messages: list[Message], session_id: str = "") -> str:
        """What the provider wants a summary of these messages to hold."""
        args = {"messages": messages}
        return self._text("on_pre_compress", args, {"session_id": self._of(session_id)}, self._settings.recall_chars)

    # Tools

    def tools_for(self, platform_toolsets: Collection[str] | None = None) -> list[Tool]:
        """The provider's tools, where the platform has the memory toolset, as they were when it was last asked."""
        if self._provider is None or not self._starting.ready or not gated(platform_toolsets, self._toolsets):
            return []
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
            return self._queue.settled if self._delivery is None else self._delivery.drain(timeout)
        except StorageError as error:
            self._failed("outbox", error)
            return False

    def backlog(self) -> Backlog:
        """What the provider has yet to be told; of all providers when there is none."""
        try:
            return self._outbox.backlog(self._name or None)
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

    def _let_go(self) -> None:
        self._queue.close()
        self._outbox.close()

    def _wind_up(self, limit: float) -> bool:
        """Deliver for half of the time, finish the last delivery in another quarter; whether nothing is left over."""
        began = time.monotonic()
        if self._beginning is not None and not self._health.value().late_start:
            self._beginning.wait(limit / 2)
        if self._delivery is None:
            self._queue.settle()
            self._outbox.release()
            return not self._name or not self.backlog()
        try:
            # A provider that is not there would not be told anything within the time that there is.
            left = limit / 2 - (time.monotonic() - began)
            self._delivery.drain(max(left, 0.0) if self._starting.ready else 0.0, only_due=True)
            self._queue.settle()
        finally:
            finished = self._delivery.stop(limit * 0.75 - (time.monotonic() - began))
        return finished and self._delivery.drain(0.0)

    def _started(self) -> None:
        """The provider is there: its limits count, and its tools are known."""
        answer = self._calling.call("limits", within=self._settings.call_seconds) if self._wants("limits") else None
        if answer is not None and answer.ok and isinstance(answer.value, Mapping):
            self._recall.settings = self._tools.settings = self._settings.narrowed(answer.value)
        self._tools.refresh()
        if self._wants("system_prompt_block"):
            answer = self._calling.call("system_prompt_block", within=self._settings.call_seconds)
            most = self._settings.prompt_chars
            self._prompt = self._calling.as_text("system_prompt_block", answer, most) if answer.ok else ""

    def _meet(self, session_id: str, facts: Mapping[str, Any]) -> None:
        """Know whom the provider is told about, even before it is there."""
        self._session_id = self._queue.session_id = session_id
        self._queue.provider, self._queue.scope = self._name, str(facts.get("user_id") or "")

    def _join(
        self, find: Callable[[], tuple[MemoryProvider, Mapping[str, Any]]], session_id: str, facts: Mapping[str, Any]
    ) -> bool:
        try:
            self._queue.settle()
        except StorageError as error:
            self._failed("outbox", error)
        provider, more = find()
        return self.add_provider(provider) and self.initialize(session_id, **{**facts, **more})

    def _joined(self, answer: CallResult, started: Callable[[CallResult], None]) -> None:
        started(answer)
        if not answer.ok:
            reason = answer.error.removeprefix("memoranda.errors.ProviderError: ")
            _log.warning("The memory provider %s is left out: %s", self._name, reason)
            self._health.failed("load", reason)

    def _told(self, job: Job) -> None:
        """A switch that another process left behind has led the provider away from our session: lead it back."""
        if job.kind == "session_switch" and job.orphan and job.args["new_session_id"] != self._session_id:
            args = {"new_session_id": self._session_id}
            self._tell(NewJob("session_switch", self._session_id, args, {"reason": "resume"}))

    def _warm_up(self, question: str, session_id: str) -> None:
        if self._wants("queue_prefetch") and self._starting.ready:
            self._recall.warm_up(question, session_id)

    def _drop_recall(self) -> None:
        if self._provider is not None:
            self._recall.drop()

    def _wants(self, hook: str) -> bool:
        return self._provider is not None and not self._closed and hook in self._own

    def _text(self, hook: str, args: Mapping[str, Any], facts: Mapping[str, Any], most: int) -> str:
        if not self._wants(hook) or not self._starting.ready:
            return ""
        answer = self._calling.call(hook, args, facts, within=self._settings.call_seconds)
        return self._calling.as_text(hook, answer, most) if answer.ok else ""

    def _tell(self, new: NewJob) -> bool:
        """Queue something for the provider; True when it is durable. A hook that it does not have is not queued."""
        expected = self._provider is None and self._beginning is not None and not self._beginning.done
        if self._closed or not (expected or self._wants(HOOKS[new.kind])):
            return False
        if "messages" in new.facts and not (expected or self._calling.takes(HOOKS[new.kind], "messages")):
            new = replace(new, facts={name: value for name, value in new.facts.items() if name != "messages"})
        try:
            queued = self._queue.put(new)
        except (StorageError, RecursionError) as error:
            self._failed("outbox", error)
            return False
        if self._delivery is not None:
            self._delivery.wake()
        return queued

    def _failed(self, phase: str, error: Exception) -> None:
        _log.error("External memory failed in %s: %s", phase, error)
        self._health.failed(phase, str(error))
